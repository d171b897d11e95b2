//! The developer's branch: written as objects, so that checkout, index, HEAD and stash stay as they are.

use std::collections::BTreeMap;

use super::commit::owner;
use super::run::{expect, typed};
use super::{Checkout, CommitId, Owner, checkout, names, said};
use crate::error::{Error, Result, ResultExt};
use crate::text::one_line;

/// What the branch of an environment has to hold.
#[derive(Debug, Clone, Copy)]
pub struct Overlay<'a> {
    pub branch: &'a str,
    pub owner: &'a Owner,
    /// Where a new branch starts.
    pub base: CommitId,
    /// Files with exactly this content.
    pub files: &'a BTreeMap<String, String>,
    /// Files that are the developer's once they are there: written only where absent.
    pub seeds: &'a BTreeMap<String, String>,
    /// Files or folders that must not be there.
    pub remove: &'a [String],
    /// What the commit says; the trailer is added.
    pub message: &'a str,
}

/// What writing a branch did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Created,
    /// A commit was added on top.
    Added,
    Unchanged,
}

/// Where a branch stands after it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchTip {
    pub commit: CommitId,
    pub change: Change,
}

/// The base has commits that the branch lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BaseMoved {
    pub missing: usize,
    /// Commits of the branch that a rebase would carry over.
    pub own: usize,
}

impl Checkout {
    /// Makes the branch hold the overlay: creates it on the base, or adds one commit if a file differs.
    pub async fn write_branch(&self, overlay: &Overlay<'_>) -> Result<BranchTip> {
        let (branch, reference) = (overlay.branch, names::branch_ref(overlay.branch)?);
        let previous = self.check_branch(branch, overlay.owner).await?;
        let parent = previous.unwrap_or(overlay.base);
        let tree = {
            let repository = self.repository()?;
            let tree = tree_of(&repository, parent)?;
            let changes = changes(&tree, overlay)?;
            if let (true, Some(commit)) = (changes.is_empty(), previous) {
                return Ok(BranchTip { commit, change: Change::Unchanged });
            }
            apply(&repository, &tree, &changes)?
        };
        self.check_not_checked_out(branch, &reference).await?;
        let commit = self.commit(tree, parent, overlay.message, overlay.owner).await?;
        self.move_branch(branch, &reference, previous, commit, "k8tre: overlay").await?;
        Ok(BranchTip { commit, change: if previous.is_some() { Change::Added } else { Change::Created } })
    }

    /// Paths in which the branch (or the base, when there is no branch) differs from the overlay.
    pub fn overlay_differences(&self, overlay: &Overlay<'_>) -> Result<Vec<String>> {
        let parent = self.tip(overlay.branch)?.unwrap_or(overlay.base);
        let repository = self.repository()?;
        let tree = tree_of(&repository, parent)?;
        Ok(changes(&tree, overlay)?.into_iter().map(|change| change.path().to_owned()).collect())
    }

    /// The branch's tip, if it is there; refuses a branch that k8tre may not write to.
    pub async fn check_branch(&self, branch: &str, owned_by: &Owner) -> Result<Option<CommitId>> {
        let reference = names::branch_ref(branch)?;
        let email = self.identity().await?.email;
        let repository = self.repository()?;
        let Some(tip) = checkout::tip(&repository, &reference)? else {
            check_room(&repository, branch, &reference)?;
            return Ok(None);
        };
        if carries_overlay(&repository, tip, owned_by, &email)? {
            return Ok(Some(tip));
        }
        Err(not_ours(&repository, branch, tip, "here")
            .hint(format!("to keep it, rename it: git branch -m {branch} {branch}-kept"))
            .hint("or use another environment name: --name NAME"))
    }

    /// Refuses a branch for whose name another one leaves no room.
    pub fn check_room(&self, branch: &str) -> Result<()> {
        check_room(&self.repository()?, branch, &names::branch_ref(branch)?)
    }

    /// Whether the base has gone on since the branch left it.
    pub fn base_moved(&self, branch: &str, base: CommitId) -> Result<Option<BaseMoved>> {
        let Some(tip) = self.tip(branch)? else { return Ok(None) };
        let counts = self.ahead_behind(tip, base)?;
        Ok((counts.behind > 0).then_some(BaseMoved { missing: counts.behind, own: counts.ahead }))
    }

