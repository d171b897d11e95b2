//! The identity by which a shared Argo CD works in the environment's cluster.

use async_trait::async_trait;
use serde_json::Value;

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::Result;
use crate::overlay::EnvironmentOverlay;
use crate::shared::role;
use crate::steps::{BRANCH, CLUSTER, IDENTITY, objects};

pub struct Identity;

/// All that it is made of, by what the branch deploys.
fn wanted(cx: &Context) -> Result<Vec<Value>> {
    let named = EnvironmentOverlay::named(&cx.spec)?;
    Ok(role::objects(&named.groups).into_iter().map(|object| objects::owned(object, &cx.id)).collect())
}

#[async_trait]
impl Step<Context> for Identity {
    fn id(&self) -> StepId {
        IDENTITY
    }

    fn needs(&self) -> &[StepId] {
        &[CLUSTER, BRANCH]
    }

    fn inside(&self) -> Option<StepId> {
        Some(CLUSTER)
    }

    fn describe(&self) -> String {
        format!("ServiceAccount {} for Argo CD, with listed rights", role::ACCOUNT)
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        let Some(kube) = cx.kube().await? else { return Ok(Context::needs_cluster()) };
        for object in wanted(cx)? {
            match objects::observe(&kube, &object, role::NAMESPACE, &cx.id).await? {
                State::Ready => {}
                other => return Ok(other),
            }
        }
        Ok(State::Ready)
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        let kube = cx.require_kube().await?;
        // One after the other: the account's namespace comes first.
        for object in wanted(cx)? {
            objects::refuse_foreign(&kube, &object, role::NAMESPACE, &cx.id).await?;
            kube.apply(&object, role::NAMESPACE).await?;
        }
        Ok(())
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        let Some(kube) = cx.kube().await? else { return Ok(()) };
        for object in wanted(cx)?.iter().rev() {
            objects::delete_owned(&kube, object, role::NAMESPACE, &cx.id).await?;
        }
        Ok(())
    }
}
