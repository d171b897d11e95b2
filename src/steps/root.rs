//! The root Application: from it Argo CD deploys the developer's ApplicationSets.

use async_trait::async_trait;
use serde_json::Value;

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::Result;
use crate::shared::{marked, readable, removal};
use crate::steps::{ARGOCD, CLUSTER, PROJECT, PUBLISH, REGISTRATION, REPOSITORY_ACCESS, ROOT, SECRETS, objects};

pub struct Root {
    pub after_secrets: bool,
    /// On an Argo CD that others use too.
    pub shared: bool,
    /// That one has no way to the repository but by this environment's Secrets.
    pub after_access: bool,
}

async fn application(cx: &Context) -> Result<Value> {
    let overlay = cx.overlay().await?;
    let root = overlay.root_application.clone();
    Ok(if cx.spec.argocd.shared().is_some() { marked(cx, root) } else { objects::owned(root, &cx.id) })
}

#[async_trait]
impl Step<Context> for Root {
    fn id(&self) -> StepId {
        ROOT
    }

    fn needs(&self) -> &[StepId] {
        // An Application made before the repo-server answers stays in error until somebody refreshes it.
        const NEEDS: [StepId; 4] = [PUBLISH, REGISTRATION, ARGOCD, SECRETS];
        const SHARED: [StepId; 4] = [PUBLISH, REGISTRATION, PROJECT, SECRETS];
        // That one comes after the projects.
        const ACCESS: [StepId; 4] = [PUBLISH, REGISTRATION, REPOSITORY_ACCESS, SECRETS];
        let needs = match (self.shared, self.after_access) {
            (true, true) => &ACCESS,
            (true, false) => &SHARED,
            (false, _) => &NEEDS,
        };
        if self.after_secrets { needs } else { &needs[..3] }
    }

    fn inside(&self) -> Option<StepId> {
        (!self.shared).then_some(CLUSTER)
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
        if self.shared {
            return removal::remove_applications(cx).await;
        }
        let Some(argocd) = cx.argocd().await? else { return Ok(()) };
        objects::delete_owned(&argocd.kube, &application(cx).await?, &argocd.namespace, &cx.id).await
    }
}
