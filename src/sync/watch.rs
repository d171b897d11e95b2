//! The file system, watched: many events become one change, of files that git does not ignore.
//!
//! What is remembered between two syncs is bounded: past a number of paths, and whenever the kernel says that it
//! lost events, everything counts as changed. Nothing is lost by that, because a sync reads the whole work tree.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use crate::error::{Error, Result, ResultExt};
use crate::ports::git::{Busy, Checkout};

/// A change is over when nothing more came for this long …
const QUIET: Duration = Duration::from_millis(80);
/// … or when it has gone on for this long.
const LONGEST: Duration = Duration::from_secs(1);
/// More paths than this are not remembered one by one.
const PATHS: usize = 2_000;
/// How often it is asked whether git has finished.
const ASK: Duration = Duration::from_millis(100);

/// What happened since the last time that somebody asked.
#[derive(Debug, Default)]
struct Seen {
    paths: BTreeSet<PathBuf>,
    /// Events were lost, or there were too many.
    everything: bool,
    first: Option<Instant>,
    last: Option<Instant>,
    broken: Option<String>,
}

#[derive(Default)]
struct Shared {
    seen: Mutex<Seen>,
    news: Notify,
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches a work tree and the references of its repository.
pub struct Watcher {
    checkout: Checkout,
    shared: Arc<Shared>,
    _watcher: RecommendedWatcher,
}

impl Watcher {
    pub fn start(checkout: Checkout) -> Result<Watcher> {
        let shared = Arc::new(Shared::default());
        let (sink, places) = (Arc::clone(&shared), Places::of(&checkout)?);
        let take = move |event: notify::Result<Event>| {
            record(&places, &mut sink.seen(), event);
            sink.news.notify_one();
        };
        let mut watcher = notify::recommended_watcher(take).map_err(explained)?;
        let root = checkout.root().to_owned();
        watcher.watch(&root, RecursiveMode::Recursive).map_err(explained)?;
        for folder in checkout.git_folders()?.into_iter().filter(|folder| !folder.starts_with(&root)) {
            // A linked work tree: HEAD is in one folder, the branches in another.
            watcher.watch(&folder, RecursiveMode::NonRecursive).map_err(explained)?;
            let refs = folder.join("refs/heads");
            if refs.is_dir() {
                watcher.watch(&refs, RecursiveMode::Recursive).map_err(explained)?;
            }
        }
        Ok(Watcher { checkout, shared, _watcher: watcher })
    }

    /// Waits for the next change, until it is over and git has finished what it is at, which is said once.
    pub async fn changed(&self, say: impl Fn(&str)) -> Result<()> {
        loop {
            self.settled().await?;
            let seen = std::mem::take(&mut *self.shared.seen());
            if seen.everything || self.matters(&seen.paths)? {
                let mut said = false;
                while let Busy::With(what) = self.checkout.busy()? {
                    if !said && what != Busy::INDEX {
                        say(&format!("{what} is under way; waiting for its end"));
                        said = true;
                    }
                    tokio::time::sleep(ASK).await;
                }
                return Ok(());
            }
        }
    }

    /// Waits until a change that matters has begun; it stays to be asked for by `changed`.
    pub async fn begun(&self) -> Result<()> {
        loop {
            {
                let mut seen = self.shared.seen();
                if seen.everything || seen.broken.is_some() || self.matters(&seen.paths)? {
                    return Ok(());
                }
                // Nothing but ignored files: they need not be looked at again.
                *seen = Seen::default();
            }
            self.shared.news.notified().await;
            // A build that writes thousands of ignored files is looked at now and then, not file by file.
            tokio::time::sleep(QUIET).await;
        }
    }

    /// Waits until something happened and then nothing more for a while.
    async fn settled(&self) -> Result<()> {
        loop {
            let pause = {
                let mut seen = self.shared.seen();
                if let Some(why) = seen.broken.take() {
                    return Err(Error::failed(format!("cannot watch the work tree any more: {why}")));
                }
                match (seen.first, seen.last) {
                    (Some(first), Some(last)) => {
                        let quiet = QUIET.saturating_sub(last.elapsed());
                        let left = LONGEST.saturating_sub(first.elapsed());
                        if quiet.is_zero() || left.is_zero() {
                            return Ok(());
                        }
                        Some(quiet.min(left))
                    }
                    _ => None,
                }
            };
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => self.shared.news.notified().await,
            }
        }
    }

    /// Whether one of the paths is a file that git does not ignore, or says where HEAD and branches are.
    fn matters(&self, paths: &BTreeSet<PathBuf>) -> Result<bool> {
        self.checkout.any_tracked(paths)
    }
}

/// Where things are that every event is compared with.
struct Places {
    git: Vec<PathBuf>,
}

impl Places {
    fn of(checkout: &Checkout) -> Result<Places> {
        Ok(Places { git: checkout.git_folders()? })
    }

    /// Of git's own files only those that say what is checked out, and whether it is at work.
    fn is_news(&self, path: &Path) -> bool {
        let Some(inside) = self.git.iter().find_map(|folder| path.strip_prefix(folder).ok()) else { return true };
        let news = ["HEAD", "packed-refs", "MERGE_HEAD", "rebase-merge", "rebase-apply"];
        inside.starts_with("refs/heads") || news.iter().any(|name| inside == Path::new(name))
    }
}

fn record(places: &Places, seen: &mut Seen, event: notify::Result<Event>) {
    let now = Instant::now();
    match event {
        Ok(event) if event.need_rescan() => seen.everything = true,
        // Reading changes nothing, and a sync itself reads.
        Ok(Event { kind: EventKind::Access(_), .. }) => return,
        Ok(event) => {
            let mut paths = event.paths.into_iter().filter(|path| places.is_news(path)).peekable();
            if paths.peek().is_none() {
                return;
            }
            seen.paths.extend(paths);
            if seen.paths.len() > PATHS {
                seen.paths.clear();
                seen.everything = true;
            }
        }
        Err(error) => match &error.kind {
            // What is gone by the time that it is looked at has been told as gone, or will be.
            notify::ErrorKind::PathNotFound => return,
            notify::ErrorKind::Io(io) if io.kind() == std::io::ErrorKind::NotFound => return,
            notify::ErrorKind::MaxFilesWatch => seen.broken = Some(error.to_string()),
            _ => seen.everything = true,
        },
    }
    seen.first.get_or_insert(now);
    seen.last = Some(now);
}

fn explained(error: notify::Error) -> Error {
    let limit = matches!(error.kind, notify::ErrorKind::MaxFilesWatch)
        || matches!(&error.kind, notify::ErrorKind::Io(io) if io.raw_os_error() == Some(24));
    let explained = Err::<(), _>(error).context("cannot watch the work tree").unwrap_err();
    match limit {
        true => explained
            .hint("sudo sysctl -w fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=512")
            .hint("or sync by hand after an edit: k8tre dev sync"),
        false => explained,
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
