//! Trees: merged, overlaid and compared without a checkout, and the one reference that k8tre keeps for what
//! it published of them.

use std::collections::BTreeMap;

use super::tree::CommitTree;
use super::{Checkout, CommitId, Owner, branch, checkout, said, snapshot};
use crate::error::{Error, Result, ResultExt};
use crate::names::EnvName;
use crate::text::one_line;

/// The name of a tree: the files of a commit, or of none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeId(pub(super) git2::Oid);

impl std::fmt::Display for TreeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Checkout {
    pub fn tree_id(&self, commit: CommitId) -> Result<TreeId> {
        Ok(TreeId(branch::tree_of(&self.repository()?, commit)?.id()))
    }

    /// What a commit's tree was made on top of.
    pub fn parent(&self, commit: CommitId) -> Result<Option<CommitId>> {
        let repository = self.repository()?;
        let commit = repository.find_commit(commit.0).map_err(said)?;
        Ok(commit.parent_id(0).ok().map(CommitId))
    }

    /// Whether a commit is (still) in this repository.
    pub fn has(&self, commit: CommitId) -> Result<bool> {
        Ok(self.repository()?.find_commit(commit.0).is_ok())
    }

    /// The files of the branch with what the work tree changes since HEAD left it. What both changed in
    /// different ways is told by file.
    pub fn merge(&self, work: TreeId, branch: &str, tip: CommitId) -> Result<TreeId> {
        let repository = self.repository()?;
        let head = self.head()?;
        let base = repository.merge_base(head.0, tip.0).map_err(|_| {
            Error::preflight(format!("what is checked out has no history in common with {branch}"))
                .hint(format!("switch to the branch that {branch} started from, or to {branch} itself"))
        })?;
        let base = branch::tree_of(&repository, CommitId(base))?;
        let (ours, theirs) = (self.find(&repository, work)?, branch::tree_of(&repository, tip)?);
        if base.id() == theirs.id() {
            return Ok(work);
        }
        let mut merged = repository.merge_trees(&base, &ours, &theirs, None).map_err(said)?;
        if merged.has_conflicts() {
            return Err(Error::preflight(format!(
                "your work tree and the branch {branch} both changed {}",
                conflicts(&merged)?.join(", ")
            ))
            .hint(format!("work on the branch itself, where there is nothing to merge: git switch {branch}"))
            .hint(format!("or bring them together: git merge {branch}")));
        }
        Ok(TreeId(merged.write_tree_to(&repository).map_err(said).context("cannot write the merged files")?))
    }

    /// A tree with these files, and without those.
    pub fn overlaid(&self, tree: TreeId, files: &BTreeMap<String, String>, remove: &[String]) -> Result<TreeId> {
        let repository = self.repository()?;
        branch::overlaid(&repository, &self.find(&repository, tree)?, files, remove).map(TreeId)
    }

    /// The files of a tree.
    pub fn files(&self, tree: TreeId) -> Result<CommitTree> {
        CommitTree::new(self.repository()?, tree.0)
    }

    /// Paths that differ between two trees, sorted.
    pub fn changed_paths(&self, from: TreeId, to: TreeId) -> Result<Vec<String>> {
        let repository = self.repository()?;
        let (old, new) = (self.find(&repository, from)?, self.find(&repository, to)?);
        let diff = repository.diff_tree_to_tree(Some(&old), Some(&new), None).map_err(said)?;
        let mut paths: Vec<String> = diff
            .deltas()
            .flat_map(|delta| [delta.old_file().path_bytes(), delta.new_file().path_bytes()])
            .flatten()
            .map(|path| String::from_utf8_lossy(path).into_owned())
            .collect();
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// Refuses files of a tree that the other one does not hold and that are larger than `limit` bytes.
    pub fn check_new_files(&self, from: TreeId, to: TreeId, limit: u64) -> Result<()> {
        let repository = self.repository()?;
        let (old, new) = (self.find(&repository, from)?, self.find(&repository, to)?);
        let diff = repository.diff_tree_to_tree(Some(&old), Some(&new), None).map_err(said)?;
        let odb = repository.odb().map_err(said)?;
        let known: std::collections::BTreeSet<git2::Oid> = diff.deltas().map(|delta| delta.old_file().id()).collect();
        let mut large = Vec::new();
        for file in diff.deltas().map(|delta| delta.new_file()) {
            // A renamed file is not new.
            if file.id() == git2::Oid::ZERO_SHA1 || known.contains(&file.id()) {
                continue;
            }
            let size = odb.read_header(file.id()).map_or(0, |(size, _)| size as u64);
            if size > limit {
                let path = file.path_bytes().map(|path| String::from_utf8_lossy(path).into_owned());
                large.push((path.unwrap_or_default(), size));
            }
        }
        snapshot::refuse_large(&large, limit)
    }

    /// A commit of a work tree: never signed, because only the environment's own server gets it.
    pub async fn commit_work(&self, tree: TreeId, parent: CommitId, message: &str, owner: &Owner) -> Result<CommitId> {
        self.commit_unsigned(tree.0, parent, message, owner).await
    }

    /// Keeps a commit, so that git's cleaning up does not take it.
    pub fn keep(&self, name: &EnvName, commit: CommitId) -> Result<()> {
        let repository = self.repository()?;
        let kept = repository.reference(&kept_ref(name), commit.0, true, "k8tre: sync").map(drop);
        kept.map_err(said).with_context(|| format!("cannot write {}", kept_ref(name)))
    }

    /// The commit that is kept for an environment.
    pub fn kept(&self, name: &EnvName) -> Result<Option<CommitId>> {
        checkout::tip(&self.repository()?, &kept_ref(name))
    }

    /// Lets go of it. Fine when there is none.
    pub fn forget_kept(&self, name: &EnvName) -> Result<()> {
        let repository = self.repository()?;
        let result = match repository.find_reference(&kept_ref(name)) {
            Ok(mut reference) => reference.delete().map_err(said),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(()),
            Err(error) => Err(said(error)),
        };
        result.with_context(|| format!("cannot remove {}", kept_ref(name)))
    }

    fn find<'a>(&self, repository: &'a git2::Repository, tree: TreeId) -> Result<git2::Tree<'a>> {
        repository.find_tree(tree.0).map_err(said).with_context(|| format!("cannot read the tree {tree}"))
    }
}

/// Not a branch: it is listed nowhere, pushed nowhere, and checked out by nobody.
pub fn kept_ref(name: &EnvName) -> String {
    format!("refs/k8tre/{name}")
}

/// The files that an index holds in several versions.
pub(super) fn conflicts(index: &git2::Index) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for conflict in index.conflicts().map_err(said)? {
        let conflict = conflict.map_err(said)?;
        let entry = conflict.our.or(conflict.their).or(conflict.ancestor);
        paths.extend(entry.map(|entry| one_line(&String::from_utf8_lossy(&entry.path), 200)));
    }
    paths.sort();
    paths.dedup();
    Ok(paths)
}
