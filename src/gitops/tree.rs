//! Where a GitOps repository's files come from: a commit, or a map in a test.

use crate::error::Result;

/// The files of a repository at one moment. Paths use `/` and are relative to its root.
pub trait Tree: Send + Sync {
    /// Every file's path, sorted.
    fn paths(&self) -> &[String];

    /// One file's content.
    fn read(&self, path: &str) -> Result<Vec<u8>>;
}
