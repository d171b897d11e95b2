//! The root Application: from it Argo CD deploys the developer's ApplicationSets.

use async_trait::async_trait;
use serde_json::Value;

use crate::argocd::NAMESPACE;
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
        let Some(kube) = cx.kube().await? else { return Ok(Context::needs_cluster()) };
        objects::observe(&kube, &application(cx).await?, NAMESPACE, &cx.id).await
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        let kube = cx.require_kube().await?;
        let application = application(cx).await?;
        objects::refuse_foreign(&kube, &application, NAMESPACE, &cx.id).await?;
        // What is applied to an Application that is being deleted goes with it.
        objects::await_deletion(&kube, &application, NAMESPACE, |text| cx.detail(ROOT, text)).await?;
        kube.apply(&application, NAMESPACE).await.map(drop)
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        let Some(kube) = cx.kube().await? else { return Ok(()) };
        objects::delete_owned(&kube, &application(cx).await?, NAMESPACE, &cx.id).await
    }
}
