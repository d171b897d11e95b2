//! A commit's files.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::{Checkout, CommitId, said};
use crate::error::{Error, Result, ResultExt};
use crate::gitops::tree::Tree;

/// Larger files are no manifests.
const LARGEST_FILE: usize = 16 << 20;
const SYMLINK: i32 = 0o120_000;

/// The files of one commit, read from git's objects: the checkout may hold something else.
pub struct CommitTree {
    paths: Vec<String>,
    entries: BTreeMap<String, (git2::Oid, i32)>,
    // A libgit2 repository may move between threads, but not be used by two at once.
    repository: Mutex<git2::Repository>,
}

impl Checkout {
    /// The files of a commit. Submodules are left out, as they are another repository's, and so are links
    /// that lead to no file in it.
    pub fn tree(&self, commit: CommitId) -> Result<CommitTree> {
        let tree = self.tree_id(commit).with_context(|| format!("cannot read commit {}", commit.short()))?;
        self.files(tree)
    }
}

impl CommitTree {
    pub(super) fn new(repository: git2::Repository, tree: git2::Oid) -> Result<CommitTree> {
        let entries = entries(&repository, tree).with_context(|| format!("cannot read the tree {tree}"))?;
        let is_file = |path: &&String| resolved(&repository, &entries, path).is_ok_and(|blob| blob.is_some());
        let paths = entries.keys().filter(is_file).cloned().collect();
        Ok(CommitTree { paths, entries, repository: Mutex::new(repository) })
    }
}

type Entries = BTreeMap<String, (git2::Oid, i32)>;

fn entries(repository: &git2::Repository, tree: git2::Oid) -> Result<Entries> {
    let tree = repository.find_tree(tree).map_err(said)?;
    let mut entries = BTreeMap::new();
    tree.walk(git2::TreeWalkMode::PreOrder, |folder, entry| {
        // Kubernetes, Argo CD and kustomize know no paths that are not UTF-8, and libgit2 would end the walk at one.
        let Ok(name) = entry.name() else { return git2::TreeWalkResult::Skip };
        if entry.kind() == Some(git2::ObjectType::Blob) {
            entries.insert(format!("{folder}{name}"), (entry.id(), entry.filemode()));
        }
        git2::TreeWalkResult::Ok
    })
    .map_err(said)?;
    Ok(entries)
}

impl Tree for CommitTree {
    fn paths(&self) -> &[String] {
        &self.paths
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        let repository = self.repository.lock().unwrap_or_else(PoisonError::into_inner);
        let id = resolved(&repository, &self.entries, path).with_context(|| format!("cannot read {path}"))?;
        let id = id.ok_or_else(|| Error::not_found(format!("there is no file {path}")))?;
        let blob = repository.find_blob(id).map_err(said).with_context(|| format!("cannot read {path}"))?;
        if blob.size() > LARGEST_FILE {
            return Err(Error::failed(format!("{path} has {} MiB, which is no manifest", blob.size() >> 20)));
        }
        Ok(blob.content().to_vec())
    }
}

/// The file at a path, through links inside the repository; none when there is no file.
fn resolved(repository: &git2::Repository, entries: &Entries, path: &str) -> Result<Option<git2::Oid>> {
    let mut at = path.to_owned();
    // As many links in a row as Linux follows.
    for _ in 0..40 {
        let Some((id, mode)) = entries.get(&at) else { return Ok(None) };
        if *mode != SYMLINK {
            return Ok(Some(*id));
        }
        let target = repository.find_blob(*id).map_err(said)?;
        match linked(&at, &String::from_utf8_lossy(target.content())) {
            Some(next) => at = next,
            None => return Ok(None),
        }
    }
    Ok(None)
}

/// The path that a link at `path` points to; none when it leads out of the repository.
fn linked(path: &str, target: &str) -> Option<String> {
    if target.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
