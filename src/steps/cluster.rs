//! The environment's own cluster, made by kind.

use std::time::Duration;

use async_trait::async_trait;

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::{Error, Result};
use crate::journal;
use crate::ports::fetch::Fetcher;
use crate::providers::ClusterState;
use crate::providers::kind::{Kind, KindSpec, NetworkOwnership, Owner, binary};
use crate::steps::CLUSTER;

/// What a stopped or restarted cluster gets to answer again.
const READY_LIMIT: Duration = Duration::from_secs(120);

pub struct Cluster;

/// What kind is to make for this environment.
pub fn kind_spec(cx: &Context) -> Result<KindSpec> {
    let owner = Owner { environment: cx.spec.name.to_string(), id: cx.id.clone() };
    let mut spec = KindSpec::new(cx.spec.name.cluster(), owner);
    if let Some(image) = &cx.spec.kind.node_image {
        spec.image.clone_from(image);
    }
    spec.configure(&cx.spec.kind.config)?;
    Ok(spec)
}

/// kind with its program, which is fetched if need be.
pub async fn kind_to_create(cx: &Context) -> Result<Kind> {
    let fetcher =
        Fetcher::new(&cx.dirs.cache).offline(cx.options.offline).ca_bundle(cx.options.ca_bundle.clone());
    Ok(Kind::new(cx.docker().await?.clone(), Some(binary::ensure(&fetcher).await?)))
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
                kind.start(&cluster).await?;
                kind.write_kubeconfig(&cluster, &cx.kubeconfig()).await?;
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

async fn create(cx: &Context) -> Result<()> {
    let kind = kind_to_create(cx).await?;
    let network = NetworkOwnership::before_creation(kind.docker(), &claimed_networks(cx)).await?;
    cx.note(|facts| facts.network = Some(network.clone()))?;
    let result = kind.create(&kind_spec(cx)?, &cx.kubeconfig(), cx.options.keep_on_failure).await;
    // Also after a failure: kind makes the network before anything that can fail.
    let network = network.after_creation(kind.docker()).await?;
    if result.is_err() && !cx.options.keep_on_failure {
        network.remove(kind.docker()).await?;
    }
    cx.note(|facts| facts.network = Some(network))?;
    result
}

/// Docker networks that other environments on this machine say a k8tre made.
fn claimed_networks(cx: &Context) -> Vec<String> {
    let names = journal::names(&cx.dirs).unwrap_or_default();
    let journals = names.iter().filter_map(|name| journal::read(&cx.dirs, name).ok().flatten());
    journals.filter_map(|journal| journal.facts.network).filter(|n| n.ours).filter_map(|n| n.id).collect()
}
