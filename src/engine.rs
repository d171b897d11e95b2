//! The one idea of the program: an environment is a list of steps, and every command walks that list.
//!
//! A step can observe, apply and undo itself. The engine knows nothing of clusters or git: it orders
//! steps by their needs, runs independent ones side by side, records intent before it acts, and
//! reports what happens through [`Events`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result, ResultExt};

/// Key of a step in the journal, in JSON and in `needs`.
pub type StepId = &'static str;

/// What the world says of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Absent,
    Ready,
    /// There, but not as it should be: what differs.
    Drifted(String),
    /// There, and not ours: used, never changed, never deleted.
    Foreign,
    /// Cannot be told, and why.
    Unknown(String),
}

#[async_trait]
pub trait Step<C: Sync>: Send + Sync {
    fn id(&self) -> StepId;

    /// Steps that must be ready before this one starts.
    fn needs(&self) -> &[StepId] {
        &[]
    }

    /// A step whose removal removes this one too, as a cluster does with all that is in it.
    fn inside(&self) -> Option<StepId> {
        None
    }

    /// What `up` would do, for the plan.
    fn describe(&self) -> String;

    /// How long one apply or undo may take before it is given up.
    fn limit(&self) -> Duration {
        Duration::from_secs(120)
    }

    /// Whether this step only waits or reads, so that there is nothing to journal or undo.
    fn leaves_nothing(&self) -> bool {
        false
    }

    async fn observe(&self, cx: &C) -> Result<State>;
    async fn apply(&self, cx: &C) -> Result<()>;
    async fn undo(&self, cx: &C) -> Result<()>;
}

pub type Steps<C> = Vec<Box<dyn Step<C>>>;

/// Where the engine records what is ours.
pub trait Ledger: Send + Sync {
    /// Called, and durable, before a step acts.
    fn intend(&self, id: StepId) -> Result<()>;
    fn done(&self, id: StepId) -> Result<()>;
    fn forget(&self, id: StepId) -> Result<()>;
    fn owns(&self, id: StepId) -> bool;
}

/// How a step of a walk ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing to do.
    Ready,
    Applied,
    Foreign,
    Undone,
    /// Removed together with the step it lives in.
    UndoneWith(StepId),
}

/// What the engine tells the screen.
pub trait Events: Send + Sync {
    fn started(&self, _id: StepId) {}
    /// What a running step is doing or waiting for.
    fn detail(&self, _id: StepId, _text: &str) {}
    fn finished(&self, _id: StepId, _outcome: &Outcome, _took: Duration) {}
    fn failed(&self, _id: StepId, _error: &Error, _took: Duration) {}
}

impl Events for () {}

/// One step of a finished `up`, with its place in time.
#[derive(Debug, Clone)]
pub struct Done {
    pub id: StepId,
    pub outcome: Outcome,
    /// Since the walk began.
    pub began: Duration,
    pub took: Duration,
}

/// What `up` did, in order of completion.
#[derive(Debug, Default)]
pub struct Walk {
    pub steps: Vec<Done>,
    changed: bool,
}

impl Walk {
    /// Whether anything was made or mended. A step that only waits changes nothing.
    pub fn changed(&self) -> bool {
        self.changed
    }
}

pub struct Engine<'a, C> {
    pub steps: &'a Steps<C>,
    pub ledger: &'a dyn Ledger,
    pub events: &'a dyn Events,
    pub cancel: CancellationToken,
}

