//! The work tree as it is, as git objects: nothing of the user's changes, neither files, index, HEAD,
//! stash nor reflogs.
//!
//! `git add` does the reading, so that ignore rules, line endings and filters are those of a commit. It works
//! on a copy of the index, which it may change, and whose stat cache spares it reading what did not change.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backon::{ConstantBuilder, Retryable};

use super::merge::TreeId;
use super::run::{expect, run, typed};
use super::{Checkout, said};
use crate::error::{Error, Kind, Result, ResultExt};
use crate::ports::process::Program;
use crate::text::one_line;

/// Large files that are named at once.
const NAMED: usize = 5;

/// The work tree at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub tree: TreeId,
    /// Folders with a repository of their own that is no submodule: git would record a commit that nobody can fetch.
    pub left_out: Vec<String>,
}

impl Checkout {
    /// Writes the files of the work tree as a tree. One that git does not know yet and that is larger than
    /// `limit` bytes is refused before it is read.
    pub async fn snapshot(&self, limit: u64) -> Result<Snapshot> {
        // A file that changes or goes while git reads it fails the reading, and not the work tree.
        let read = || self.read_once(limit);
        let retries = ConstantBuilder::default().with_delay(Duration::from_millis(50)).with_max_times(3);
        read.retry(retries).when(|error| error.kind() == Kind::Failed).await
    }

    async fn read_once(&self, limit: u64) -> Result<Snapshot> {
        let own = self.repository()?.path().join("index");
        let folder = tempfile::Builder::new().prefix("k8tre-index-").tempdir().context("cannot copy the index")?;
        let index = folder.path().join("index");
        copy(&own, &index).with_context(|| format!("cannot copy {}", own.display()))?;
        self.check_merged(&index)?;
        let git = |args: &[&str]| self.private(&index, args);

        let list = git(&["ls-files", "-z", "--modified", "--others", "--exclude-standard", "--deduplicate"]);
        let list = expect(list, "cannot tell which files differ").await?;
        let differing: Vec<&[u8]> = list.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty()).collect();
        self.check_sizes(&differing, limit).await?;
        let left_out = self.foreign_repositories(&differing);
        if !differing.is_empty() {
            let mut add = git(&["add", "--all", "--", ":/"]);
            for path in &left_out {
                add = add.arg(format!(":(exclude,top,literal){path}"));
            }
            expect(add, "cannot read the work tree").await?;
        }
        let written = expect(git(&["write-tree"]), "cannot write the work tree's files as objects").await?;
        let tree = git2::Oid::from_str(&written.text()).map_err(said)?;
        Ok(Snapshot { tree: TreeId(tree), left_out })
    }

    /// A run of git on a private index, which is written whole: parts of it would end up in the repository.
    fn private(&self, index: &Path, args: &[&str]) -> Program {
        let git = self.git().env("GIT_INDEX_FILE", index).env("GIT_OPTIONAL_LOCKS", "0");
        git.args(["-c", "core.splitIndex=false", "-c", "advice.addEmbeddedRepo=false"]).args(args)
    }

    /// A merge that is not finished has no files to deploy, only both sides of each conflict.
    fn check_merged(&self, index: &Path) -> Result<()> {
        let repository = self.repository()?;
        // An index that libgit2 cannot read (sparse, split) is git's own to judge.
        let Ok(index) = git2::Index::open(index) else { return Ok(()) };
        if !index.has_conflicts() {
            return Ok(());
        }
        let paths = super::merge::conflicts(&index)?;
        let doing = match repository.state() {
            git2::RepositoryState::Merge => "a merge",
            git2::RepositoryState::Rebase
            | git2::RepositoryState::RebaseInteractive
            | git2::RepositoryState::RebaseMerge => "a rebase",
            _ => "something",
        };
        Err(Error::preflight(format!("{doing} is under way here, with conflicts in {}", paths.join(", ")))
            .hint(format!("resolve them first; to see them: {}", typed(self.root(), &["status"]))))
    }

    /// Refuses files that are too large to be manifests, by name. One that a filter replaces (LFS) is git's to read.
    async fn check_sizes(&self, paths: &[&[u8]], limit: u64) -> Result<()> {
        let mut large = Vec::new();
        for path in paths {
            let text = String::from_utf8_lossy(path).into_owned();
            let data = fs::symlink_metadata(self.place(path));
            if let Some(size) = data.ok().filter(fs::Metadata::is_file).map(|data| data.len())
                && size > limit
                && !self.is_filtered(&text).await?
            {
                large.push((text, size));
            }
        }
        refuse_large(&large, limit)
    }

    async fn is_filtered(&self, path: &str) -> Result<bool> {
        let output = run(self.git().args(["check-attr", "-z", "filter", "--", path])).await?;
        let value = output.text().split('\0').nth(2).unwrap_or("unspecified").to_owned();
        Ok(!matches!(value.as_str(), "unspecified" | "unset" | ""))
    }

    fn foreign_repositories(&self, paths: &[&[u8]]) -> Vec<String> {
        // git lists a repository inside this one as a folder, and not what is in it.
        let folders = paths.iter().filter(|path| path.ends_with(b"/"));
        let text = folders.map(|path| String::from_utf8_lossy(path).trim_end_matches('/').to_owned());
        text.filter(|path| self.root().join(path).join(".git").exists()).collect()
    }

    fn place(&self, path: &[u8]) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        self.root().join(std::ffi::OsStr::from_bytes(path))
    }
}

/// An error that names what is too large, unless nothing is.
pub(super) fn refuse_large(large: &[(String, u64)], limit: u64) -> Result<()> {
    if large.is_empty() {
        return Ok(());
    }
    let named: Vec<String> =
        large.iter().take(NAMED).map(|(path, size)| format!("{} ({})", one_line(path, 200), human(*size))).collect();
    let more = large.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Err(Error::preflight(format!("larger than {}, and new: {}{more}", human(limit), named.join(", ")))
        .hint("keep it out of the repository: add it to .gitignore or .git/info/exclude")
        .hint("or raise the limit: --max-file-size 50M, or max-file-size in k8tre.toml"))
}

/// Sizes as people write them.
fn human(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

/// A copy with the time of the original, by which git tells whether a file could have changed unseen
/// since the index was written.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let data = match fs::metadata(from) {
        Ok(data) => data,
        // A repository in which nothing was added yet.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    fs::copy(from, to)?;
    fs::File::options().write(true).open(to)?.set_modified(data.modified()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_files_are_named_with_their_size() {
        let large: Vec<(String, u64)> = (0..7).map(|n| (format!("data/{n}.bin"), 6 << 20)).collect();
        let error = refuse_large(&large, 5 << 20).unwrap_err().to_string();
        assert!(error.starts_with("larger than 5.0 MiB, and new: data/0.bin (6.0 MiB), "), "{error}");
        assert!(error.ends_with("data/4.bin (6.0 MiB) and 2 more"), "{error}");
        assert!(refuse_large(&[], 1).is_ok());
    }
}
