//! The cluster Secret by which ApplicationSets find this environment's cluster.
//!
//! A co-located Argo CD has no Secret for its own cluster until somebody makes one, and a cluster
//! generator with a selector sees only clusters that have one.

use async_trait::async_trait;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::Result;
use crate::expiry;
use crate::gitops::world::IN_CLUSTER;
use crate::shared::rights::secret_name;
use crate::steps::{ARGOCD_CONFIG, BRANCH, CLUSTER, REGISTRATION, objects};

pub struct Registration;

async fn secret(cx: &Context) -> Result<Value> {
    let mut labels = json!(cx.overlay().await?.labels);
    labels["argocd.argoproj.io/secret-type"] = json!("cluster");
    let encoded = |text: &str| BASE64_STANDARD.encode(text);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": secret_name(&cx.spec.name), "labels": labels},
        "data": {
            "name": encoded(&cx.cluster_name()),
            "server": encoded(IN_CLUSTER),
            "config": encoded(r#"{"tlsClientConfig":{"insecure":false}}"#)
        }
    });
    Ok(expiry::stamped(objects::owned(secret, &cx.id), cx.spec.expires))
}

#[async_trait]
impl Step<Context> for Registration {
    fn id(&self) -> StepId {
        REGISTRATION
    }

    fn needs(&self) -> &[StepId] {
        // The labels follow from the repository, which the branch's step has seen.
        &[ARGOCD_CONFIG, BRANCH]
    }

    fn inside(&self) -> Option<StepId> {
        Some(CLUSTER)
    }

    fn describe(&self) -> String {
        "cluster Secret with the labels that ApplicationSets select by".into()
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        let Some(argocd) = cx.argocd().await? else { return Ok(Context::needs_cluster()) };
        objects::observe(&argocd.kube, &secret(cx).await?, &argocd.namespace, &cx.id).await
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        let argocd = cx.require_argocd().await?;
        let secret = secret(cx).await?;
        objects::refuse_foreign(&argocd.kube, &secret, &argocd.namespace, &cx.id).await?;
        argocd.apply(&secret).await.map(drop)
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        let Some(argocd) = cx.argocd().await? else { return Ok(()) };
        let named = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret_name(&cx.spec.name)}});
        objects::delete_owned(&argocd.kube, &named, &argocd.namespace, &cx.id).await
    }
}
