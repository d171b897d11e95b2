//! The environment's AppProjects on a shared Argo CD: what its Applications, and its root Application, may do there.
//!
//! k8tre applies them itself. Were they in the branch, whoever can push to it could widen them.

use async_trait::async_trait;
use serde_json::Value;

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::{Error, Result};
use crate::shared::remains::{Remains, called};
use crate::shared::{answering, marked};
use crate::steps::{BRANCH, PROJECT, objects};

pub struct Project;

async fn wanted(cx: &Context) -> Result<Vec<Value>> {
    Ok(cx.overlay().await?.projects.iter().cloned().map(|project| marked(cx, project)).collect())
}

#[async_trait]
impl Step<Context> for Project {
    fn id(&self) -> StepId {
        PROJECT
    }

    fn needs(&self) -> &[StepId] {
        &[BRANCH]
    }

    fn describe(&self) -> String {
        "AppProjects: this cluster alone, from this repository alone".into()
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        let argocd = cx.require_argocd().await?;
        for project in wanted(cx).await? {
            match objects::observe(&argocd.kube, &project, &argocd.namespace, &cx.id).await? {
                State::Ready => {}
                other => return Ok(other),
            }
        }
        Ok(State::Ready)
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        let argocd = answering(cx).await?;
        for project in wanted(cx).await? {
            objects::refuse_foreign(&argocd.kube, &project, &argocd.namespace, &cx.id).await?;
            argocd.apply(&project).await?;
        }
        Ok(())
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        let argocd = answering(cx).await.map_err(|error| error.context("the AppProjects stay"))?;
        let remains = Remains::read(cx, &argocd).await?;
        if remains.has_applications() {
            // Without its project, Argo CD can delete no Application.
            return Err(Error::failed(format!("the AppProjects stay while there are: {}", remains.shown())));
        }
        for project in &remains.projects {
            argocd.delete(&crate::shared::check::project_type(), called(project)).await?;
        }
        Ok(())
    }
}
