//! The developer's branch: the base plus the overlay, written as git objects.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::{Error, Result};
use crate::expiry;
use crate::ports::git::{Checkout, CommitId, Overlay, Owner, Removal};
use crate::steps::{BRANCH, uses};

pub struct Branch {
    pub needs: Vec<StepId>,
}

pub fn owner(cx: &Context) -> Owner {
    Owner { name: cx.spec.name.clone(), id: cx.id.clone() }
}

#[async_trait]
impl Step<Context> for Branch {
    fn id(&self) -> StepId {
        BRANCH
    }

    fn needs(&self) -> &[StepId] {
        &self.needs
    }

    fn describe(&self) -> String {
        "developer's branch with its overlay; your checkout stays as it is".into()
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        let checkout = Checkout::open(&cx.spec.repo)?;
        let branch = cx.spec.name.branch();
        let plan = cx.overlay().await?;
        let owner = owner(cx);
        if checkout.check_branch(&branch, &owner).await?.is_none() {
            return Ok(State::Absent);
        }
        let message = message(cx);
        let overlay = overlay(&branch, &owner, plan, &message);
        let differing = checkout.overlay_differences(&overlay)?;
        Ok(match differing.first() {
            None => match uses::missing(cx, &checkout)?.first() {
                None => State::Ready,
                Some(app) => State::Drifted(format!("the files of {app} are to come from another branch")),
            },
            Some(path) => State::Drifted(format!("{} files differ from the overlay, {path} first", differing.len())),
        })
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        let checkout = Checkout::open(&cx.spec.repo)?;
        let (branch, owner, message) = (cx.spec.name.branch(), owner(cx), message(cx));
        let plan = cx.overlay().await?;
        cx.note(|facts| {
            facts.address_range = plan.preset.as_ref().and_then(|preset| preset.address_range.clone());
        })?;
        checkout.write_branch(&overlay(&branch, &owner, plan, &message)).await?;
        uses::put(cx, &checkout).await
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        if !cx.spec.repo.exists() {
            return Ok(());
        }
        let checkout = Checkout::open(&cx.spec.repo)?;
        // The environment's, not the developer's.
        checkout.forget_kept(&cx.spec.name)?;
        if cx.options.keep_branch {
            return Ok(());
        }
        match checkout.delete_branch(&cx.spec.name.branch(), &owner(cx)).await? {
            Removal::Deleted(_) | Removal::Absent => Ok(()),
            // Nobody's work is deleted; that it stays is said by the audit, not an error of this step.
            Removal::Kept(_) => Ok(()),
        }
    }
}

/// With the end that the environment has as this is written: an extension makes no commit.
fn message(cx: &Context) -> String {
    let subject = format!("k8tre: overlay of the environment {}", cx.spec.name);
    match cx.spec.expires {
        Some(expires) => format!("{subject}\n\n{}: {expires}", expiry::TRAILER),
        None => subject,
    }
}

/// Env folders that are there already are left out of the overlay, so there is nothing to seed.
static NO_SEEDS: BTreeMap<String, String> = BTreeMap::new();

fn overlay<'a>(
    branch: &'a str,
    owner: &'a Owner,
    plan: &'a crate::overlay::EnvironmentOverlay,
    message: &'a str,
) -> Overlay<'a> {
    Overlay { branch, owner, base: plan.base, files: &plan.files, seeds: &NO_SEEDS, remove: &plan.remove, message }
}

/// The commit that Argo CD is to deploy.
pub fn tip(cx: &Context, checkout: &Checkout) -> Result<CommitId> {
    let branch = cx.spec.name.branch();
    checkout.tip(&branch)?.ok_or_else(|| Error::failed(format!("the branch {branch} is gone")).hint("k8tre dev up"))
}
