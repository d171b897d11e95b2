//! The environment's own cluster, made by kind.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value;

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::{Error, Result};
use crate::journal;
use crate::ports::kube::{Kube, Type};
use crate::ports::machine::Machine;
use crate::preflight::ports::choose;
use crate::providers::ClusterState;
use crate::providers::kind::prepared::Prepared;
use crate::providers::kind::{Kind, KindSpec, NetworkOwnership, Owner, binary};
use crate::steps::CLUSTER;

/// What a stopped or restarted cluster gets to answer again.
const READY_LIMIT: Duration = Duration::from_secs(120);

pub struct Cluster;

/// What kind is to make for this environment.
pub async fn kind_spec(cx: &Context) -> Result<KindSpec> {
    let owner = Owner { environment: cx.spec.name.to_string(), id: cx.id.clone() };
    let mut spec = KindSpec::new(cx.spec.name.cluster(), owner);
    if let Some(image) = &cx.spec.kind.node_image {
        spec.image.clone_from(image);
    }
    spec.configure(&cx.spec.kind.config)?;
    if let Some(ports) = &mut spec.ingress {
        // Nobody insists on these: a free one does where the usual one is taken.
        let (machine, docker) = (Machine::this(), cx.docker().await?);
        for port in [&mut ports.http, &mut ports.https] {
            *port = choose(&machine, docker, &spec.cluster, *port, false).await?;
        }
    }
    Ok(spec)
}

/// kind with its program, which is fetched if need be.
pub async fn kind_to_create(cx: &Context) -> Result<Kind> {
    Ok(Kind::new(cx.docker().await?.clone(), Some(binary::ensure(&cx.fetcher()).await?)))
}

/// kind with the program on PATH, or without one: enough for everything but creating.
pub async fn kind_at_hand(cx: &Context) -> Result<Kind> {
    Ok(Kind::new(cx.docker().await?.clone(), binary::on_path().await.ok().flatten()))
}

pub async fn observe(cx: &Context) -> Result<ClusterState> {
    let kind = Kind::new(cx.docker().await?.clone(), None);
    kind.observe(&cx.spec.name.cluster(), &Owner { environment: cx.spec.name.to_string(), id: cx.id.clone() }).await
}

/// Somebody else's cluster has the name that this environment's would have.
pub fn not_ours(cx: &Context, why: &str) -> Error {
    let cluster = cx.spec.name.cluster();
    Error::preflight(format!("there is a cluster {cluster} already, and it is not this environment's: {why}"))
        .hint("choose another name: k8tre dev up NAME")
        .hint(format!("or, if nobody needs it: kind delete cluster --name {cluster}"))
}

#[async_trait]
impl Step<Context> for Cluster {
    fn id(&self) -> StepId {
        CLUSTER
    }

    fn describe(&self) -> String {
        "kind cluster with a kubeconfig of its own".into()
    }

