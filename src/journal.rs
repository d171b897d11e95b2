//! What is ours: the record that lets `down` find everything, whatever happened in between.
//!
//! One folder an environment holds `journal.json` (0600, replaced as a whole), `lock` (held while a
//! command changes the environment) and the kubeconfig. The journal says what is ours; only the
//! world says what is true.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::engine::{Ledger, StepId};
use crate::error::{Error, Result, ResultExt};
use crate::names::EnvName;
use crate::ports::dirs::{Dirs, create_private_dir, write_private};
use crate::prerequisites::Outline;
use crate::providers::existing::deployed::Deployed;
use crate::providers::kind::NetworkOwnership;
use crate::spec::Spec;

/// Raised when an older k8tre could misread what a newer one wrote.
pub const SCHEMA: u32 = 1;
const FILE: &str = "journal.json";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Journal {
    pub schema: u32,
    /// Random, and part of every owner mark: a name can be used twice, this cannot.
    pub id: String,
    pub created: Timestamp,
    pub spec: Spec,
    pub steps: BTreeMap<String, Record>,
    pub facts: Facts,
}

/// When a step was about to act, and when it was done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub intended: Timestamp,
    pub done: Option<Timestamp>,
}

/// What only the run that made it can know.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Commit on the developer's branch that was published last, and when.
    pub published: Option<String>,
    pub published_at: Option<Timestamp>,
    /// A work tree that the git server has in place of the branch's tip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synced: Option<Synced>,
    /// What was published before and may still be what Argo CD has seen of an Application that no change since
    /// then touches; oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Published>,
    /// Addresses that the environment's load balancer hands out.
    pub address_range: Option<String>,
    /// Namespaces of a cluster that was there already, before anything was put into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
    /// What the Applications had deployed to such a cluster, when their removal began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed: Option<Deployed>,
    /// Settings of somebody's Argo CD that were changed, by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub adjusted: BTreeMap<String, Adjusted>,
    /// The Docker network of the cluster, and whether a k8tre made it.
    pub network: Option<NetworkOwnership>,
    /// What the cluster was given before Argo CD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prerequisites: Option<Outline>,
    /// When the cluster's containers were stopped on purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Timestamp>,
    /// When the token ends that a shared Argo CD has. The token itself is nowhere but there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_expires: Option<Timestamp>,
    /// When a shared Argo CD was told of another cluster of the same name: what it said before is of no use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered_at: Option<Timestamp>,
    /// How the last `up` that changed something spent its time, in seconds.
    pub timings: Vec<Timing>,
}

/// A setting of somebody's that was changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adjusted {
    pub before: Option<String>,
    /// What k8tre gave it, or was about to; the last counts.
    pub ours: Vec<String>,
}

impl Adjusted {
    /// Whether somebody else changed it since then.
    pub fn is_ours(&self, now: Option<&str>) -> bool {
        now.is_some_and(|now| self.ours.iter().any(|ours| ours == now))
    }
}

/// A synced work tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Synced {
    pub commit: String,
    /// Tip of the branch that it was made on: when that moves, the branch counts again.
    pub tip: String,
    pub at: Timestamp,
}

/// A commit that was published, and the Applications that it touched; of the first one, all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    pub commit: String,
    pub at: Timestamp,
    pub touched: Vec<String>,
}

impl Facts {
    /// Far more than Argo CD needs to look at every Application once.
    const KEPT: usize = 100;

    /// A commit was published that every Application has to look at.
    pub fn publish(&mut self, commit: impl ToString, at: Timestamp) {
        let commit = commit.to_string();
        if self.published.as_ref() == Some(&commit) && self.published_at.is_some() {
            return;
        }
        (self.published, self.published_at) = (Some(commit.clone()), Some(at));
        self.history = vec![Published { commit, at, touched: Vec::new() }];
    }

    /// A commit was published that differs from the one before only for these Applications.
    pub fn publish_next(&mut self, commit: &str, at: Timestamp, touched: Vec<String>) {
        if self.history.is_empty() {
            let before = self.published.take().zip(self.published_at);
            self.history.extend(before.map(|(commit, at)| Published { commit, at, touched: Vec::new() }));
        }
        self.history.push(Published { commit: commit.to_owned(), at, touched });
        // The first one that is kept counts for all.
        let old = self.history.len().saturating_sub(Self::KEPT);
        self.history.drain(..old);
        (self.published, self.published_at) = (Some(commit.to_owned()), Some(at));
    }

    /// What an Application that has seen `revision` must have seen, and since when.
    pub fn expected(&self, application: &str, revision: &str) -> (Option<String>, Option<Timestamp>) {
        let touches = |published: &Published| published.touched.iter().any(|touched| touched == application);
        let since = self.history.iter().rposition(touches).unwrap_or(0);
        let fitting = self.history.get(since..).unwrap_or_default();
        match (fitting.first(), fitting.iter().find(|published| published.commit.eq_ignore_ascii_case(revision))) {
            (Some(first), Some(seen)) => (Some(seen.commit.clone()), Some(first.at)),
            _ => (self.published.clone(), self.published_at),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    pub step: String,
    pub began: f64,
    pub took: f64,
}

impl Journal {
    pub fn new(spec: Spec) -> Journal {
        let id: [u8; 6] = rand::random();
        Journal {
            schema: SCHEMA,
            id: crate::text::hex(&id),
            created: Timestamp::now(),
            spec,
            steps: BTreeMap::new(),
            facts: Facts::default(),
        }
    }
}

/// Reads an environment's journal without locking it. `None` if there is none.
pub fn read(dirs: &Dirs, name: &EnvName) -> Result<Option<Journal>> {
    let path = dirs.environment(name.as_str()).join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e).with_context(|| format!("cannot read {}", path.display())),
    };
    let lost = || {
        format!(
            "`k8tre dev down {name}` works without the journal: it finds what carries this environment's owner mark"
        )
    };
    #[derive(Deserialize)]
    struct Version {
        schema: u32,
    }
    let Version { schema } =
        serde_json::from_str(&text).with_context(|| format!("{} is damaged", path.display())).hint(lost())?;
    if schema != SCHEMA {
        return Err(Error::failed(format!(
            "{} was written by another version of k8tre (schema {schema})",
            path.display()
        ))
        .hint("use the k8tre that made this environment, or a newer one"));
    }
    serde_json::from_str(&text).map(Some).with_context(|| format!("{} is damaged", path.display())).hint(lost())
}