    /// Points the branch at another commit, if it still is where it was seen.
    pub(super) async fn move_branch(
        &self,
        branch: &str,
        reference: &str,
        from: Option<CommitId>,
        to: CommitId,
        why: &str,
    ) -> Result<()> {
        let expected = from.map_or_else(|| git2::Oid::ZERO_SHA1.to_string(), |tip| tip.to_string());
        let update = ["update-ref", "-m", why, reference, &to.to_string(), &expected];
        expect(self.git().args(update), &format!("cannot move the branch {branch}")).await?;
        Ok(())
    }

    /// Refuses to move a branch that is checked out: the files there would seem to undo what was added.
    pub(super) async fn check_not_checked_out(&self, branch: &str, reference: &str) -> Result<()> {
        let Some(place) = self.checked_out_at(branch, reference).await? else { return Ok(()) };
        let away = typed(place.as_ref(), &["switch", "--detach"]);
        Err(Error::preflight(format!("the branch {branch} is checked out in {place}, so k8tre does not move it"))
            .hint(format!("switch that checkout to another branch or to a commit, then try again: {away}")))
    }

    /// The work tree in which a branch is checked out, also one without commits yet.
    pub(super) async fn checked_out_at(&self, branch: &str, reference: &str) -> Result<Option<String>> {
        if self.head_branch().as_deref() == Some(branch) {
            return Ok(Some(self.root().display().to_string()));
        }
        let list = ["for-each-ref", "--format=%(worktreepath)", reference];
        let output = expect(self.git().args(list), "cannot tell where the branch is checked out").await?;
        Ok(Some(output.text()).filter(|place| !place.is_empty()))
    }
}

/// Git keeps branches as paths: `dev` and `dev/alice` cannot both exist.
fn check_room(repository: &git2::Repository, branch: &str, reference: &str) -> Result<()> {
    let refused = |blocker: &str| {
        Error::preflight(format!(
            "the branch {branch} cannot be made: git keeps branches as paths, and there is a branch {blocker}"
        ))
        .hint(format!("rename that one, for example: git branch -m {blocker} {}-kept", blocker.replace('/', "-")))
    };
    for (slash, _) in branch.match_indices('/') {
        if checkout::tip(repository, &names::branch_ref(&branch[..slash])?)?.is_some() {
            return Err(refused(&branch[..slash]));
        }
    }
    let mut inside = repository.references_glob(&format!("{reference}/*")).map_err(said)?;
    match inside.names().next() {
        Some(Ok(name)) => Err(refused(name.trim_start_matches("refs/heads/"))),
        Some(Err(error)) => Err(said(error)),
        None => Ok(()),
    }
}

/// What a branch is that k8tre did not make.
pub(super) fn not_ours(repository: &git2::Repository, branch: &str, tip: CommitId, place: &str) -> Error {
    let commit = repository.find_commit(tip.0);
    let subject = commit.as_ref().ok().and_then(|commit| commit.summary().ok().flatten()).unwrap_or_default();
    let author = commit.as_ref().ok().and_then(|commit| commit.author().name().ok().map(str::to_owned));
    Error::preflight(format!(
        "the branch {branch} exists {place} and is not this environment's: its tip is {} \"{}\" by {}",
        tip.short(),
        one_line(subject, 60),
        one_line(&author.unwrap_or_default(), 40)
    ))
}

/// Whether k8tre wrote to the branch for this environment, or for an earlier one of the same name and
/// person. The commit is the tip or below it, where the developer's own commits came on top.
pub(super) fn carries_overlay(
    repository: &git2::Repository,
    tip: CommitId,
    owned_by: &Owner,
    email: &str,
) -> Result<bool> {
    /// A developer's branch lives for days; far more commits than that are another branch's history.
    const DEEPEST: usize = 2000;
    let mut walk = repository.revwalk().map_err(said)?;
    walk.push(tip.0).map_err(said)?;
    for id in walk.take(DEEPEST) {
        // Where a shallow clone ends there is nothing more to be read.
        let Ok(id) = id else { return Ok(false) };
        let Some(owner) = owner(repository, id)? else { continue };
        let by_same_person = || repository.find_commit(id).is_ok_and(|commit| commit.author().email() == Ok(email));
        if owner.id == owned_by.id || (owner.name == owned_by.name && by_same_person()) {
            return Ok(true);
        }
    }
    Ok(false)
}

enum Edit<'a> {
    Write { path: &'a str, content: &'a [u8], mode: git2::FileMode },
    Remove(&'a str),
}

