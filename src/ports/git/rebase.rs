//! The developer's branch carried over to a base that went on. Like all else, without the checkout.

use super::{Checkout, CommitId, Owner, branch, merge, names, said};
use crate::error::{Error, Result};
use crate::text::one_line;

/// A branch that now starts at the new base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rebased {
    pub commit: CommitId,
    /// The tip before: what a remote may still have.
    pub previous: CommitId,
    /// Commits that were carried over.
    pub carried: usize,
}

/// A commit to be made again: its tree on the new base, and what is kept of the old one.
struct Replay {
    tree: git2::Oid,
    message: String,
    author: [(&'static str, String); 3],
}

impl Checkout {
    /// Carries the branch's commits over to the base; none when there is nothing to carry it over. All is
    /// tried first, so that a conflict leaves everything as it was.
    pub async fn rebase_branch(&self, branch: &str, base: CommitId, owned_by: &Owner) -> Result<Option<Rebased>> {
        let reference = names::branch_ref(branch)?;
        let Some(previous) = self.check_branch(branch, owned_by).await? else { return Ok(None) };
        if self.base_moved(branch, base)?.is_none() {
            return Ok(None);
        }
        self.check_not_checked_out(branch, &reference).await?;
        let replays = self.replays(branch, previous, base)?;
        let mut commit = base;
        for replay in &replays {
            commit = self.commit_as(replay.tree, commit, &replay.message, &replay.author).await?;
        }
        self.move_branch(branch, &reference, Some(previous), commit, "k8tre: rebase").await?;
        Ok(Some(Rebased { commit, previous, carried: replays.len() }))
    }

    fn replays(&self, branch: &str, tip: CommitId, base: CommitId) -> Result<Vec<Replay>> {
        let by_hand = format!("git switch {branch} && git rebase {}", base.short());
        let repository = self.repository()?;
        let mut walk = repository.revwalk().map_err(said)?;
        walk.set_sorting(git2::Sort::TOPOLOGICAL | git2::Sort::REVERSE).map_err(said)?;
        walk.push(tip.0).and_then(|()| walk.hide(base.0)).map_err(said)?;
        let mut tree = branch::tree_of(&repository, base)?;
        let mut replays = Vec::new();
        for id in walk {
            let commit = id.and_then(|id| repository.find_commit(id)).map_err(said)?;
            let shown = format!("{} \"{}\"", CommitId(commit.id()).short(), one_line(summary(&commit), 60));
            let refused = |why: &str| {
                Error::preflight(format!("{branch} cannot be carried over to {}: {why}", base.short()))
                    .hint(format!("do it by hand: {by_hand}"))
            };
            if commit.parent_count() != 1 {
                return Err(refused(&format!("{shown} is a merge")));
            }
            let message = commit.message().map_err(|_| refused(&format!("the message of {shown} is not UTF-8")))?;
            let parent = commit.parent(0).and_then(|parent| parent.tree()).map_err(said)?;
            let theirs = commit.tree().map_err(said)?;
            let mut merged = repository.merge_trees(&parent, &tree, &theirs, None).map_err(said)?;
            if merged.has_conflicts() {
                let why = format!("{shown} and the base both changed {}", merge::conflicts(&merged)?.join(", "));
                return Err(refused(&why));
            }
            let id = merged.write_tree_to(&repository).map_err(said)?;
            // What the base has taken in needs no commit.
            if id != tree.id() {
                replays.push(Replay { tree: id, message: message.to_owned(), author: author(&commit) });
                tree = repository.find_tree(id).map_err(said)?;
            }
        }
        Ok(replays)
    }
}

fn summary<'a>(commit: &'a git2::Commit<'_>) -> &'a str {
    commit.summary().ok().flatten().unwrap_or_default()
}

/// The variables that make git keep a commit's author and date.
fn author(commit: &git2::Commit<'_>) -> [(&'static str, String); 3] {
    let author = commit.author();
    let (when, offset) = (author.when(), author.when().offset_minutes().abs());
    let date = format!("@{} {}{:02}{:02}", when.seconds(), when.sign(), offset / 60, offset % 60);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    [
        ("GIT_AUTHOR_NAME", text(author.name_bytes())),
        ("GIT_AUTHOR_EMAIL", text(author.email_bytes())),
        ("GIT_AUTHOR_DATE", date),
    ]
}
