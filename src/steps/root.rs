//! The root Application: from it Argo CD deploys the developer's ApplicationSets.

use async_trait::async_trait;
use serde_json::Value;

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::Result;
use crate::steps::{ARGOCD, CLUSTER, PUBLISH, REGISTRATION, ROOT, SECRETS, objects};

pub struct Root {
    pub after_secrets: bool,
}

async fn application(cx: &Context) -> Result<Value> {
    let overlay = cx.overlay().await?;
    Ok(objects::owned(overlay.root_application.clone(), &cx.id))
}

#[async_trait]
impl Step<Context> for Root {
    fn id(&self) -> StepId {
        ROOT
    }

    fn needs(&self) -> &[StepId] {
        // An Application made before the repo-server answers stays in error until somebody refreshes it.
        const NEEDS: [StepId; 4] = [PUBLISH, REGISTRATION, ARGOCD, SECRETS];
        if self.after_secrets { &NEEDS } else { &NEEDS[..3] }
    }

    fn inside(&self) -> Option<StepId> {
        Some(CLUSTER)
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
        argocd.apply(&application).await.map(drop)
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        let Some(argocd) = cx.argocd().await? else { return Ok(()) };
        objects::delete_owned(&argocd.kube, &application(cx).await?, &argocd.namespace, &cx.id).await
    }
}
