//! The branch on a remote of the repository, from which Argo CD reads it there.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::Result;
use crate::ports::git::PushTarget;
use crate::steps::publish::compared;
use crate::steps::{BRANCH, PUBLISH, branch};

/// How long a server may take to complete a push whose sender was interrupted.
const LATE: Duration = Duration::from_secs(3);

pub struct PublishRemote {
    pub remote: String,
}

impl PublishRemote {
    fn target(&self) -> PushTarget {
        PushTarget::Remote(self.remote.clone())
    }
}

#[async_trait]
impl Step<Context> for PublishRemote {
    fn id(&self) -> StepId {
        PUBLISH
    }

    fn needs(&self) -> &[StepId] {
        &[BRANCH]
    }

    fn describe(&self) -> String {
        format!("branch, pushed to the remote {}", self.remote)
    }

    fn limit(&self) -> Duration {
        Duration::from_secs(300)
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        let checkout = cx.checkout().await?;
        let branch = cx.spec.name.branch();
        let Some(tip) = checkout.tip(&branch)? else { return Ok(State::Absent) };
        let there = checkout.check_remote_branch(&self.target(), &branch, &branch::owner(cx)).await?;
        Ok(compared(cx, &self.remote, there, tip))
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        let checkout = cx.checkout().await?;
        let tip = branch::tip(cx, &checkout)?;
        let now = Timestamp::now();
        let owner = branch::owner(cx);
        // What k8tre published last may be replaced, as after a rebase; commits of others may not.
        let known = cx.facts().published.and_then(|commit| commit.parse().ok());
        checkout.publish(&self.target(), &cx.spec.name.branch(), tip, &owner, known).await?;
        cx.note(|facts| facts.publish(tip, now))
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        if cx.options.keep_branch || !cx.spec.repo.exists() {
            return Ok(());
        }
        let checkout = cx.checkout().await?;
        let branch = cx.spec.name.branch();
        let tip = checkout.tip(&branch)?.map(|tip| tip.to_string());
        let started = Instant::now();
        let late = if cx.facts().published == tip { Duration::ZERO } else { LATE };
        loop {
            // One that holds the developer's own commits stays, and the audit says so.
            checkout.delete_remote_branch(&self.target(), &branch, &branch::owner(cx)).await?;
            if started.elapsed() >= late {
                return Ok(());
            }
            tokio::time::sleep(LATE / 8).await;
        }
    }
}
