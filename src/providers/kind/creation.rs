//! The creation of an environment's cluster: from a prepared node image where there can be one, on a network whose maker
//! is known.

use super::provider::{owner, to_create};
use super::{KindSpec, NetworkOwnership, Prepared};
use crate::context::Context;
use crate::error::Result;
use crate::journal;
use crate::ports::machine::Machine;
use crate::preflight::ports::choose;
use crate::steps::CLUSTER;

/// What kind is to make for this environment.
pub(super) async fn spec(cx: &Context) -> Result<KindSpec> {
    let mut spec = KindSpec::new(cx.spec.name.cluster(), owner(cx));
    spec.image = super::node_image(&cx.spec);
    spec.mirrors = !cx.spec.network.mirrors.is_empty();
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

pub(super) async fn create(cx: &Context) -> Result<()> {
    let kind = to_create(cx).await?;
    let network = NetworkOwnership::before_creation(kind.docker(), &claimed_networks(cx)).await?;
    cx.note(|facts| facts.network = Some(network.clone()))?;
    let mut spec = spec(cx).await?;
    if !kind.docker().image_present(&spec.image).await?
        && let Some(held) = cx.held(&spec.image).await?
    {
        // It came in a bundle: Docker knows no digest of it.
        spec.image = held.name;
    }
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
        let images = cx.images().await?;
        let wanted = images.len();
        let here = cx.held_of(images).await?;
        // What the branch names may be pulled by the cluster itself; what Docker holds need not be.
        let some = cx.spec.argocd.shared().is_some();
        if here.is_empty() || (here.len() < wanted && !some) {
            return Ok(None);
        }
        let Some(prepared) = Prepared::plan(docker, node_image, here).await? else { return Ok(None) };
        if !prepared.is_made(docker).await? {
            cx.detail(CLUSTER, "preparing the node image, once: later environments start faster");
            prepared.make(docker).await?;
        }
        Ok(Some(prepared.reference()))
    };
    // Podman commits containers in another way, and none was at hand to try it with.
    if cx.options.no_prepare || cx.docker().await.is_ok_and(|docker| docker.endpoint().is_podman()) {
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