/// Names of all environments that have a folder here.
pub fn names(dirs: &Dirs) -> Result<Vec<EnvName>> {
    let entries = match fs::read_dir(dirs.environments()) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e).with_context(|| format!("cannot read {}", dirs.environments().display())),
    };
    let mut names: Vec<EnvName> = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    names.sort();
    Ok(names)
}

/// The right to change one environment, held until dropped. The kernel ends it with the process, so
/// a lock is never stale.
#[derive(Debug)]
pub struct Lock {
    folder: PathBuf,
    _file: fs::File,
}

#[derive(Serialize, Deserialize)]
struct Holder {
    pid: u32,
    command: String,
    since: Timestamp,
}

impl Lock {
    pub fn take(dirs: &Dirs, name: &EnvName, command: &str) -> Result<Lock> {
        let folder = dirs.environment(name.as_str());
        loop {
            create_private_dir(&folder)?;
            let path = folder.join("lock");
            let mut file = fs::OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&path)
                .with_context(|| format!("cannot write {}", path.display()))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(fs::TryLockError::WouldBlock) => return Err(held(&mut file, name)),
                Err(fs::TryLockError::Error(e)) => {
                    return Err(e).with_context(|| format!("cannot lock {}", path.display()));
                }
            }
            // A `down` may have removed the folder between our open and our lock: then we hold the
            // lock of a file that nobody else can find.
            let same =
                fs::metadata(&path).is_ok_and(|there| file.metadata().is_ok_and(|ours| ours.ino() == there.ino()));
            if same {
                let holder = Holder { pid: std::process::id(), command: command.to_owned(), since: Timestamp::now() };
                let text = serde_json::to_vec(&holder)?;
                let written = file.set_len(0).and_then(|()| file.write_all(&text));
                let lock = Lock { folder, _file: file };
                if let Err(error) = written {
                    lock.abandon();
                    return Err(error).with_context(|| format!("cannot write {}", path.display()));
                }
                return Ok(lock);
            }
        }
    }

    /// Whether somebody holds it.
    pub fn is_held(dirs: &Dirs, name: &EnvName) -> bool {
        let file = fs::File::open(dirs.environment(name.as_str()).join("lock"));
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
    }

    /// Removes the environment's folder; the last act of `down`.
    pub fn remove_folder(self) -> Result<()> {
        self.remove()
    }

    fn remove(&self) -> Result<()> {
        fs::remove_dir_all(&self.folder).with_context(|| format!("cannot remove {}", self.folder.display()))?;
        // The folders around it go when this was the last environment; otherwise they are not empty.
        for outer in self.folder.ancestors().skip(1).take(2) {
            let _ = fs::remove_dir(outer);
        }
        Ok(())
    }

    /// Gives up before anything was recorded: then there is nothing to keep the folder for.
    pub fn abandon(&self) {
        if !self.folder.join(FILE).exists() {
            let _ = self.remove();
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

fn held(file: &mut fs::File, name: &EnvName) -> Error {
    let mut text = String::new();
    let _ = file.rewind().and_then(|()| file.read_to_string(&mut text));
    let by = match serde_json::from_str::<Holder>(&text) {
        Ok(holder) => format!("`k8tre {}` (process {}, since {})", holder.command, holder.pid, holder.since),
        Err(_) => "another k8tre".to_owned(),
    };
    Error::failed(format!("{by} is working on the environment {name}"))
        .hint("wait until it has ended, or interrupt it with Ctrl-C")
}

/// A journal that is being written: the engine's [`Ledger`].
pub struct Writer {
    path: PathBuf,
    journal: Mutex<Journal>,
}

impl Writer {
    pub fn new(lock: &Lock, journal: Journal) -> Writer {
        Writer { path: lock.folder().join(FILE), journal: Mutex::new(journal) }
    }

    /// Changes the journal and makes the change durable.
    pub fn update(&self, change: impl FnOnce(&mut Journal)) -> Result<()> {
        let mut journal = self.journal.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        change(&mut journal);
        write_private(&self.path, &serde_json::to_vec_pretty(&*journal)?)
            .hint("k8tre records what it is about to make, so that it can always be removed; without that record it makes nothing")
    }

    pub fn snapshot(&self) -> Journal {
        self.journal.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

impl Ledger for Writer {
    fn intend(&self, id: StepId) -> Result<()> {
        self.update(|journal| {
            journal.steps.insert(id.to_owned(), Record { intended: Timestamp::now(), done: None });
        })
    }

    fn done(&self, id: StepId) -> Result<()> {
        self.update(|journal| {
            if let Some(record) = journal.steps.get_mut(id) {
                record.done = Some(Timestamp::now());
            }
        })
    }

    fn forget(&self, id: StepId) -> Result<()> {
        self.update(|journal| {
            journal.steps.remove(id);
        })
    }

    fn owns(&self, id: StepId) -> bool {
        self.snapshot().steps.contains_key(id)
    }
}
