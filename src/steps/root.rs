//! The root Application: from it Argo CD deploys the developer's ApplicationSets.

use async_trait::async_trait;
use serde_json::Value;

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::Result;
use crate::providers::existing::deployed;
use crate::shared::{marked, readable, removal};
use crate::steps::{CLUSTER, ROOT, objects};

pub struct Root {
    pub needs: Vec<StepId>,
    /// In a project of its own, on an Argo CD that others may use too.
    pub fenced: bool,
}

async fn application(cx: &Context) -> Result<Value> {
    let overlay = cx.overlay().await?;
    let root = overlay.root_application.clone();
    Ok(if cx.spec.is_fenced() { marked(cx, root) } else { objects::owned(root, &cx.id) })
}

#[async_trait]
impl Step<Context> for Root {
    fn id(&self) -> StepId {
        ROOT
    }

    fn needs(&self) -> &[StepId] {
        &self.needs
    }

    fn inside(&self) -> Option<StepId> {
        (!self.fenced).then_some(CLUSTER)
    }

    fn describe(&self) -> String {
        "root Application, which deploys the ApplicationSets".into()
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        let Some(argocd) = cx.argocd().await? else { return Ok(Context::needs_cluster()) };
        objects::observe(&argocd.kube, &application(cx).await?, &argocd.namespace, &cx.id).await
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        let argocd = cx.require_argocd().await?;
        let (kube, namespace) = (&argocd.kube, &argocd.namespace);
        let application = application(cx).await?;
        objects::refuse_foreign(kube, &application, namespace, &cx.id).await?;
        // What is applied to an Application that is being deleted goes with it.
        objects::await_deletion(kube, &application, namespace, |text| cx.detail(ROOT, text)).await?;
        argocd.apply(&application).await?;
        match cx.spec.argocd.shared() {
            Some(shared) => readable::check(cx, &argocd, shared).await,
            None => Ok(()),
        }
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        if self.fenced && cx.provider().owns_cluster() {
            return removal::remove_applications(cx).await;
        }
        let Some(argocd) = cx.argocd().await? else { return Ok(()) };
        if self.fenced {
            deployed::note(cx, &argocd).await?;
            removal::remove_applications(cx).await?;
            return deployed::remove(cx, &argocd.kube).await;
        }
        objects::delete_owned(&argocd.kube, &application(cx).await?, &argocd.namespace, &cx.id).await
    }
}
