//! A small change to an environment that is there: under its lock, recorded before it is made, by some of its steps.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::argocd::side::ArgoCd;
use crate::commands::{App, select};
use crate::context::{Context, Options, Record};
use crate::engine::{Engine, StepId, Walk};
use crate::error::{Error, Result, ResultExt};
use crate::gitops::windows;
use crate::journal::{self, Lock, Writer};
use crate::names::EnvName;
use crate::ports::git::Checkout;
use crate::spec::Spec;
use crate::steps::look::{application_type, ignore_absent, refresh};
use crate::steps::{BRANCH, branch};
use futures::{StreamExt, stream};

/// Requests under way at once.
const AT_ONCE: usize = 8;
const POLL: Duration = Duration::from_millis(250);
/// How often Argo CD is asked to look again.
const NUDGE: Duration = Duration::from_secs(2);

pub struct Change<'a> {
    pub app: &'a App,
    pub name: EnvName,
    writer: Arc<Writer>,
    _lock: Lock,
}

impl Change<'_> {
    /// Takes the lock of an environment that is recorded on this machine.
    pub fn begin<'a>(app: &'a App, name: EnvName, command: &str) -> Result<Change<'a>> {
        select::journal_of(app, &name)?;
        let lock = Lock::take(&app.dirs, &name, command)?;
        // A `down` may have ended in between.
        let Some(journal) = journal::read(&app.dirs, &name)? else {
            lock.abandon();
            return Err(select::unknown(app, &name));
        };
        let writer = Arc::new(Writer::new(&lock, journal));
        Ok(Change { app, name, writer, _lock: lock })
    }

    pub fn spec(&self) -> Spec {
        self.writer.snapshot().spec
    }

    /// Changes what the environment is meant to be. Holds that have ended go with any change.
    pub fn record(&self, change: impl FnOnce(&mut Spec)) -> Result<()> {
        let mut journal = self.writer.snapshot();
        change(&mut journal.spec);
        windows::forget_ended(&mut journal.spec.holds, jiff::Timestamp::now());
        if journal == self.writer.snapshot() { Ok(()) } else { self.writer.update(|saved| *saved = journal) }
    }

    /// Has the holds that have ended go from the spec and from the branch. A branch that cannot be moved now, as
    /// one that is being rebased, keeps them until the next command.
    pub async fn drop_ended_holds(&self, timeout: Duration) -> Result<()> {
        let now = jiff::Timestamp::now();
        let ended = self.spec().holds.values().any(|hold| hold.is_over(now));
        if !ended || self.check_branch(&self.context(timeout)).await.is_err() {
            return Ok(());
        }
        self.record(|_| {})?;
        self.walk(&self.context(timeout), &[BRANCH]).await.map(drop)
    }

    /// The environment as it is recorded now.
    pub fn context(&self, timeout: Duration) -> Context {
        let options = Options { timeout, offline: true, ..Options::default() };
        let record = Record::Writing(Arc::clone(&self.writer));
        Context::new(&self.writer.snapshot(), record, self.app.dirs.clone(), options, self.app.ui.clone())
    }

    /// The environment's Argo CD, whose cluster has to answer.
    pub async fn argocd(&self, cx: &Context) -> Result<ArgoCd> {
        let again = format!("k8tre dev up {}", self.name);
        let argocd = cx.require_argocd().await.hint(&again)?;
        self.unless_cancelled(argocd.kube.ready()).await.hint(&again)?;
        Ok(argocd)
    }

    /// Refuses before anything is recorded what could not be written to.
    pub async fn check_branch(&self, cx: &Context) -> Result<()> {
        let branch = self.name.branch();
        let checkout = Checkout::open(&cx.spec.repo)?;
        checkout.check_branch(&branch, &branch::owner(cx)).await?;
        checkout.check_movable(&branch).await
    }

    /// Brings some of the steps to ready.
    pub async fn walk(&self, cx: &Context, ids: &'static [StepId]) -> Result<Walk> {
        let steps = crate::plan::only(&cx.spec, ids);
        self.app.ui.expect(steps.iter().map(|step| (step.id(), step.describe())));
        let cancel = self.app.cancel.clone();
        let synced = cx.facts().synced;
        let walk = Engine { steps: &steps, ledger: &*self.writer, events: &*self.app.ui, cancel }.up(cx).await?;
        if synced.is_some() && cx.facts().synced.is_none() {
            self.app.ui.warn(&format!(
                "the work tree that was synced has given way to the branch; to bring it again: k8tre dev sync {}",
                self.name
            ));
        }
        Ok(walk)
    }

    pub async fn unless_cancelled<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            () = self.app.cancel.cancelled() => Err(Error::interrupted()),
            result = work => result,
        }
    }

    /// Asks Argo CD to look at an Application, again and again, until something holds; false when time is up.
    pub async fn until(
        &self,
        argocd: &ArgoCd,
        application: &str,
        limit: Duration,
        mut holds: impl AsyncFnMut() -> Result<bool>,
    ) -> Result<bool> {
        let wait = async {
            let deadline = Instant::now() + limit;
            let mut nudged: Option<Instant> = None;
            while !holds().await? {
                if Instant::now() >= deadline {
                    return Ok(false);
                }
                if nudged.is_none_or(|at| at.elapsed() >= NUDGE) {
                    refresh(argocd, application).await?;
                    nudged = Some(Instant::now());
                }
                tokio::time::sleep(POLL).await;
            }
            Ok(true)
        };
        self.unless_cancelled(wait).await
    }
}

/// Has every Application of an environment compared with git now: a new commit on the branch is new for each of them.
pub async fn refresh_all(argocd: &ArgoCd, name: &EnvName) -> Result<()> {
    let all = argocd.list(&application_type(), "").await?;
    let ours = all.iter().filter(|app| app["spec"]["project"] == *name.project());
    let ours = ours.filter_map(|app| app["metadata"]["name"].as_str().map(str::to_owned));
    let names: Vec<String> = ours.chain([name.root_application()]).collect();
    let refreshes = stream::iter(&names).map(|name| refresh(argocd, name)).buffer_unordered(AT_ONCE);
    // One that is gone meanwhile needs no look.
    let results: Vec<Result<()>> = refreshes.collect().await;
    results.into_iter().try_for_each(ignore_absent)
}
