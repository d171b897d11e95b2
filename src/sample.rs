//! The sample TRE: embedded, and written to a git repository of the user's own, to be edited at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use include_dir::{Dir, include_dir};

use crate::error::{Error, Result, ResultExt};
use crate::gitops::tree::Tree;
use crate::ports::dirs::Dirs;
use crate::ports::git::{Checkout, CreatedAs, DirtySummary, create_repository};

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/sample-tre");

/// A setting in the repository's own `.git/config`, so that no edit of its files makes it another repository.
const MARK: &str = "k8tre.sample";
const UNFINISHED: &str = ".k8tre-sample-";
/// Longer than it takes to lock a folder that was just made.
const STALE: Duration = Duration::from_secs(600);

/// What writing the sample did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleOutcome {
    /// It is new; who its commit is by.
    Written(CreatedAs),
    /// It was there, and stays as its user left it.
    Kept,
}

/// Makes `target` a git repository that holds the sample, with one commit on `main`. It appears there as
/// a whole or not at all: it is made beside it, then renamed. Where git knows no identity, k8tre's own is
/// written to this repository's settings, because its branch needs commits too.
pub async fn write_sample(target: &Path) -> Result<SampleOutcome> {
    let what = || format!("cannot write the sample TRE to {}", target.display());
    if is_sample(target).await? {
        return Ok(SampleOutcome::Kept);
    }
    check_empty(target)?;
    let parent = parent(target);
    std::fs::create_dir_all(parent).with_context(what)?;
    remove_unfinished(target);
    let folder = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(parent).with_context(what)?;
    // Held while the folder is at work: the kernel lets go of it with the process, however that ends.
    let lock = std::fs::File::open(folder.path()).with_context(what)?;
    lock.lock().with_context(what)?;
    let inner = folder.path().join("tre");
    std::fs::create_dir(&inner).with_context(what)?;
    FILES.extract(&inner).with_context(what)?;
    let created = create_repository(&inner, "main", "Start from the sample TRE", &[(MARK, "true")]).await?;
    match std::fs::rename(&inner, target) {
        Ok(()) => Ok(SampleOutcome::Written(created)),
        // Another run may have been first.
        Err(_) if is_sample(target).await? => Ok(SampleOutcome::Kept),
        Err(error) => Err(error).with_context(what),
    }
}

/// The sample's files by path, as they are written.
pub fn files() -> Vec<(PathBuf, &'static [u8])> {
    fn collect(folder: &Dir<'static>, all: &mut Vec<(PathBuf, &'static [u8])>) {
        all.extend(folder.files().map(|file| (file.path().to_owned(), file.contents())));
        folder.dirs().for_each(|inner| collect(inner, all));
    }
    let mut all = Vec::new();
    collect(&FILES, &mut all);
    all
}

/// Where the sample goes when nobody says where.
pub fn default_folder(dirs: &Dirs) -> PathBuf {
    dirs.data.join("sample-tre")
}

/// Why the sample at `target` is more than what k8tre wrote, if it is: then it is its user's.
pub async fn edited(target: &Path) -> Result<Option<String>> {
    let checkout = Checkout::open(target)?;
    if checkout.dirty().await? != DirtySummary::default() {
        return Ok(Some("has uncommitted changes".into()));
    }
    let branches = checkout.branches()?;
    if branches.iter().any(|branch| branch != "main") {
        return Ok(Some(format!("has other branches: {}", branches.join(", "))));
    }
    let tree = checkout.tree(checkout.head()?)?;
    let written: BTreeMap<String, &[u8]> =
        files().into_iter().map(|(path, content)| (path.to_string_lossy().into_owned(), content)).collect();
    let same = tree.paths().len() == written.len()
        && tree
            .paths()
            .iter()
            .all(|path| tree.read(path).is_ok_and(|content| written.get(path) == Some(&content.as_slice())));
    Ok((!same).then(|| "has commits of your own".into()))
}

/// Whether `target` is a sample that k8tre wrote, edited or not.
pub async fn is_sample(target: &Path) -> Result<bool> {
    // Not any folder inside a repository: the sample's own top folder.
    if !target.join(".git").exists() {
        return Ok(false);
    }
    Checkout::open(target)?.marked(MARK).await
}

/// Refuses a folder that holds anything: the sample is written to a new or an empty one.
pub fn check_empty(target: &Path) -> Result<()> {
    let refused = |reason: &str| {
        Error::usage(format!("{} {reason}, so the sample TRE is not written there", target.display()))
            .hint("name another folder, which may be new")
    };
    match std::fs::read_dir(target) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(refused("is not empty and not a sample TRE")),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Err(refused("is not a folder")),
        Err(error) => Err(error).with_context(|| format!("cannot look into {}", target.display())),
    }
}

fn parent(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Removes what runs that were killed left beside `target`. What cannot be removed does no harm.
pub fn remove_unfinished(target: &Path) {
    let Ok(entries) = std::fs::read_dir(parent(target)) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let ours = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(UNFINISHED));
        if ours && is_abandoned(&path).unwrap_or(false) {
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

/// Nobody holds the folder's lock, nor is about to take it.
fn is_abandoned(folder: &Path) -> std::io::Result<bool> {
    let handle = std::fs::File::open(folder)?;
    if handle.try_lock().is_err() {
        return Ok(false);
    }
    let changed = handle.metadata()?.modified().unwrap_or_else(|_| SystemTime::now());
    Ok(std::fs::read_dir(folder)?.next().is_some() || changed.elapsed().is_ok_and(|age| age > STALE))
}
