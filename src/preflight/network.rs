//! The subnet of kind's network against the routes of this machine, as VPNs set them.

use async_trait::async_trait;

use super::{Check, Context, Finding};
use crate::error::Result;
use crate::ports::machine::{overlap, parse_subnet};
use crate::providers::kind::network;

pub struct Subnet;

#[async_trait]
impl Check for Subnet {
    fn name(&self) -> &'static str {
        "kind's subnet"
    }

    async fn run(&self, cx: &Context) -> Result<Vec<Finding>> {
        let (Some(docker), true) = (cx.docker(), cx.engine_is_local()) else { return Ok(Vec::new()) };
        // Without the network Docker will choose a subnet that does not overlap with any route.
        let Some(found) = docker.network(&network::name()).await? else { return Ok(Vec::new()) };
        let bridge = format!("br-{}", found.id.chars().take(12).collect::<String>());
        let mut findings = Vec::new();
        for subnet in found.subnets.iter().filter_map(|subnet| parse_subnet(subnet)) {
            for route in cx.machine.routes().iter().filter(|route| route.interface != bridge) {
                if !overlap(subnet, (route.network, route.prefix)) {
                    continue;
                }
                let (address, prefix) = subnet;
                let what = format!(
                    "Docker's network {} ({address}/{prefix}) overlaps with the route {}/{} through {}",
                    found.name, route.network, route.prefix, route.interface
                );
                let fix = format!(
                    "disconnect the VPN, or remake the network: docker network rm {0} && docker network create {0} \
                     --subnet 10.249.0.0/16 -o com.docker.network.bridge.enable_ip_masquerade=true",
                    found.name
                );
                // The longer prefix wins: a wider route of a VPN only loses what is behind it.
                findings.push(if route.prefix >= prefix {
                    let why = "traffic to the nodes would leave through that interface";
                    Finding::blocker("subnet-overlap", what).why(why).fix(fix)
                } else {
                    let why = format!("machines at {address}/{prefix} behind {} cannot be reached", route.interface);
                    Finding::warning("subnet-overlap", what).why(why).fix(fix)
                });
            }
        }
        Ok(findings)
    }
}
