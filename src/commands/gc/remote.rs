//! Branches of ended environments on a remote, whichever machine pushed them.

use std::path::PathBuf;

use jiff::Timestamp;

use super::local::Ids;
use super::{Candidate, Found, LeftAlone, What};
use crate::error::Result;
use crate::expiry;
use crate::ports::git::{Checkout, Owner, PushTarget, Remains, Removal};

pub struct RemoteBranch {
    repo: PathBuf,
    target: PushTarget,
    owner: Owner,
}

/// Those whose own end is over, and of whose environment nothing else was found. A later end is known to the Argo CD
/// alone that the environment is on.
pub async fn look(remote: &str, known: &Ids, now: Timestamp, found: &mut Found) -> Result<()> {
    let repo = std::env::current_dir()?;
    let checkout = Checkout::open(&repo)?;
    let target = PushTarget::Remote(remote.to_owned());
    for (_, branch) in checkout.remote_branches(&target, "dev/").await? {
        let Some(tip) = checkout.fetch(&target, &branch).await? else { continue };
        let Some(owner) = checkout.owner(tip)?.filter(|owner| owner.name.branch() == branch) else { continue };
        let end: Option<Timestamp> = checkout.trailer(tip, expiry::TRAILER)?.and_then(|end| end.parse().ok());
        let Some(end) = end.filter(|end| expiry::is_over(Some(*end), now) && !known.contains(&owner.id)) else {
            continue;
        };
        match checkout.remote_remains(&target, &branch, &owner).await? {
            Remains::Nothing => {}
            Remains::Kept(why) => found.left_alone.push(LeftAlone { name: branch, why: format!("it {why}") }),
            Remains::Ours(_) => found.candidates.push(Candidate {
                name: branch,
                place: remote.to_owned(),
                reason: expiry::shown(end, now),
                what: What::RemoteBranch(RemoteBranch { repo: repo.clone(), target: target.clone(), owner }),
            }),
        }
    }
    Ok(())
}

impl RemoteBranch {
    /// The environment's.
    pub fn id(&self) -> &str {
        &self.owner.id
    }

    pub async fn remove(&self) -> Result<Option<String>> {
        let checkout = Checkout::open(&self.repo)?;
        let removed = checkout.delete_remote_branch(&self.target, &self.owner.name.branch(), &self.owner).await?;
        Ok(match removed {
            Removal::Absent | Removal::Deleted(_) => None,
            Removal::Kept(why) => Some(why),
        })
    }
}
