//! A local port that leads to a Service's pods, for as long as it is served. Each connection finds a
//! pod that runs now, so a restarted pod costs the connections that it held and no others.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::error::{Error, Result};
use crate::ports::kube::Kube;

/// How long a connection waits for a pod that is about to run.
const PATIENCE: Duration = Duration::from_secs(20);
const AGAIN: Duration = Duration::from_millis(500);
/// Finding a pod, and opening a stream to it.
const CALL: Duration = Duration::from_secs(5);

/// What the port leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub namespace: String,
    /// Labels of the pods, as `a=b,c=d`.
    pub selector: String,
    pub port: TargetPort,
}

/// A port of a pod by number, or by the name that its container gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetPort {
    Number(u16),
    Name(String),
}

/// Serves connections until dropped; `failed` hears of each that came to nothing.
pub async fn serve(
    kube: &Kube,
    listener: TcpListener,
    target: Target,
    failed: impl Fn(Error) + Clone + Send + 'static,
) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((socket, _)) = listener.accept().await else {
            // Out of file descriptors, most likely: some come back when connections end.
            tokio::time::sleep(AGAIN).await;
            continue;
        };
        let (kube, target, failed) = (kube.clone(), target.clone(), failed.clone());
        connections.spawn(async move {
            if let Err(error) = connect(&kube, socket, &target).await {
                failed(error);
            }
        });
    }
}

async fn connect(kube: &Kube, mut socket: TcpStream, target: &Target) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(kube.client().clone(), &target.namespace);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let attempt = async {
            let (pod, port) = find(&pods, target).await?;
            let mut forward = pods.portforward(&pod, &[port]).await?;
            let stream = forward.take_stream(port).ok_or_else(|| Error::failed("the cluster opened no stream"))?;
            Ok::<_, Error>((forward, stream))
        };
        let opened = tokio::time::timeout(CALL, attempt).await;
        match opened.unwrap_or_else(|_| Err(Error::failed("the cluster does not answer"))) {
            Ok((_forward, mut stream)) => {
                // A browser that closes its tab is no error.
                let _ = tokio::io::copy_bidirectional(&mut socket, &mut stream).await;
                return Ok(());
            }
            Err(error) if Instant::now() >= deadline => return Err(error),
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    }
}

/// A pod that can answer, and its port: a ready one before one that only runs.
async fn find(pods: &Api<Pod>, target: &Target) -> Result<(String, u16)> {
    let list = pods.list(&ListParams::default().labels(&target.selector)).await?;
    let running = |pod: &&Pod| {
        pod.metadata.deletion_timestamp.is_none()
            && pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
    };
    let ready = |pod: &&Pod| {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
    };
    let pod = list.items.iter().filter(running).find(ready).or_else(|| list.items.iter().find(running));
    let pod = pod.ok_or_else(|| Error::failed(format!("no pod with the labels {} runs", target.selector)))?;
    let name = pod.metadata.name.clone().unwrap_or_default();
    match &target.port {
        TargetPort::Number(port) => Ok((name, *port)),
        TargetPort::Name(wanted) => {
            let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
            let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
            let port = ports.find(|port| port.name.as_ref() == Some(wanted));
            let port = port.and_then(|port| u16::try_from(port.container_port).ok());
            let port = port.ok_or_else(|| Error::failed(format!("the pod {name} has no port named {wanted}")))?;
            Ok((name, port))
        }
    }
}