    fn limit(&self) -> Duration {
        Duration::from_secs(900)
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        Ok(match observe(cx).await? {
            ClusterState::Absent => State::Absent,
            ClusterState::Stopped(why) | ClusterState::Partial(why) => State::Drifted(why),
            ClusterState::Foreign(why) => return Err(not_ours(cx, &why)),
            ClusterState::Running => match cx.kube().await? {
                None => State::Drifted("its kubeconfig is lost".into()),
                Some(kube) => match kube.ready().await {
                    Ok(()) => State::Ready,
                    Err(error) => State::Drifted(error.to_string()),
                },
            },
        })
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        let cluster = cx.spec.name.cluster();
        match observe(cx).await? {
            ClusterState::Running => {
                cx.detail(CLUSTER, "waiting for its API server");
                let kind = kind_to_create(cx).await?;
                kind.write_kubeconfig(&cluster, &cx.kubeconfig()).await?;
                kind.wait_until_ready(&cluster, READY_LIMIT).await?;
            }
            ClusterState::Stopped(_) => {
                cx.detail(CLUSTER, "starting its containers");
                let kind = kind_to_create(cx).await?;
                let since = Timestamp::now();
                kind.start(&cluster).await?;
                kind.write_kubeconfig(&cluster, &cx.kubeconfig()).await?;
                cx.forget_kube();
                await_news(&cx.require_kube().await?, since).await?;
            }
            _ => create(cx).await?,
        }
        cx.forget_kube();
        Ok(())
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        let kind = kind_at_hand(cx).await?;
        let owner = Owner { environment: cx.spec.name.to_string(), id: cx.id.clone() };
        kind.delete(&cx.spec.name.cluster(), &owner, &cx.kubeconfig()).await?;
        cx.forget_kube();
        if let Some(network) = cx.facts().network {
            network.remove(kind.docker()).await?;
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

async fn create(cx: &Context) -> Result<()> {
    let kind = kind_to_create(cx).await?;
    let network = NetworkOwnership::before_creation(kind.docker(), &claimed_networks(cx)).await?;
    cx.note(|facts| facts.network = Some(network.clone()))?;
    let spec = kind_spec(cx).await?;
    let prepared = prepared_image(cx, &spec.image).await.map(|image| KindSpec { image, ..spec.clone() });
    cx.detail(CLUSTER, "creating the nodes");
    let mut result =
        kind.create(prepared.as_ref().unwrap_or(&spec), &cx.kubeconfig(), cx.options.keep_on_failure).await;
    if let (Err(error), Some(_), false) = (&result, &prepared, cx.options.keep_on_failure) {
        // Whatever a prepared image may do wrong somewhere, the plain one remains.
        tracing::warn!(%error, "no cluster from the prepared node image");
        cx.detail(CLUSTER, "creating the nodes again, from the plain node image");
        result = kind.create(&spec, &cx.kubeconfig(), false).await;
    }
    // Also after a failure: kind makes the network before anything that can fail.
    let network = network.after_creation(kind.docker()).await?;
    if result.is_err() && !cx.options.keep_on_failure {
        network.remove(kind.docker()).await?;
    }
    cx.note(|facts| facts.network = Some(network))?;
    result
}

/// The node image with Argo CD's images in it, unpacked; made once, of images that Docker holds. An
/// environment comes up without it as well, so what goes wrong here is said and no more.
async fn prepared_image(cx: &Context, node_image: &str) -> Option<String> {
    let make = async || -> Result<Option<String>> {
        let docker = cx.docker().await?;
        let mut images = cx.images().await?;
        if cx.spec.argocd.shared().is_some() {
            // What the branch names may be pulled by the cluster itself; what Docker holds need not be.
            let mut here = Vec::new();
            for image in images {
                if docker.image_present(&image).await? {
                    here.push(image);
                }
            }
            if here.is_empty() {
                return Ok(None);
            }
            images = here;
        }
        let references: Vec<&str> = images.iter().map(String::as_str).collect();
        let Some(prepared) = Prepared::plan(docker, node_image, &references).await? else { return Ok(None) };
        if !prepared.is_made(docker).await? {
            cx.detail(CLUSTER, "preparing the node image, once: later environments start faster");
            prepared.make(docker).await?;
        }
        Ok(Some(prepared.reference()))
    };
    if cx.options.no_prepare {
        return None;
    }
    make().await.unwrap_or_else(|error| {
        tracing::warn!(%error, "no prepared node image");
        None
    })
}

/// What the environments on this machine say of Docker networks; also this one, whose creation may have
/// been cut short.
fn claimed_networks(cx: &Context) -> Vec<NetworkOwnership> {
    let names = journal::names(&cx.dirs).unwrap_or_default();
    let journals = names.iter().filter_map(|name| journal::read(&cx.dirs, name).ok().flatten());
    journals.filter_map(|journal| journal.facts.network).collect()
}
