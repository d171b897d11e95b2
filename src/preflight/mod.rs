//! What would make `up` fail later and can be known now: every finding at once, each with its fix.
//!
//! A check is one file here with a type that implements [`Check`], and one line in [`checks`].

mod cgroups;
mod cluster;
mod engine;
mod inotify;
mod network;
pub mod ports;
mod proxy;
mod resources;
mod tools;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::ports::docker::{Docker, EngineInfo};
use crate::ports::machine::{Machine, proxy_variables};
use crate::providers::kind::Owner;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Blocker,
    Warning,
    Info,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub code: &'static str,
    pub severity: Severity,
    pub what: String,
    pub why: String,
    /// A command or a setting, to be used as it stands.
    pub fix: String,
}

impl Finding {
    pub fn blocker(code: &'static str, what: impl Into<String>) -> Finding {
        Finding { code, severity: Severity::Blocker, what: what.into(), why: String::new(), fix: String::new() }
    }

    pub fn warning(code: &'static str, what: impl Into<String>) -> Finding {
        Finding { severity: Severity::Warning, ..Self::blocker(code, what) }
    }

    pub fn info(code: &'static str, what: impl Into<String>) -> Finding {
        Finding { severity: Severity::Info, ..Self::blocker(code, what) }
    }

    pub fn why(mut self, why: impl Into<String>) -> Finding {
        self.why = why.into();
        self
    }

    pub fn fix(mut self, fix: impl Into<String>) -> Finding {
        self.fix = fix.into();
        self
    }
}

/// What the checks look at.
pub struct Context {
    pub machine: Machine,
    pub docker: Result<(Docker, EngineInfo)>,
    /// `HTTPS_PROXY` and its kin.
    pub proxies: BTreeMap<&'static str, String>,
    /// What is about to be made; without it only the machine is looked at.
    pub plan: Option<Plan>,
    pub offline: bool,
}

/// The cluster that is about to be made.
#[derive(Debug, Clone)]
pub struct Plan {
    pub owner: Owner,
    pub cluster: String,
    pub node_image: String,
    pub nodes: u8,
    /// Ports of this machine that the user insists on.
    pub ports: Vec<u16>,
}

impl Context {
    /// The machine and the Docker of this process.
    pub async fn gather(plan: Option<Plan>, offline: bool) -> Context {
        Context { machine: Machine::this(), docker: engine().await, proxies: proxy_variables(), plan, offline }
    }

    fn docker(&self) -> Option<&Docker> {
        self.docker.as_ref().ok().map(|(docker, _)| docker)
    }

    fn engine(&self) -> Option<&EngineInfo> {
        self.docker.as_ref().ok().map(|(_, info)| info)
    }

    /// Whether the engine runs on this very machine, so that `/proc` and the disk here are its own.
    fn engine_is_local(&self) -> bool {
        let local_socket = self.docker().is_some_and(|docker| docker.endpoint().socket().is_some());
        local_socket && cfg!(target_os = "linux") && !self.engine().is_some_and(in_a_virtual_machine)
    }

    fn nodes(&self) -> u64 {
        self.plan.as_ref().map_or(1, |plan| u64::from(plan.nodes.max(1)))
    }
}

async fn engine() -> Result<(Docker, EngineInfo)> {
    let docker = Docker::open().await?;
    let info = docker.info().await?;
    Ok((docker, info))
}

fn in_a_virtual_machine(info: &EngineInfo) -> bool {
    info.operating_system.contains("Docker Desktop")
}

/// One topic of the preflight.
#[async_trait]
pub trait Check: Send + Sync {
    fn name(&self) -> &'static str;
    async fn run(&self, cx: &Context) -> Result<Vec<Finding>>;
}

pub fn checks() -> Vec<Box<dyn Check>> {
    vec![
        Box::new(engine::Engine),
        Box::new(cgroups::Cgroups),
        Box::new(resources::Resources::default()),
        Box::new(inotify::Inotify),
        Box::new(ports::Ports),
        Box::new(network::Subnet),
        Box::new(tools::Tools),
        Box::new(proxy::Proxies),
        Box::new(cluster::Cluster),
    ]
}

/// Every finding of every check, the worst first. A check that cannot be made says so itself.
pub async fn run(cx: &Context) -> Vec<Finding> {
    const LIMIT: Duration = Duration::from_secs(10);
    let checks = checks();
    let all = checks.iter().map(|check| async {
        let result = match tokio::time::timeout(LIMIT, check.run(cx)).await {
            Ok(result) => result,
            Err(_) => Err(Error::failed(format!("it took longer than {} s", LIMIT.as_secs()))),
        };
        result.unwrap_or_else(|error| {
            let hint = error.hints().first().cloned().unwrap_or_default();
            vec![Finding::warning("unchecked", format!("could not check {}: {error}", check.name())).fix(hint)]
        })
    });
    let mut findings: Vec<_> = join_all(all).await.into_iter().flatten().collect();
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// The error that stops `up`, if any finding does.
pub fn verdict(findings: &[Finding]) -> Result<()> {
    let blockers: Vec<_> = findings.iter().filter(|finding| finding.severity == Severity::Blocker).collect();
    let Some(first) = blockers.first() else { return Ok(()) };
    let error = match blockers.len() {
        1 => Error::preflight(first.what.clone()),
        more => Error::preflight(format!("{} (and {} more)", first.what, more - 1)),
    };
    let fixes = blockers.iter().filter(|finding| !finding.fix.is_empty()).map(|finding| finding.fix.clone());
    Err(fixes.fold(error, Error::hint))
}
