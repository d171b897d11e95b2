//! The environment's cluster, by whatever provider makes it.

use std::time::Duration;

use async_trait::async_trait;

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::Result;
use crate::providers::{ClusterState, Provider};
use crate::steps::CLUSTER;

pub struct Cluster {
    pub provider: Box<dyn Provider>,
}

#[async_trait]
impl Step<Context> for Cluster {
    fn id(&self) -> StepId {
        CLUSTER
    }

    fn describe(&self) -> String {
        self.provider.describe()
    }

    fn limit(&self) -> Duration {
        Duration::from_secs(900)
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        Ok(match self.provider.observe(cx).await? {
            ClusterState::Absent => State::Absent,
            ClusterState::Stopped(why) | ClusterState::Partial(why) => State::Drifted(why),
            ClusterState::Foreign(why) => return Err(self.provider.not_ours(cx, &why)),
            ClusterState::Running => match cx.kube().await? {
                None => State::Drifted("its kubeconfig is lost".into()),
                Some(kube) => match kube.ready().await {
                    Ok(()) => State::Ready,
                    Err(error) => State::Drifted(error.to_string()),
                },
            },
        })
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        match self.provider.observe(cx).await? {
            ClusterState::Running => {
                cx.detail(CLUSTER, "waiting for its API server");
                self.provider.write_kubeconfig(cx).await?;
            }
            ClusterState::Stopped(_) => {
                cx.detail(CLUSTER, "starting it");
                self.provider.start(cx).await?;
            }
            ClusterState::Absent | ClusterState::Partial(_) => self.provider.create(cx).await?,
            ClusterState::Foreign(why) => return Err(self.provider.not_ours(cx, &why)),
        }
        cx.forget_kube();
        Ok(())
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        self.provider.delete(cx).await
    }
}
