//! Where the TRE's domain leads.

use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;

use super::{Check, Context, Finding};
use crate::error::Result;
use crate::ports::machine::{overlap, parse_subnet};

const ANSWER: Duration = Duration::from_secs(3);
/// What environments are under unless somebody says otherwise: it is meant to lead nowhere, so nobody is asked.
const OWN: &str = ".k8tre.internal";

pub struct Domain;

#[async_trait]
impl Check for Domain {
    fn name(&self) -> &'static str {
        "the domain"
    }

    async fn run(&self, cx: &Context) -> Result<Vec<Finding>> {
        let domain = cx.meant.as_ref().map(|meant| meant.domain.as_str());
        let Some(domain) = domain.filter(|domain| !domain.ends_with(OWN)) else { return Ok(Vec::new()) };
        let lookup = tokio::net::lookup_host((domain, 443));
        let found: Vec<IpAddr> = match tokio::time::timeout(ANSWER, lookup).await {
            Ok(Ok(found)) => found.map(|address| address.ip()).collect(),
            _ => Vec::new(),
        };
        let hosts = || format!("echo '127.0.0.1 {domain}' | sudo tee -a /etc/hosts");
        if found.is_empty() {
            return Ok(vec![
                Finding::info("domain-unknown", format!("{domain} leads nowhere from here"))
                    .why("apps are reached with k8tre dev open, but links that name the domain do not work")
                    .fix(hosts()),
            ]);
        }
        let nodes = match cx.docker() {
            Some(docker) => docker.networks().await?.into_iter().flat_map(|network| network.subnets).collect(),
            None => Vec::new(),
        };
        let is_here = |address: &IpAddr| match address {
            IpAddr::V4(v4) => {
                let subnets = nodes.iter().filter_map(|subnet: &String| parse_subnet(subnet));
                v4.is_loopback() || subnets.into_iter().any(|subnet| overlap(subnet, (*v4, 32)))
            }
            IpAddr::V6(v6) => v6.is_loopback(),
        };
        let Some(away) = found.iter().find(|address| !is_here(address)).filter(|_| cx.nodes_here) else {
            return Ok(Vec::new());
        };
        Ok(vec![
            Finding::warning("domain-elsewhere", format!("{domain} leads to {away}, which is not this environment"))
                .why("links in the TRE would open what is there, and send it what you type")
                .fix("another domain: k8tre dev up --domain NAME.k8tre.internal"),
        ])
    }
}
