//! Removal of a developer's branch: only what k8tre made, never a commit that nothing else holds.

use super::commit::owner;
use super::run::{expect, run};
use super::{Checkout, CommitId, Owner, checkout, names, said};
use crate::error::Result;

/// What became of a branch that was to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removal {
    Absent,
    Deleted(CommitId),
    /// Why it stays, as the end of a sentence that starts with its name.
    Kept(String),
}

impl Checkout {
    /// Deletes a local branch whose tip k8tre made for this environment, unless that would lose a commit of the developer's.
    pub async fn delete_branch(&self, branch: &str, owned_by: &Owner) -> Result<Removal> {
        let reference = names::branch_ref(branch)?;
        let Some(tip) = self.tip(branch)? else { return Ok(Removal::Absent) };
        if let Some(reason) = self.kept_because(branch, owned_by).await? {
            return Ok(Removal::Kept(reason));
        }
        let what = format!("cannot delete the branch {branch}");
        let delete = ["update-ref", "-m", "k8tre: down", "-d", &reference, &tip.to_string()];
        expect(self.git().args(delete), &what).await?;
        // Its settings go with it, as with `git branch --delete`.
        let section = format!("branch.{branch}");
        let list = self.git().args(["config", "--local", "--list", "--name-only"]);
        if run(list).await?.text().lines().any(|key| key.starts_with(&format!("{section}."))) {
            expect(self.git().args(["config", "--local", "--remove-section", &section]), &what).await?;
        }
        Ok(Removal::Deleted(tip))
    }

    /// Why `delete_branch` would leave a branch, if it would.
    pub async fn kept_because(&self, branch: &str, owned_by: &Owner) -> Result<Option<String>> {
        let reference = names::branch_ref(branch)?;
        let Some(tip) = self.tip(branch)? else { return Ok(None) };
        if let Some(reason) = self.reason_to_keep(branch, &reference, tip, owned_by)? {
            return Ok(Some(reason));
        }
        let place = self.checked_out_at(branch, &reference).await?;
        Ok(place.map(|place| format!("is checked out in {place}")))
    }

    /// Why a branch with this tip must not be deleted.
    pub(super) fn reason_to_keep(
        &self,
        branch: &str,
        reference: &str,
        tip: CommitId,
        owned_by: &Owner,
    ) -> Result<Option<String>> {
        let repository = self.repository()?;
        match owner(&repository, tip.0)? {
            None => return Ok(Some(format!("has a tip that k8tre did not make, {}", described(&repository, tip.0)))),
            Some(other) if other != *owned_by => {
                return Ok(Some(format!("was made for another environment, {} ({})", other.name, other.id)));
            }
            Some(_) => {}
        }
        let own = self.unmerged(&repository, branch, reference, tip)?;
        Ok(own.first().map(|first| {
            format!(
                "holds {} of your own that no other branch has, such as {}",
                counted(own.len()),
                described(&repository, *first)
            )
        }))
    }

    /// Commits of other people's making that only this branch (and its copies on remotes) holds.
    fn unmerged(
        &self,
        repository: &git2::Repository,
        branch: &str,
        reference: &str,
        tip: CommitId,
    ) -> Result<Vec<git2::Oid>> {
        /// The count is only shown.
        const ENOUGH: usize = 100;
        let mut walk = repository.revwalk().map_err(said)?;
        walk.push(tip.0).map_err(said)?;
        for other in repository.references().map_err(said)?.flatten() {
            let Ok(name) = other.name() else { continue };
            let copy = name.strip_prefix("refs/remotes/").and_then(|rest| rest.split_once('/'));
            // What is kept of a synced work tree goes with the environment, so it holds nothing either.
            let kept = name.starts_with("refs/k8tre/");
            // The stash hangs on to its base, which is no branch that a person would look for.
            if name == reference || kept || name == "refs/stash" || copy.is_some_and(|(_, copied)| copied == branch) {
                continue;
            }
            if let Ok(commit) = other.peel_to_commit() {
                walk.hide(commit.id()).map_err(said)?;
            }
        }
        if let Some(head) = checkout::tip(repository, "HEAD")? {
            walk.hide(head.0).map_err(said)?;
        }
        let mut own = Vec::new();
        for id in walk {
            let id = id.map_err(said)?;
            if owner(repository, id)?.is_none() {
                own.push(id);
            }
            if own.len() == ENOUGH {
                break;
            }
        }
        Ok(own)
    }
}

fn counted(commits: usize) -> String {
    if commits == 1 { "a commit".into() } else { format!("{commits} commits") }
}

fn described(repository: &git2::Repository, id: git2::Oid) -> String {
    let commit = repository.find_commit(id);
    let subject = commit.as_ref().ok().and_then(|commit| commit.summary().ok().flatten()).unwrap_or_default();
    format!("{} \"{}\"", CommitId(id).short(), crate::text::one_line(subject, 60))
}
