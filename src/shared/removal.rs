//! The Applications of an environment, taken off a shared Argo CD: by Argo CD itself while their cluster answers, and
//! without asking it when it cannot.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::argocd::side::ArgoCd;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::providers::ClusterState;
use crate::shared::remains::{Remains, called, is_to_cluster};
use crate::steps::ROOT;
use crate::steps::look::{application_set_type, application_type, ignore_absent};

const POLL: Duration = Duration::from_millis(500);
/// What does not move for so long is stuck: an Argo CD without its controller, a cluster that it cannot reach.
const STUCK: Duration = Duration::from_secs(15);
const LIMIT: Duration = Duration::from_secs(40);
/// A cluster that is silent for so long cannot answer Argo CD either.
const ANSWER: Duration = Duration::from_secs(6);

/// Deletes the root Application, the ApplicationSets and the Applications, in this order, and waits until all are gone.
pub async fn remove_applications(cx: &Context) -> Result<()> {
    let argocd = super::answering(cx).await?;
    remove(cx, &argocd, silence(cx).await).await
}

/// The same by one who knows why the cluster cannot answer, or that it does.
pub async fn remove(cx: &Context, argocd: &ArgoCd, silent: Option<String>) -> Result<()> {
    if let Some(why) = &silent {
        cx.detail(ROOT, &format!("the cluster cannot answer ({why}): its Applications go without asking it"));
    }
    let (began, mut moved) = (Instant::now(), Instant::now());
    let mut before = usize::MAX;
    loop {
        let remains = Remains::read(cx, argocd).await?;
        if !remains.has_applications() {
            return Ok(());
        }
        let left = remains.applications.len() + remains.sets.len();
        if left < before {
            (before, moved) = (left, Instant::now());
        }
        if moved.elapsed() >= STUCK || began.elapsed() >= LIMIT {
            return Err(stuck(cx, &remains, began.elapsed()));
        }
        cx.detail(ROOT, &format!("waiting until {left} Applications and ApplicationSets are gone"));
        step(cx, argocd, &remains, silent.is_some()).await?;
        tokio::time::sleep(POLL).await;
    }
}

/// One round: what makes others goes first.
async fn step(cx: &Context, argocd: &ArgoCd, remains: &Remains, silent: bool) -> Result<()> {
    let root = cx.spec.name.root_application();
    let is_root = |app: &&Value| app["metadata"]["name"] == *root;
    let of = application_type();
    for app in remains.applications.iter().filter(is_root).filter(|app| !is_deleted(app)) {
        argocd.delete(&of, called(app)).await?;
    }
    for set in &remains.sets {
        argocd.delete(&application_set_type(), called(set)).await?;
    }
    if !remains.sets.is_empty() {
        // An ApplicationSet that is still there would make its Applications again.
        return Ok(());
    }
    for app in remains.applications.iter().filter(|app| !is_root(app)) {
        if !is_deleted(app) {
            argocd.delete(&of, called(app)).await?;
        } else if silent && is_to_cluster(&cx.spec, app) && has_finalizers(app) {
            let patch = json!({"metadata": {"finalizers": null}});
            ignore_absent(argocd.merge(&of, called(app), &patch).await)?;
        }
    }
    Ok(())
}

fn is_deleted(app: &Value) -> bool {
    app["metadata"]["deletionTimestamp"].is_string()
}

fn has_finalizers(app: &Value) -> bool {
    app["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty())
}

/// Why the environment's cluster cannot answer; none if it does.
async fn silence(cx: &Context) -> Option<String> {
    match cx.provider().observe(cx).await {
        Ok(ClusterState::Running) | Err(_) => {}
        Ok(state) => return Some(state.to_string()),
    }
    let ask = async {
        match cx.kube().await? {
            Some(kube) => kube.ready().await,
            None => Err(Error::failed("it has no kubeconfig")),
        }
    };
    match tokio::time::timeout(ANSWER, ask).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("no answer within {} s", ANSWER.as_secs())),
    }
}

fn stuck(cx: &Context, remains: &Remains, waited: Duration) -> Error {
    let said: Vec<String> = remains.applications.iter().filter_map(complaint).collect();
    let error = Error::failed(format!("still there in Argo CD after {} s: {}", waited.as_secs(), remains.shown()))
        .detail(said.join("\n"));
    match cx.spec.argocd.shared() {
        Some(shared) => error.hint(format!(
            "whether its controller runs: kubectl --context {} -n {} get pods",
            shared.context, shared.namespace
        )),
        None => error,
    }
}

/// Why Argo CD could not delete what an Application deployed.
fn complaint(app: &Value) -> Option<String> {
    let conditions = app["status"]["conditions"].as_array().into_iter().flatten();
    let error = conditions.into_iter().find(|condition| condition["type"] == "DeletionError")?;
    Some(format!("{}  {}", called(app), crate::text::one_line(error["message"].as_str()?, 300)))
}
