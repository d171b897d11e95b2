//! The base of the developer's branch against what its remotes have.

use async_trait::async_trait;

use super::{Check, Context, Finding, Remedy};
use crate::error::Result;
use crate::ports::git::{Checkout, PushTarget};

/// A fork's own remote, and that of what it is a fork of.
const REMOTES: [&str; 2] = ["origin", "upstream"];

pub struct Base;

#[async_trait]
impl Check for Base {
    fn name(&self) -> &'static str {
        "whether the base is up to date"
    }

    async fn run(&self, cx: &Context) -> Result<Vec<Finding>> {
        let (Some(checkout), Some(meant)) = (&cx.checkout, &cx.meant) else { return Ok(Vec::new()) };
        let there = checkout.remotes()?;
        let mut findings = Vec::new();
        for remote in REMOTES.into_iter().filter(|remote| there.iter().any(|one| one == remote)) {
            findings.extend(behind(checkout, remote, &meant.base)?);
            // Only who asks for the time asks the network at all.
            if cx.clock.is_some() && !cx.fetcher.is_offline() {
                findings.extend(unfetched(checkout, remote, &meant.base).await);
            }
        }
        Ok(findings)
    }
}

/// As far as this checkout knows its remotes.
fn behind(checkout: &Checkout, remote: &str, base: &str) -> Result<Option<Finding>> {
    let (Some(ours), Some(theirs)) = (checkout.tip(base)?, checkout.remote_branch(remote, base)?) else {
        return Ok(None);
    };
    let behind = checkout.ahead_behind(ours, theirs)?.behind;
    if behind == 0 {
        return Ok(None);
    }
    let root = checkout.root().display();
    let commits = if behind == 1 { "1 commit".to_owned() } else { format!("{behind} commits") };
    let fix = match checkout.head_branch().as_deref() == Some(base) {
        true => format!("git -C {root} merge --ff-only {remote}/{base}"),
        false => format!("git -C {root} fetch {remote} {base}:{base}"),
    };
    Ok(Some(
        Finding::warning("base-behind", format!("{base} is {commits} behind {remote}/{base}"))
            .why("the environment starts from what is here, and your change will have to be carried over later")
            .fix(fix),
    ))
}

/// Whether the remote has gone on since it was last fetched. Who cannot reach it may have to work without.
async fn unfetched(checkout: &Checkout, remote: &str, base: &str) -> Option<Finding> {
    let known = checkout.remote_branch(remote, base).ok()??;
    let target = PushTarget::Remote(remote.to_owned());
    let root = checkout.root();
    match checkout.remote_tip(&target, base).await {
        Ok(Some(tip)) if tip != known => Some(
            Finding::info("base-unfetched", format!("{remote} has a newer {base} than was fetched"))
                .why("what others did since is not here")
                .fix(format!("git -C {} fetch {remote}", root.display()))
                .remedy(Remedy::GitFetch { repo: root.to_owned(), remote: remote.to_owned() }),
        ),
        Ok(_) => None,
        Err(error) => Some(
            Finding::info("remote-silent", format!("{remote} cannot be asked: {error}"))
                .why("whether the base is up to date is not known")
                .fix(format!("git -C {} ls-remote {remote}", root.display())),
        ),
    }
}
