//! The branch, brought to where Argo CD reads it.

use std::time::Duration;

use async_trait::async_trait;
use backon::{ConstantBuilder, Retryable};
use jiff::Timestamp;

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::{Error, Result};
use crate::ports::git::{Checkout, CommitId, Lease, PushTarget};
use crate::ports::transport;
use crate::steps::{BRANCH, CLUSTER, GIT_SERVER, PUBLISH, branch};

/// How often a push is tried again, once a second, while the server's pod comes back.
const ATTEMPTS: usize = 60;

pub struct Publish;

/// The git server in the environment's cluster.
pub fn target(cx: &Context) -> Result<PushTarget> {
    Ok(PushTarget::Command {
        url: transport::URL.into(),
        ssh_command: transport::ssh_command()?,
        env: transport::variables(&cx.kubeconfig())?,
    })
}

/// The synced work tree that the git server has in place of the branch; none once the branch went on.
pub fn work_tree(cx: &Context) -> Result<Option<CommitId>> {
    let Some(synced) = cx.facts().synced else { return Ok(None) };
    let checkout = Checkout::open(&cx.spec.repo)?;
    let commit: CommitId = synced.commit.parse()?;
    let tip = checkout.tip(&cx.spec.name.branch())?;
    Ok((tip.is_some_and(|tip| tip.to_string() == synced.tip) && checkout.has(commit)?).then_some(commit))
}

/// The commit that the git server is to have.
fn wanted(cx: &Context, checkout: &Checkout) -> Result<Option<CommitId>> {
    Ok(match work_tree(cx)? {
        Some(commit) => Some(commit),
        None => checkout.tip(&cx.spec.name.branch())?,
    })
}

/// What a place has, compared with what it is to have. One that k8tre did not bring there is not recorded yet.
pub fn compared(cx: &Context, place: &str, there: Option<CommitId>, wanted: CommitId) -> State {
    match there {
        None => State::Absent,
        Some(there) if there == wanted && cx.facts().published.as_deref() == Some(&wanted.to_string()) => State::Ready,
        Some(there) => State::Drifted(format!("{place} has {}, not {}", there.short(), wanted.short())),
    }
}

#[async_trait]
impl Step<Context> for Publish {
    fn id(&self) -> StepId {
        PUBLISH
    }

    fn needs(&self) -> &[StepId] {
        &[BRANCH, GIT_SERVER]
    }

    fn inside(&self) -> Option<StepId> {
        Some(CLUSTER)
    }

    fn describe(&self) -> String {
        "branch, pushed to the git server in the cluster".into()
    }

    fn limit(&self) -> Duration {
        Duration::from_secs(300)
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        if cx.kube().await?.is_none() {
            return Ok(Context::needs_cluster());
        }
        let checkout = Checkout::open(&cx.spec.repo)?;
        let branch = cx.spec.name.branch();
        let Some(tip) = wanted(cx, &checkout)? else { return Ok(State::Absent) };
        let there = match checkout.remote_tip(&target(cx)?, &branch).await {
            Ok(there) => there,
            // Right after a restart the server's pod may look ready and not be; `apply` waits for it.
            Err(error) => return Ok(State::Drifted(error.detail_text().unwrap_or(error.message()).to_owned())),
        };
        Ok(compared(cx, "the server", there, tip))
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        let checkout = Checkout::open(&cx.spec.repo)?;
        let tip = match work_tree(cx)? {
            Some(commit) => commit,
            None => branch::tip(cx, &checkout)?,
        };
        // Before the push, so that no look of Argo CD's at the new commit can seem too old.
        let now = Timestamp::now();
        // The server is this environment's alone: whatever it holds, the branch here is what counts.
        let (target, branch) = (target(cx)?, cx.spec.name.branch());
        let retries = ConstantBuilder::default().with_delay(Duration::from_secs(1)).with_max_times(ATTEMPTS);
        (|| checkout.push(&target, &branch, tip, Lease::Any))
            .retry(retries)
            .notify(|error: &Error, _| cx.detail(PUBLISH, &format!("again: {error}")))
            .await?;
        let branch_is_back = cx.facts().synced.is_some_and(|synced| synced.commit != tip.to_string());
        cx.note(|facts| {
            facts.publish(tip, now);
            if branch_is_back {
                facts.synced = None;
            }
        })?;
        if branch_is_back {
            checkout.forget_kept(&cx.spec.name)?;
        }
        Ok(())
    }

    async fn undo(&self, _cx: &Context) -> Result<()> {
        // It is in the cluster's git server, and goes with it.
        Ok(())
    }
}
