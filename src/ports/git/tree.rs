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
    /// The files of a commit. Submodules are left out, as they are another repository's.
    pub fn tree(&self, commit: CommitId) -> Result<CommitTree> {
        let repository = self.repository()?;
        let entries = entries(&repository, commit).with_context(|| format!("cannot read commit {}", commit.short()))?;
        Ok(CommitTree { paths: entries.keys().cloned().collect(), entries, repository: Mutex::new(repository) })
    }
}

fn entries(repository: &git2::Repository, commit: CommitId) -> Result<BTreeMap<String, (git2::Oid, i32)>> {
    let tree = repository.find_commit(commit.0).and_then(|commit| commit.tree()).map_err(said)?;
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
        let mut at = path.to_owned();
        // As many symbolic links as Linux follows.
        for _ in 0..40 {
            let (id, mode) = *self.entries.get(&at).ok_or_else(|| match at == path {
                true => Error::not_found(format!("there is no file {path}")),
                false => Error::not_found(format!("{path} is a link to {at}, which is not in the repository")),
            })?;
            let blob = repository.find_blob(id).map_err(said).with_context(|| format!("cannot read {path}"))?;
            if blob.size() > LARGEST_FILE {
                return Err(Error::failed(format!("{path} has {} MiB, which is no manifest", blob.size() >> 20)));
            }
            if mode != SYMLINK {
                return Ok(blob.content().to_vec());
            }
            at = linked(&at, &String::from_utf8_lossy(blob.content()))
                .ok_or_else(|| Error::failed(format!("{path} is a link that leads out of the repository")))?;
        }
        Err(Error::failed(format!("{path} is a link that leads in a circle")))
    }
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
