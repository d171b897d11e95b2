//! What someone who watches a repository has to know of it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::{Checkout, said};
use crate::error::Result;

/// Whether git is in the middle of something that moves files about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Busy {
    No,
    /// With what it is, or has stopped.
    With(&'static str),
}

impl Busy {
    /// A git that writes the index right now, which takes no time.
    pub const INDEX: &'static str = "a git command";
}

/// What stands beside HEAD while git is in the middle of something.
const MARKS: [(&str, &str); 6] = [
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("index.lock", Busy::INDEX),
];

impl Checkout {
    /// The folders in which git keeps HEAD and the branches; one folder, but for a linked work tree.
    pub fn git_folders(&self) -> Result<Vec<PathBuf>> {
        let repository = self.repository()?;
        let mut folders: Vec<PathBuf> =
            [repository.path(), repository.commondir()].map(|folder| folder.components().collect()).into();
        folders.dedup();
        Ok(folders)
    }

    /// Whether a git is at work in this work tree, or has stopped in the middle.
    pub fn busy(&self) -> Result<Busy> {
        let repository = self.repository()?;
        let mark = MARKS.into_iter().find(|(name, _)| repository.path().join(name).exists());
        Ok(mark.map_or(Busy::No, |(_, what)| Busy::With(what)))
    }

    /// Whether one of these paths is git's own, or a file that git knows or would take: not ignored.
    pub fn any_tracked(&self, paths: &BTreeSet<PathBuf>) -> Result<bool> {
        if paths.is_empty() {
            return Ok(false);
        }
        let repository = self.repository()?;
        let folders = self.git_folders()?;
        let index = repository.index().map_err(said)?;
        let counts = |path: &PathBuf| {
            let Ok(inside) = path.strip_prefix(self.root()) else { return true };
            folders.iter().any(|folder| path.starts_with(folder))
                || inside.as_os_str().is_empty()
                || !repository.is_path_ignored(inside).unwrap_or(false)
                || index.get_path(inside, 0).is_some()
        };
        Ok(paths.iter().any(counts))
    }
}
