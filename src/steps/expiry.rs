//! The end of an environment, written in its cluster: found there also by who has no journal of it.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::{Error, Result};
use crate::steps::{CLUSTER, EXPIRY};

pub struct Expiry;

fn wanted(cx: &Context) -> Result<Timestamp> {
    cx.spec.expires.ok_or_else(|| Error::failed("the environment has no end"))
}

#[async_trait]
impl Step<Context> for Expiry {
    fn id(&self) -> StepId {
        EXPIRY
    }

    fn needs(&self) -> &[StepId] {
        &[CLUSTER]
    }

    fn inside(&self) -> Option<StepId> {
        Some(CLUSTER)
    }

    fn describe(&self) -> String {
        "its end, written in the cluster".into()
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        Ok(match cx.provider().has_expiry(cx, wanted(cx)?).await? {
            true => State::Ready,
            false => State::Absent,
        })
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        cx.provider().set_expiry(cx, wanted(cx)?).await
    }

    async fn undo(&self, _cx: &Context) -> Result<()> {
        // Gone with the cluster, and of no harm in one that stays.
        Ok(())
    }
}
