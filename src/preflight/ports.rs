//! Ports of this machine: who has those that are asked for, and free ones in their place.

use std::net::{Ipv4Addr, SocketAddr};

use async_trait::async_trait;

use super::{Check, Context, Finding};
use crate::error::{Error, Result};
use crate::ports::docker::{ContainerState, Docker};
use crate::ports::machine::Machine;

pub struct Ports;

#[async_trait]
impl Check for Ports {
    fn name(&self) -> &'static str {
        "host ports"
    }

    async fn run(&self, cx: &Context) -> Result<Vec<Finding>> {
        let Some(plan) = &cx.plan else { return Ok(Vec::new()) };
        let mut findings = Vec::new();
        for &port in &plan.ports {
            if let Some(holder) = holder(&cx.machine, cx.docker(), port, &plan.cluster).await? {
                findings.push(
                    Finding::blocker("port-taken", format!("port {port} is taken by {holder}"))
                        .why("the cluster is to have it")
                        .fix("name another port, or none: a free one is then chosen"),
                );
            }
        }
        Ok(findings)
    }
}

/// The wished port, or a free one where it is taken and the user did not insist on it.
pub async fn choose(machine: &Machine, docker: &Docker, cluster: &str, wished: u16, fixed: bool) -> Result<u16> {
    match holder(machine, Some(docker), wished, cluster).await? {
        None => Ok(wished),
        Some(holder) if fixed => Err(Error::preflight(format!("port {wished} is taken by {holder}"))
            .hint("name another port, or none: a free one is then chosen")),
        Some(holder) => {
            let port = machine.free_port()?;
            tracing::info!(wished, port, holder, "a port is taken; another one is used");
            Ok(port)
        }
    }
}

/// Who has a port, if it is not this cluster itself. Containers are asked first: what listens for
/// them is Docker, whose name would help nobody.
async fn holder(machine: &Machine, docker: Option<&Docker>, port: u16, cluster: &str) -> Result<Option<String>> {
    if let Some(docker) = docker {
        for container in docker.containers(&[]).await? {
            let running = container.state == ContainerState::Running;
            if running && container.ports.iter().any(|taken| taken.port == port) {
                let own = container.labels.get(crate::providers::kind::owner::CLUSTER_LABEL);
                let own = own.is_some_and(|of| of == cluster);
                return Ok((!own).then(|| format!("the container {}", container.name)));
            }
        }
    }
    if !machine.port_taken(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))) {
        return Ok(None);
    }
    Ok(Some(match machine.listener(port) {
        Some(process) => format!("{} (process {})", process.name, process.id),
        None => format!("another program (sudo ss -tlnp sport = :{port})"),
    }))
}
