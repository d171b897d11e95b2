//! What would make `up` fail later and can be known now: every finding at once, each with its fix.
//!
//! A check is one file here with a type that implements [`Check`], and one line in [`checks`].

mod authorities;
mod base;
mod cgroups;
mod checkout;
mod clock;
mod cluster;
mod contexts;
mod domain;
mod engine;
mod finding;
mod inotify;
mod network;
pub mod ports;
mod proxy;
mod resources;
mod tools;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;

use crate::context;
use crate::error::{Error, Result};
use crate::overlay;
use crate::ports::docker::{Docker, EngineInfo};
use crate::ports::fetch::Fetcher;
use crate::ports::git::Checkout;
use crate::ports::kubeconfig;
use crate::ports::machine::{Machine, authority_variables, proxy_variables};
use crate::providers::kind::Owner;
use crate::requests::{self, Asked, ByApp};
use crate::sample;
use crate::spec::ProviderSpec;
pub use finding::{Fact, Finding, Remedy, Severity};

/// What the checks look at.
pub struct Context {
    pub machine: Machine,
    pub docker: Result<(Docker, EngineInfo)>,
    /// `HTTPS_PROXY` and its kin.
    pub proxies: BTreeMap<&'static str, String>,
    /// Files of certificates that other programs here are told to trust.
    pub authorities: BTreeMap<&'static str, PathBuf>,
    pub ca_bundle: Option<PathBuf>,
    pub fetcher: Fetcher,
    /// Whether nodes run on this machine: only then Docker matters.
    pub nodes_here: bool,
    /// The nodes that are about to be made here; without it only the machine is looked at.
    pub plan: Option<Plan>,
    /// What the environment is meant to be, where that is known.
    pub meant: Option<Meant>,
    pub checkout: Option<Checkout>,
    /// Contexts of the user's kubeconfig.
    pub contexts: Result<Vec<String>>,
    /// Who is asked for the time; without it nobody.
    pub clock: Option<String>,
}

/// What is meant to be.
#[derive(Debug, Clone)]
pub struct Meant {
    pub branch: String,
    pub base: String,
    pub domain: String,
    /// Contexts of the user's kubeconfig that it needs.
    pub contexts: Vec<String>,
    pub requests: ByApp,
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
    pub async fn here(fetcher: Fetcher, ca_bundle: Option<PathBuf>) -> Context {
        Context {
            machine: Machine::this(),
            docker: engine().await,
            proxies: proxy_variables(),
            authorities: authority_variables(),
            ca_bundle,
            fetcher,
            nodes_here: true,
            plan: None,
            meant: None,
            checkout: None,
            contexts: kubeconfig::contexts(),
            clock: None,
        }
    }

    /// The same for an environment, with the nodes that are to be made here.
    pub async fn of(cx: &context::Context, plan: Option<Plan>) -> Context {
        let spec = &cx.spec;
        let written = !spec.sample || sample::is_sample(&spec.repo).await.unwrap_or_default();
        // What cannot be read is said where it is needed.
        let planned = overlay::planned(spec, &cx.cluster_name(), written).unwrap_or_default();
        let provider = match &spec.provider {
            ProviderSpec::Kind => None,
            ProviderSpec::Existing(existing) => Some(existing.context.clone()),
            ProviderSpec::Vcluster(vcluster) => Some(vcluster.host_context.clone()),
        };
        let shared = spec.argocd.shared().map(|shared| shared.context.clone());
        Context {
            nodes_here: spec.provider == ProviderSpec::Kind,
            plan,
            meant: Some(Meant {
                branch: spec.name.branch(),
                base: spec.base.clone(),
                domain: spec.domain.clone(),
                contexts: provider.into_iter().chain(shared).collect(),
                requests: requests::by_app(&planned),
            }),
            // The sample is k8tre's own, and has no remotes.
            checkout: if spec.sample { None } else { Checkout::open(&spec.repo).ok() },
            ..Context::here(cx.fetcher(), cx.options.ca_bundle.clone()).await
        }
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

    /// What there is, for `doctor`.
    async fn facts(&self, _cx: &Context) -> Vec<Fact> {
        Vec::new()
    }
}

/// Whether a check is of use where no node runs on this machine.
enum For {
    Nodes,
    All,
}

fn checks(cx: &Context) -> Vec<Box<dyn Check>> {
    let all: Vec<(For, Box<dyn Check>)> = vec![
        (For::Nodes, Box::new(engine::Engine)),
        (For::Nodes, Box::new(cgroups::Cgroups)),
        (For::Nodes, Box::new(resources::Resources::default())),
        (For::Nodes, Box::new(inotify::Inotify)),
        (For::Nodes, Box::new(ports::Ports)),
        (For::Nodes, Box::new(network::Subnet)),
        (For::Nodes, Box::new(tools::Kind)),
        (For::All, Box::new(tools::Tools)),
        (For::All, Box::new(proxy::Proxies)),
        (For::All, Box::new(authorities::Authorities)),
        (For::All, Box::new(clock::Clock)),
        (For::All, Box::new(domain::Domain)),
        (For::All, Box::new(checkout::Repository)),
        (For::All, Box::new(base::Base)),
        (For::All, Box::new(contexts::Contexts)),
        (For::Nodes, Box::new(cluster::Cluster)),
    ];
    let fits = |to: &For| cx.nodes_here || matches!(to, For::All);
    all.into_iter().filter(|(to, _)| fits(to)).map(|(_, check)| check).collect()
}

/// No check takes longer; one that does is told.
const LIMIT: Duration = Duration::from_secs(10);

/// Every finding of every check, the worst first. A check that cannot be made says so itself.
pub async fn run(cx: &Context) -> Vec<Finding> {
    let checks = checks(cx);
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
    sorted(join_all(all).await.into_iter().flatten().collect())
}

/// The worst first.
pub fn sorted(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// What pods of Applications can have on this machine.
pub fn room(cx: &Context) -> Asked {
    resources::Resources::default().room(cx)
}

/// What there is, in the order of the checks.
pub async fn facts(cx: &Context) -> Vec<Fact> {
    let checks = checks(cx);
    let all =
        checks.iter().map(|check| async { tokio::time::timeout(LIMIT, check.facts(cx)).await.unwrap_or_default() });
    join_all(all).await.into_iter().flatten().collect()
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
