//! The address by which a shared Argo CD reaches the environment's cluster.
//!
//! Nodes of kind clusters on one Docker network reach each other by the names of their containers. Such a name is in
//! the certificate of the node's API server, is known before the cluster is made, and survives restarts.

use std::net::IpAddr;

use crate::argocd::side::ArgoCd;
use crate::error::{Error, Result};
use crate::ports::docker::{Container, Docker};
use crate::ports::kube::Type;
use crate::providers::kind::network;
use crate::spec::SharedArgoCd;

const KIND: &str = "io.x-k8s.kind.cluster";
const PORT: u16 = 6443;

/// Address of a kind cluster's API server in kind's network.
pub fn of_node(cluster: &str) -> String {
    format!("https://{cluster}-control-plane:{PORT}")
}

/// Whether Argo CD's pods run on a kind node that is on the network of this machine's kind clusters.
pub async fn in_docker_network(argocd: &ArgoCd, docker: &Docker) -> Result<bool> {
    let network = network::name();
    let nodes: Vec<Container> =
        docker.containers(&[KIND]).await?.into_iter().filter(|node| node.networks.contains_key(&network)).collect();
    let Some(cluster) =
        nodes.iter().find(|node| serves(node, argocd.kube.server())).and_then(|node| node.labels.get(KIND))
    else {
        return Ok(false);
    };
    let pods = argocd.list(&Type::new("v1", "Pod"), "app.kubernetes.io/name=argocd-application-controller").await;
    // Who may not list pods may still be right: the cluster is one of these.
    let pods = pods.unwrap_or_default();
    let on = |pod: &serde_json::Value| {
        let name = pod["spec"]["nodeName"].as_str();
        name.is_none_or(|name| nodes.iter().any(|node| node.name == name && node.labels.get(KIND) == Some(cluster)))
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

/// An address that means the machine itself, whoever uses it.
fn is_here(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
}

/// Refuses what could lead nowhere, or to Argo CD's own cluster.
pub fn check(server: &str) -> Result<()> {
    let shown = crate::text::one_line(server, 200);
    let hint = "an address that Argo CD's pods can reach, such as https://cluster.example.org:6443: --server URL";
    let uri = server.parse::<http::Uri>().ok().filter(|uri| uri.scheme_str() == Some("https"));
    let Some(host) = uri.as_ref().and_then(http::Uri::host) else {
        return Err(Error::usage(format!("\"{shown}\" is no https address of a cluster")).hint(hint));
    };
    let authority = uri.as_ref().and_then(http::Uri::authority).map(http::uri::Authority::as_str).unwrap_or_default();
    if authority.contains('@') {
        return Err(Error::usage("the address of the cluster holds a user or a password").hint(hint));
    }
    if is_here(host) {
        return Err(
            Error::usage(format!("{shown} means, to Argo CD, the machine that Argo CD itself runs on")).hint(hint)
        );
    }
    if host == "kubernetes.default" || host.starts_with("kubernetes.default.svc") {
        return Err(Error::usage(format!("{shown} means, to Argo CD, the cluster that it runs in itself")).hint(hint));
    }
    Ok(())
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
    fn addresses_that_lead_back_to_argo_cd_are_refused() {
        for wrong in [
            "https://127.0.0.1:6443",
            "https://localhost:6443",
            "https://[::1]:6443",
            "https://0.0.0.0:6443",
            "https://kubernetes.default.svc",
            "http://cluster.example.org",
            "cluster.example.org:6443",
            "https://user:secret@cluster.example.org",
        ] {
            assert_eq!(check(wrong).unwrap_err().exit_code(), 2, "{wrong}");
        }
        check("https://k8tre-alice-control-plane:6443").unwrap();
        check("https://192.0.2.7:6443").unwrap();
    }

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
