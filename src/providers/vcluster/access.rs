//! The way from this machine to a vCluster's API server, and the kubeconfig for it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::host::Host;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::ports::dirs;
use crate::ports::kube::{Type, secret_text};
use crate::spec::Expose;
use crate::steps::CLUSTER;

/// For vCluster to write its kubeconfig, and for a load balancer to have an address.
const LIMIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(200);
const CONNECT: Duration = Duration::from_secs(3);

/// Writes the environment's kubeconfig: the administrator's of the vCluster, with an address that answers from here.
pub async fn write(cx: &Context, host: &Host<'_>) -> Result<()> {
    let deadline = Instant::now() + LIMIT;
    loop {
        let secret = host.kube.get(&Type::new("v1", "Secret"), &host.names.namespace, &host.names.secret()).await?;
        let missing = match secret {
            None => "its kubeconfig is not written yet".to_owned(),
            Some(secret) => match address(host).await? {
                Ok(server) => {
                    let kubeconfig = kubeconfig(host, &server, &secret)?;
                    dirs::write_private(&cx.kubeconfig(), kubeconfig.to_string().as_bytes())?;
                    cx.forget_kube();
                    return cx.require_kube().await?.ready().await;
                }
                Err(why) => why,
            },
        };
        cx.detail(CLUSTER, &format!("waiting for the way to it: {missing}"));
        if Instant::now() >= deadline {
            return Err(unreachable(host, &missing));
        }
        tokio::time::sleep(POLL).await;
    }
}

fn unreachable(host: &Host<'_>, why: &str) -> Error {
    let error = Error::failed(format!("this machine does not reach the vCluster in {}: {why}", host.spec.host_context));
    match host.spec.expose {
        Expose::NodePort => error
            .hint("name a node as it is reached from here: --vcluster-node-address HOST")
            .hint("or, where the host has a load balancer: --vcluster-expose load-balancer"),
        Expose::LoadBalancer => error.hint("through a port of the nodes: --vcluster-expose node-port"),
    }
}

/// The address that answers from here, or why there is none yet.
async fn address(host: &Host<'_>) -> Result<Result<String, String>> {
    let of = Type::new("v1", "Service");
    let Some(service) = host.kube.get(&of, &host.names.namespace, &host.names.release).await? else {
        return Ok(Err("its Service is not there".into()));
    };
    let port = service["spec"]["ports"].as_array().into_iter().flatten().find(|port| port["name"] == "https");
    let number = |key: &str| port.and_then(|port| port[key].as_u64());
    let candidates: Vec<(String, u64)> = match host.spec.expose {
        Expose::LoadBalancer => {
            let given = service["status"]["loadBalancer"]["ingress"].as_array().into_iter().flatten();
            let hosts = given.filter_map(|one| one["ip"].as_str().or(one["hostname"].as_str()));
            hosts.map(|one| (one.to_owned(), number("port").unwrap_or(443))).collect()
        }
        Expose::NodePort => {
            let Some(port) = number("nodePort") else { return Ok(Err("its Service has no port of the nodes".into())) };
            nodes(host).await?.into_iter().map(|node| (node, port)).collect()
        }
    };
    if candidates.is_empty() {
        return Ok(Err(match host.spec.expose {
            Expose::LoadBalancer => "the host's load balancer has given no address".into(),
            Expose::NodePort => "the host's nodes say no address".into(),
        }));
    }
    for (name, port) in &candidates {
        let bare = name.trim_matches(['[', ']']).to_owned();
        let connect = TcpStream::connect((bare, u16::try_from(*port).unwrap_or_default()));
        if matches!(tokio::time::timeout(CONNECT, connect).await, Ok(Ok(_))) {
            return Ok(Ok(format!("https://{name}:{port}")));
        }
    }
    let tried: Vec<String> = candidates.iter().take(4).map(|(name, port)| format!("{name}:{port}")).collect();
    Ok(Err(format!("nothing answers at {}", tried.join(", "))))
}

/// Addresses of the host's nodes, those for the world first.
async fn nodes(host: &Host<'_>) -> Result<Vec<String>> {
    if let Some(given) = &host.spec.node_address {
        return Ok(vec![bracketed(given)]);
    }
    let nodes = host.kube.list(&Type::new("v1", "Node"), "", "").await?;
    let of_kind = |kind: &str| -> Vec<String> {
        let all = nodes.iter().flat_map(|node| node["status"]["addresses"].as_array().into_iter().flatten());
        let fitting = all.filter(|address| address["type"] == kind);
        fitting.filter_map(|address| address["address"].as_str()).map(bracketed).collect()
    };
    Ok(["ExternalIP", "InternalIP"].iter().flat_map(|kind| of_kind(kind)).collect())
}

fn bracketed(address: &str) -> String {
    match address.parse::<std::net::Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => address.to_owned(),
    }
}

/// A kubeconfig of its own: nothing of the host's is in it. The certificate is checked for the name that vCluster always
/// has, as the address may be any node's.
fn kubeconfig(host: &Host<'_>, server: &str, secret: &Value) -> Result<Value> {
    let name = context(&host.names.release);
    let data = |key: &str| match secret_text(secret, key) {
        Some(_) => Ok(secret["data"][key].clone()),
        None => Err(Error::failed(format!("vCluster's Secret {} has no {key}", host.names.secret()))),
    };
    Ok(json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{"name": name, "cluster": {
            "server": server, "tls-server-name": host.names.inside(),
            "certificate-authority-data": data("certificate-authority")?,
        }}],
        "users": [{"name": name, "user": {
            "client-certificate-data": data("client-certificate")?, "client-key-data": data("client-key")?,
        }}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }))
}

/// Name of the context in the environment's kubeconfig.
pub fn context(release: &str) -> String {
    format!("vcluster-{release}")
}