impl Edit<'_> {
    fn path(&self) -> &str {
        match self {
            Edit::Write { path, .. } | Edit::Remove(path) => path,
        }
    }
}

/// A tree with files of exactly this content, and without others.
pub(super) fn overlaid(
    repository: &git2::Repository,
    tree: &git2::Tree<'_>,
    files: &BTreeMap<String, String>,
    remove: &[String],
) -> Result<git2::Oid> {
    let no_seeds = BTreeMap::new();
    let edits = edits(tree, files, &no_seeds, remove)?;
    if edits.is_empty() { Ok(tree.id()) } else { apply(repository, tree, &edits) }
}

fn changes<'a>(tree: &git2::Tree<'_>, overlay: &Overlay<'a>) -> Result<Vec<Edit<'a>>> {
    edits(tree, overlay.files, overlay.seeds, overlay.remove)
}

/// What has to change in a tree. Compares names of objects, so it writes nothing.
fn edits<'a>(
    tree: &git2::Tree<'_>,
    files: &'a BTreeMap<String, String>,
    seeds: &'a BTreeMap<String, String>,
    remove: &'a [String],
) -> Result<Vec<Edit<'a>>> {
    let mut edits = Vec::new();
    let wanted = files.iter().map(|file| (file, true)).chain(seeds.iter().map(|file| (file, false)));
    for ((path, content), exactly) in wanted {
        check_path(tree, path)?;
        let there = tree.get_path(path.as_ref()).ok();
        let id = git2::Oid::hash_object(git2::ObjectType::Blob, content.as_bytes()).map_err(said)?;
        if there.as_ref().is_some_and(|entry| !exactly || entry.id() == id) {
            continue;
        }
        let mode = match there.map(|entry| entry.filemode()) {
            Some(0o100_755) => git2::FileMode::BlobExecutable,
            _ => git2::FileMode::Blob,
        };
        edits.push(Edit::Write { path, content: content.as_bytes(), mode });
    }
    for path in remove {
        let path = path.trim_end_matches('/');
        if tree.get_path(path.as_ref()).is_ok() {
            edits.push(Edit::Remove(path));
        }
    }
    Ok(edits)
}

/// Refuses a path on which the repository has something that a file cannot replace.
fn check_path(tree: &git2::Tree<'_>, path: &str) -> Result<()> {
    let refused = |part: &str, what: &str| {
        Error::preflight(format!("cannot write {path} to the branch: the repository has {what} at {part}"))
            .hint("move it out of the way, or use another environment name: --name NAME")
    };
    if path.split('/').any(|part| matches!(part, "" | "." | "..") || part.eq_ignore_ascii_case(".git")) {
        return Err(Error::failed(format!("\"{}\" is no path in a repository", path.escape_debug())));
    }
    let parents = path.match_indices('/').map(|(slash, _)| &path[..slash]);
    for part in parents {
        match tree.get_path(part.as_ref()).ok().and_then(|entry| entry.kind()) {
            Some(git2::ObjectType::Commit) => return Err(refused(part, "a submodule")),
            Some(git2::ObjectType::Blob) => return Err(refused(part, "a file")),
            _ => {}
        }
    }
    match tree.get_path(path.as_ref()).ok().and_then(|entry| entry.kind()) {
        Some(git2::ObjectType::Tree) => Err(refused(path, "a folder")),
        Some(git2::ObjectType::Commit) => Err(refused(path, "a submodule")),
        _ => Ok(()),
    }
}

/// Writes blobs and trees. No filter applies: line endings are those of the text, whatever core.autocrlf says.
fn apply(repository: &git2::Repository, tree: &git2::Tree<'_>, edits: &[Edit<'_>]) -> Result<git2::Oid> {
    let mut update = git2::build::TreeUpdateBuilder::new();
    for edit in edits {
        match edit {
            Edit::Write { path, content, mode } => {
                let blob = repository.blob(content).map_err(said).with_context(|| format!("cannot write {path}"))?;
                update.upsert(*path, blob, *mode)
            }
            Edit::Remove(path) => update.remove(*path),
        };
    }
    update.create_updated(repository, tree).map_err(said).context("cannot write the branch's files")
}

pub(super) fn tree_of(repository: &git2::Repository, commit: CommitId) -> Result<git2::Tree<'_>> {
    let tree = repository.find_commit(commit.0).and_then(|commit| commit.tree()).map_err(said);
    tree.with_context(|| format!("cannot read commit {}", commit.short()))
}