impl<C: Sync> Engine<'_, C> {
    /// Brings every step to ready. Stops at the first failure: what is running is dropped, what is
    /// done stays, and the next `up` goes on from there.
    pub async fn up(&self, cx: &C) -> Result<Walk> {
        let mut waiting = in_order(self.steps)?;
        let mut ready = BTreeSet::new();
        let mut running = FuturesUnordered::new();
        let mut walk = Walk::default();
        let start = Instant::now();
        loop {
            let startable: Vec<_> =
                waiting.extract_if(.., |step| step.needs().iter().all(|need| ready.contains(need))).collect();
            running.extend(startable.into_iter().map(|step| async move {
                let began = start.elapsed();
                let outcome = self.bring_up(step, cx).await?;
                let changed = outcome == Outcome::Applied && !step.leaves_nothing();
                Ok::<_, Error>((Done { id: step.id(), outcome, began, took: start.elapsed() - began }, changed))
            }));
            if running.is_empty() {
                return Ok(walk);
            }
            let (done, changed) = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(Error::interrupted()),
                Some(result) = running.next() => result?,
            };
            ready.insert(done.id);
            walk.steps.push(done);
            walk.changed |= changed;
        }
    }

    async fn bring_up(&self, step: &dyn Step<C>, cx: &C) -> Result<Outcome> {
        let id = step.id();
        let start = Instant::now();
        self.events.started(id);
        let result = async {
            match step.observe(cx).await? {
                State::Ready => Ok(Outcome::Ready),
                State::Foreign => Ok(Outcome::Foreign),
                State::Absent | State::Drifted(_) | State::Unknown(_) => {
                    if !step.leaves_nothing() {
                        self.ledger.intend(id)?;
                    }
                    bounded(step.limit(), step.apply(cx)).await?;
                    if !step.leaves_nothing() {
                        self.ledger.done(id)?;
                    }
                    Ok(Outcome::Applied)
                }
            }
        }
        .await;
        match result {
            Ok(outcome) => {
                self.events.finished(id, &outcome, start.elapsed());
                Ok(outcome)
            }
            Err(error) => {
                self.events.failed(id, &error, start.elapsed());
                Err(error)
            }
        }
    }

    /// Removes what is ours, last step first, and goes on past failures, which it returns.
    pub async fn down(&self, cx: &C) -> Result<Vec<(StepId, Error)>> {
        let mut failures: Vec<(StepId, Error)> = Vec::new();
        let ordered = in_order(self.steps)?;
        for step in ordered.iter().rev().filter(|step| !step.leaves_nothing() && self.ledger.owns(step.id())) {
            if self.cancel.is_cancelled() {
                return Err(Error::interrupted());
            }
            if step.inside().is_some_and(|outer| self.ledger.owns(outer)) {
                continue;
            }
            let start = Instant::now();
            self.events.started(step.id());
            let undone = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(Error::interrupted()),
                result = bounded(step.limit(), step.undo(cx)) => result,
            };
            match undone.and_then(|()| self.forget_with_contents(step.id(), &ordered)) {
                Ok(()) => self.events.finished(step.id(), &Outcome::Undone, start.elapsed()),
                Err(error) => {
                    self.events.failed(step.id(), &error, start.elapsed());
                    failures.push((step.id(), error));
                }
            }
        }
        Ok(failures)
    }

    fn forget_with_contents(&self, id: StepId, ordered: &[&dyn Step<C>]) -> Result<()> {
        for step in ordered.iter().rev().filter(|step| step.inside() == Some(id) && self.ledger.owns(step.id())) {
            self.ledger.forget(step.id())?;
            self.events.finished(step.id(), &Outcome::UndoneWith(id), Duration::ZERO);
        }
        self.ledger.forget(id)
    }

    /// Asks every step for its state, all at once; one that errs or hangs is unknown, not fatal.
    pub async fn observe(&self, cx: &C, limit: Duration) -> Vec<(StepId, State)> {
        join_all(self.steps.iter().map(|step| async move {
            let state = match bounded(limit, step.observe(cx)).await {
                Ok(state) => state,
                Err(error) => State::Unknown(error.to_string()),
            };
            (step.id(), state)
        }))
        .await
    }
}

async fn bounded<T>(limit: Duration, work: impl Future<Output = Result<T>>) -> Result<T> {
    match tokio::time::timeout(limit, work).await {
        Ok(result) => result,
        Err(_) => Err(Error::failed(format!("gave up after {}", human(limit)))),
    }
}

fn human(duration: Duration) -> String {
    if duration.as_secs() == 0 { format!("{} ms", duration.as_millis()) } else { format!("{} s", duration.as_secs()) }
}

/// The steps so that each comes after what it needs. A need that is missing or circular is a defect
/// of the plan, and is said rather than waited for.
pub fn in_order<C: Sync>(steps: &Steps<C>) -> Result<Vec<&dyn Step<C>>> {
    let mut left: BTreeMap<usize, &dyn Step<C>> = steps.iter().map(|s| &**s).enumerate().collect();
    let mut seen = BTreeSet::new();
    let mut ordered = Vec::with_capacity(steps.len());
    while !left.is_empty() {
        let next = left.iter().find(|(_, s)| s.needs().iter().all(|n| seen.contains(n))).map(|(&i, _)| i);
        let index = next
            .ok_or_else(|| Error::failed("needs of the steps cannot be met"))
            .with_context(|| left.values().map(|s| s.id()).collect::<Vec<_>>().join(", "))?;
        let step = left.remove(&index).expect("just found");
        seen.insert(step.id());
        ordered.push(step);
    }
    Ok(ordered)
}
