//! The address of a kind cluster for other clusters on this machine.
//!
//! Nodes of kind clusters on one Docker network reach each other by the names of their containers. Such a name is in
//! the certificate of the node's API server, is known before the cluster is made, and survives restarts.

use super::network;
use super::owner::CLUSTER_LABEL;
use crate::argocd::side::ArgoCd;
use crate::error::{Error, Result};
use crate::ports::docker::{Container, Docker};
use crate::ports::kube::Type;
use crate::shared::address::is_here;
use crate::spec::SharedArgoCd;

const PORT: u16 = 6443;

/// Address of a kind cluster's API server in kind's network.
pub fn of_node(cluster: &str) -> String {
    format!("https://{cluster}-control-plane:{PORT}")
}

/// Whether Argo CD's pods run on a kind node that is on the network of this machine's kind clusters.
pub async fn in_docker_network(argocd: &ArgoCd, docker: &Docker) -> Result<bool> {
    let network = network::name();
    let nodes: Vec<Container> = docker
        .containers(&[CLUSTER_LABEL])
        .await?
        .into_iter()
        .filter(|node| node.networks.contains_key(&network))
        .collect();
    let Some(cluster) =
        nodes.iter().find(|node| serves(node, argocd.kube.server())).and_then(|node| node.labels.get(CLUSTER_LABEL))
    else {
        return Ok(false);
    };
    let pods = argocd.list(&Type::new("v1", "Pod"), "app.kubernetes.io/name=argocd-application-controller").await;
    // Who may not list pods may still be right: the cluster is one of these.
    let pods = pods.unwrap_or_default();
    let on = |pod: &serde_json::Value| {
        let name = pod["spec"]["nodeName"].as_str();
        name.is_none_or(|name| {
            nodes.iter().any(|node| node.name == name && node.labels.get(CLUSTER_LABEL) == Some(cluster))
        })
    };
    Ok(pods.iter().all(on))
}

/// Whether a kubeconfig's address leads to this node.
fn serves(node: &Container, server: &str) -> bool {
    let Ok(uri) = server.parse::<http::Uri>() else { return false };
    let (host, port) = (uri.host().unwrap_or_default(), uri.port_u16().unwrap_or(443));
    let published = node.ports.iter().any(|to| to.port == port && to.inside == PORT);
    let inside = host == node.name || node.networks.values().flatten().any(|address| address == host);
    (is_here(host) && published) || (inside && port == PORT)
}

/// Argo CD runs where it does not see this machine's clusters.
pub fn elsewhere(shared: &SharedArgoCd) -> Error {
    Error::preflight(format!(
        "the Argo CD in {} does not run in a kind cluster on this machine, so it cannot reach a kind cluster that does",
        shared.place()
    ))
    .hint("if this machine can be reached from there, say how: --server https://HOST:PORT, and list HOST as a certSAN in your --kind-config")
    .hint("a tunnel to this machine does too: its address is then the --server")
    .hint("or let Argo CD run in the environment itself: leave --argocd away")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::ports::docker::{ContainerState, HostPort};

    #[test]
    fn a_node_is_known_by_its_published_port_or_its_own_address() {
        let node = Container {
            id: "1".into(),
            name: "hub-control-plane".into(),
            image: String::new(),
            labels: BTreeMap::new(),
            state: ContainerState::Running,
            mounts: Vec::new(),
            ports: vec![HostPort { address: "127.0.0.1".into(), port: 40001, inside: 6443 }],
            networks: BTreeMap::from([("kind".into(), Some("172.18.0.3".into()))]),
            started_at: None,
            exit_code: None,
            health: None,
            fault: None,
        };
        assert!(serves(&node, "https://127.0.0.1:40001/"));
        assert!(serves(&node, "https://172.18.0.3:6443"));
        assert!(!serves(&node, "https://127.0.0.1:40002/"));
        assert!(!serves(&node, "https://gitops.example.org/"));
    }
}
