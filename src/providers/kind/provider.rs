//! kind behind the interface of all providers.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value;

use super::owner::find_all_owned;
use super::{Kind, KindSpec, Owner, address, binary, creation, network, node_network, nodes_of};
use crate::argocd::side::ArgoCd;
use crate::audit::{Audit, Leftover};
use crate::context::Context;
use crate::error::{Error, Result, ResultExt};
use crate::names::EnvName;
use crate::ports::docker::{ContainerState, Docker, Endpoint};
use crate::ports::kube::{Kube, Type};
use crate::preflight;
use crate::providers::{Checked, ClusterState, Provider};
use crate::spec::SharedArgoCd;

/// What a stopped or restarted cluster gets to answer again.
const READY_LIMIT: Duration = Duration::from_secs(120);
/// A node gets ten seconds to stop by itself before Docker ends it.
const STOP_LIMIT: Duration = Duration::from_secs(120);

pub struct KindProvider;

/// The environment as its nodes carry it.
pub(super) fn owner(cx: &Context) -> Owner {
    Owner { environment: cx.spec.name.to_string(), id: cx.id.clone() }
}

/// kind with its program, which is fetched if need be.
pub(super) async fn to_create(cx: &Context) -> Result<Kind> {
    let kind = Kind::new(cx.docker().await?.clone(), Some(binary::ensure(&cx.fetcher()).await?));
    // The ranges and names of the cluster kind adds itself.
    Ok(kind.proxies(cx.spec.network.variables(&[])))
}

/// kind with the program on PATH, or without one: enough for everything but creating.
async fn at_hand(cx: &Context) -> Result<Kind> {
    Ok(Kind::new(cx.docker().await?.clone(), binary::on_path().await.ok().flatten()))
}

