//! The environment's context in the user's own kubeconfig: only when asked for.

use async_trait::async_trait;

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::Result;
use crate::ports::kubeconfig;
use crate::steps::{CLUSTER, KUBECONFIG};

pub struct MergedKubeconfig;

#[async_trait]
impl Step<Context> for MergedKubeconfig {
    fn id(&self) -> StepId {
        KUBECONFIG
    }

    fn needs(&self) -> &[StepId] {
        &[CLUSTER]
    }

    fn describe(&self) -> String {
        "context in your own kubeconfig; your current context stays".into()
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        let path = cx.kubeconfig();
        if !path.exists() {
            return Ok(Context::needs_cluster());
        }
        kubeconfig::is_merged(&path, &kubeconfig::users()?)
            .await
            .map(|merged| if merged { State::Ready } else { State::Absent })
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        kubeconfig::merge(&cx.kubeconfig(), &kubeconfig::users()?).await
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        kubeconfig::unmerge(&cx.provider().context(&cx.spec.name), &kubeconfig::users()?).await
    }
}
