//! What the cluster's nodes have to know of the network around them, before they pull anything.

use async_trait::async_trait;

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::Result;
use crate::steps::{CLUSTER, NODE_NETWORK};

pub struct NodeNetwork;

#[async_trait]
impl Step<Context> for NodeNetwork {
    fn id(&self) -> StepId {
        NODE_NETWORK
    }

    fn needs(&self) -> &[StepId] {
        &[CLUSTER]
    }

    fn inside(&self) -> Option<StepId> {
        Some(CLUSTER)
    }

    fn describe(&self) -> String {
        "authorities and registry mirrors, told to the nodes".into()
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        if cx.kube().await?.is_none() {
            return Ok(Context::needs_cluster());
        }
        Ok(match cx.provider().has_network(cx).await? {
            true => State::Ready,
            false => State::Drifted("the nodes do not know of this network yet".into()),
        })
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        cx.provider().set_network(cx).await
    }

    async fn undo(&self, _cx: &Context) -> Result<()> {
        // It is in the nodes, and goes with them.
        Ok(())
    }
}