#[async_trait]
impl Provider for KindProvider {
    fn name(&self) -> &'static str {
        "kind"
    }

    fn describe(&self) -> String {
        "kind cluster with a kubeconfig of its own".into()
    }

    fn context(&self, name: &EnvName) -> String {
        format!("kind-{}", name.cluster())
    }

    async fn check(&self, cx: &Context) -> Result<Checked> {
        let spec = creation::spec(cx).await?;
        spec.config()?;
        let state = match cx.docker().await {
            Ok(_) => self.observe(cx).await?,
            // The preflight says what is the matter with Docker, and what else is.
            Err(_) => ClusterState::Absent,
        };
        if let ClusterState::Foreign(why) = &state {
            return Err(self.not_ours(cx, why));
        }
        if !matches!(state, ClusterState::Absent | ClusterState::Partial(_)) {
            return Ok(Checked::default());
        }
        let plan = preflight::Plan {
            owner: spec.owner.clone(),
            cluster: spec.cluster.clone(),
            node_image: spec.image.clone(),
            nodes: spec.workers + 1,
            ports: spec.host_ports()?,
        };
        Ok(Checked { nodes: Some(plan), absent: true, ..Checked::default() })
    }

    async fn fetch(&self, cx: &Context) -> Result<()> {
        to_create(cx).await.map(drop)
    }

    async fn observe(&self, cx: &Context) -> Result<ClusterState> {
        Kind::new(cx.docker().await?.clone(), None).observe(&cx.spec.name.cluster(), &owner(cx)).await
    }

    fn not_ours(&self, cx: &Context, why: &str) -> Error {
        let cluster = cx.spec.name.cluster();
        Error::preflight(format!("there is a cluster {cluster} already, and it is not this environment's: {why}"))
            .hint("choose another name: k8tre dev up NAME")
            .hint(format!("or, if nobody needs it: kind delete cluster --name {cluster}"))
    }

    async fn create(&self, cx: &Context) -> Result<()> {
        creation::create(cx).await
    }

    async fn start(&self, cx: &Context) -> Result<()> {
        let (kind, cluster) = (to_create(cx).await?, cx.spec.name.cluster());
        let since = Timestamp::now();
        kind.start(&cluster).await?;
        kind.write_kubeconfig(&cluster, &cx.kubeconfig()).await?;
        cx.forget_kube();
        await_news(&cx.require_kube().await?, since).await
    }

    async fn write_kubeconfig(&self, cx: &Context) -> Result<()> {
        let (kind, cluster) = (to_create(cx).await?, cx.spec.name.cluster());
        kind.write_kubeconfig(&cluster, &cx.kubeconfig()).await?;
        kind.wait_until_ready(&cluster, READY_LIMIT).await
    }

    fn can_pause(&self) -> Result<()> {
        match Endpoint::find() {
            Ok(endpoint) if endpoint.is_podman() => Err(Error::preflight(
                "an environment in Podman is not paused: its nodes may get other addresses when they start again, and kind does not mend that",
            )
            .hint("remove it, and make it again: k8tre dev down; k8tre dev up")),
            _ => Ok(()),
        }
    }

    async fn stop(&self, cx: &Context) -> Result<()> {
        let (kind, cluster) = (at_hand(cx).await?, cx.spec.name.cluster());
        tokio::time::timeout(STOP_LIMIT, kind.stop(&cluster))
            .await
            .unwrap_or_else(|_| Err(Error::failed(format!("the nodes did not stop within {} s", STOP_LIMIT.as_secs()))))
            .hint(format!("docker stop {cluster}-control-plane"))
    }

    async fn memory(&self, cx: &Context) -> Option<u64> {
        let docker = cx.docker().await.ok()?;
        let mut sum = None;
        for node in self.image_nodes(cx).await.ok()? {
            if let Some(bytes) = docker.memory_of(&node).await {
                sum = Some(sum.unwrap_or(0) + bytes);
            }
        }
        sum
    }

    async fn delete(&self, cx: &Context) -> Result<()> {
        let kind = at_hand(cx).await?;
        kind.delete(&cx.spec.name.cluster(), &owner(cx), &cx.kubeconfig()).await?;
        cx.forget_kube();
        if let Some(network) = cx.facts().network {
            network.remove(kind.docker()).await?;
        }
        Ok(())
    }

    fn loads_images(&self) -> bool {
        true
    }

    async fn image_nodes(&self, cx: &Context) -> Result<Vec<String>> {
        let nodes = nodes_of(cx.docker().await?, &cx.spec.name.cluster()).await?.ours.into_iter();
        Ok(nodes.filter(|node| node.state == ContainerState::Running).map(|node| node.container).collect())
    }

    async fn has_network(&self, cx: &Context) -> Result<bool> {
        for node in self.image_nodes(cx).await? {
            if !node_network::is_told(cx.docker().await?, &node, &cx.spec.network).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn set_network(&self, cx: &Context) -> Result<()> {
        let docker = cx.docker().await?;
        for node in self.image_nodes(cx).await? {
            if !node_network::is_told(docker, &node, &cx.spec.network).await? {
                node_network::tell(docker, &node, &cx.spec.network).await?;
            }
        }
        Ok(())
    }

    fn near(&self, cx: &Context) -> Result<Vec<String>> {
        let mut spec = KindSpec::new(cx.spec.name.cluster(), owner(cx));
        spec.configure(&cx.spec.kind.config)?;
        spec.near()
    }

    fn has_addresses(&self) -> bool {
        true
    }

    async fn address_range(&self, cx: &Context) -> Option<String> {
        let network = cx.docker().await.ok()?.network(&network::name()).await.ok()??;
        network.subnets.iter().find_map(|subnet| network::address_range(subnet))
    }

    async fn server_for(&self, name: &EnvName, argocd: &ArgoCd, shared: &SharedArgoCd) -> Result<String> {
        match address::in_docker_network(argocd, &Docker::open().await?).await? {
            true => Ok(address::of_node(&name.cluster())),
            false => Err(address::elsewhere(shared)),
        }
    }

    async fn has_expiry(&self, cx: &Context, expires: Timestamp) -> Result<bool> {
        at_hand(cx).await?.has_expiry(&cx.spec.name.cluster(), expires).await
    }

    async fn set_expiry(&self, cx: &Context, expires: Timestamp) -> Result<()> {
        at_hand(cx).await?.set_expiry(&cx.spec.name.cluster(), expires).await
    }

    /// Volumes of the nodes.
    async fn belongings(&self, cx: &Context) -> Vec<String> {
        let Ok(docker) = cx.docker().await else { return Vec::new() };
        let nodes = find_all_owned(docker).await.unwrap_or_default();
        nodes.into_iter().filter(|node| node.owner.id == cx.id).flat_map(|node| node.volumes).collect()
    }

    async fn audit(&self, cx: &Context, volumes: &[String], audit: &mut Audit) -> Result<()> {
        let docker = cx.docker().await?;
        audit.checked.extend(["containers", "volumes", "networks"]);
        for node in find_all_owned(docker).await?.into_iter().filter(|node| node.owner.id == cx.id) {
            audit.left.push(Leftover {
                remove: format!("docker rm -f -v {}", node.container),
                what: format!("container {}", node.container),
            });
        }
        for volume in volumes {
            if docker.volume_exists(volume).await? {
                let remove = format!("docker volume rm {volume}");
                audit.left.push(Leftover { what: format!("volume {volume}"), remove });
            }
        }
        if let Some(network) = cx.facts().network.filter(|network| network.ours)
            && let Some(there) = docker.network(&network.name).await?
            && network.id.as_ref().is_none_or(|id| *id == there.id)
        {
            let remove = format!("docker network rm {}", there.name);
            let entry = Leftover { what: format!("network {}", there.name), remove };
            match network::in_use(docker, &there).await? {
                true => audit.kept.push(Leftover { what: format!("{}: other clusters use it", entry.what), ..entry }),
                false => audit.left.push(entry),
            }
        }
        Ok(())
    }
}

/// After a start the API server still shows what was true before the stop, until each node's kubelet
/// has reported. What follows must not take that for the present.
async fn await_news(kube: &Kube, since: Timestamp) -> Result<()> {
    let reported = |node: &Value| {
        let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
        conditions.filter(|condition| condition["type"] == "Ready").any(|ready| {
            let at = ready["lastHeartbeatTime"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
            ready["status"] == "True" && at.is_some_and(|at| at.as_second() >= since.as_second())
        })
    };
    let news = async {
        loop {
            // An API server that has just started may still turn questions away.
            let nodes = kube.list(&Type::new("v1", "Node"), "", "").await.unwrap_or_default();
            if !nodes.is_empty() && nodes.iter().all(reported) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    tokio::time::timeout(READY_LIMIT, news).await.map_err(|_| {
        Error::failed(format!("the nodes did not report within {} s of their start", READY_LIMIT.as_secs()))
    })
}
