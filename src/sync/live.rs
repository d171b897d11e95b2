//! When a change is live: the Applications that it touches look again, sync, and are as healthy as they were.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::Value;

use super::Change;
use super::operation::{operation, patient};
use crate::argocd::application::{Verdict, compared_after_sync, unhealthy};
use crate::argocd::side::Sides;
use crate::causes::Cause;
use crate::context::Context;
use crate::error::Result;
use crate::steps::applications::Judged;
use crate::steps::explain::{Look, explain_all};
use crate::steps::look::{application_type, begin, ignore_absent, is_asked, refresh, regenerate};
use crate::steps::objects::difference;

/// Between two looks; longer where many Applications are looked at.
const POLL: Duration = Duration::from_millis(40);
/// What fails may be Argo CD in the middle of something: it fails for good after this.
const PATIENCE: Duration = Duration::from_secs(8);
/// One that was not healthy before has this long to become so.
const RECOVERY: Duration = Duration::from_secs(3);
/// Argo CD compares right after a sync; it is asked to when that cannot be told from the comparison before.
const COMPARED: Duration = Duration::from_millis(1200);
/// What was asked while Argo CD was in the middle of a look at an older commit is forgotten with that look.
const FORGOTTEN: Duration = Duration::from_secs(1);
/// Objects of a kind that are read one by one; above, all are listed.
const FEW: usize = 6;

/// How a touched Application took the change.
#[derive(Debug, Clone)]
pub struct Settled {
    pub name: String,
    pub end: End,
    pub took: Duration,
}

#[derive(Debug, Clone, PartialEq)]
pub enum End {
    Live,
    /// As unhealthy as before the change.
    NoBetter(String),
    /// It is no longer part of the environment.
    Gone,
    Failed(String, Option<Cause>),
    /// Time was up.
    Late(String, Option<Cause>),
}

impl End {
    pub fn is_fine(&self) -> bool {
        matches!(self, End::Live | End::NoBetter(_) | End::Gone)
    }
}

/// The wait for one change.
pub struct Wait {
    sides: Sides,
    commit: String,
    began: Instant,
    pending: BTreeMap<String, Pending>,
    sets: BTreeSet<String>,
    root: Option<String>,
}

#[derive(Debug, Default)]
struct Pending {
    /// Its source as it has to become; none where that does not change.
    source: Option<Value>,
    /// It has to go away.
    gone: bool,
    /// Nobody but Argo CD may begin a sync of it.
    held: bool,
    /// The sync that is begun for it.
    operation: Option<Value>,
    /// Health before the change.
    before: Option<String>,
    failing_since: Option<Instant>,
    unchanged_since: Option<Instant>,
    compared_since: Option<Instant>,
    asked_again: bool,
}

impl Wait {
    /// Sees how things are before the change is published. `more` are Applications that did not settle before.
    pub async fn begin(cx: &Context, change: &Change, more: &BTreeSet<String>) -> Result<Wait> {
        let sides = cx.require_sides().await?;
        let predicted: BTreeMap<&str, _> =
            change.deployed.prediction.applications.iter().map(|app| (&*app.name, app)).collect();
        let still = more.iter().filter(|name| predicted.contains_key(name.as_str())).cloned();
        let mut pending: BTreeMap<String, Pending> =
            change.applications(cx).into_iter().chain(still).map(|name| (name, Pending::default())).collect();
        for name in &change.touched.redefined {
            let source = predicted.get(name.as_str()).map(|app| app.source.value());
            pending.entry(name.clone()).or_default().source = source;
        }
        for name in &change.touched.gone {
            pending.entry(name.clone()).or_default().gone = true;
        }
        for (name, pending) in &mut pending {
            pending.held = cx.spec.holds.contains_key(name);
        }
        let root = change.touched.root.then(|| cx.spec.name.root_application());
        let (sets, commit) = (change.touched.application_sets.clone(), change.commit.to_string());
        Ok(Wait { sides, commit, began: Instant::now(), pending, sets, root })
    }

    /// How healthy the Applications are before the change.
    pub async fn look_before(&mut self) -> Result<()> {
        let before = self.read(&self.pending.keys().cloned().collect::<Vec<_>>()).await?;
        for (name, pending) in &mut self.pending {
            let Some(app) = before.get(name) else { continue };
            pending.before = app["status"]["health"]["status"].as_str().map(str::to_owned);
            // One whose definition changes is at the commit only then.
            if pending.source.is_none() && !pending.gone && !pending.held {
                pending.operation = operation(app, &self.commit);
            }
        }
        Ok(())
    }

    /// Has them look again: the change is there.
    pub async fn ask(&self) -> Result<()> {
        let applications = async {
            let asked = self.pending.iter().filter(|(_, one)| !one.gone).map(|(name, one)| async {
                match &one.operation {
                    Some(operation) => begin(&self.sides.argocd, name, operation).await,
                    None => refresh(&self.sides.argocd, name).await,
                }
            });
            join_all(asked).await.into_iter().try_for_each(ignore_absent)
        };
        tokio::try_join!(self.ask_sets(), applications).map(drop)
    }

    /// A generator looks at the newest commit only when it is told to.
    async fn ask_sets(&self) -> Result<()> {
        let asked = self.sets.iter().map(|set| regenerate(&self.sides.argocd, set));
        join_all(asked).await.into_iter().try_for_each(ignore_absent)
    }

    /// The same for some that do not show it, though no question is open.
    async fn ask_again(&self, names: impl Iterator<Item = &String>) -> Result<()> {
        self.ask_sets().await?;
        let applications = join_all(names.map(|name| refresh(&self.sides.argocd, name))).await;
        applications.into_iter().try_for_each(ignore_absent)
    }

    /// Waits until each Application has taken the change, or will not; `say` gets what is waited for.
    pub async fn settle(&mut self, timeout: Duration, say: impl Fn(&str)) -> Result<Vec<Settled>> {
        let mut settled = Vec::new();
        let mut look = Look::begin();
        let mut asked = Instant::now();
        while !self.pending.is_empty() {
            let names: Vec<String> = self.pending.keys().cloned().collect();
            let found = self.read(&names).await?;
            let late = self.began.elapsed() >= timeout;
            let (mut waiting, mut unseen) = (Vec::new(), Vec::new());
            for name in names {
                let state = found.get(&name);
                let Some(pending) = self.pending.get_mut(&name) else { continue };
                let judged = pending.judge(state, &self.commit);
                if matches!(judged, State::Unseen(_)) {
                    unseen.push(name.clone());
                }
                match judged {
                    State::Done(end) => {
                        self.pending.remove(&name);
                        settled.push(Settled { end, took: self.began.elapsed(), name: name.clone() });
                        if self.root.as_ref() == Some(&name) {
                            // What goes wrong here shows in what is then waited for, and is asked again.
                            self.ask_sets().await.ok();
                        }
                    }
                    State::Again => ignore_absent(refresh(&self.sides.argocd, &name).await)?,
                    State::Patiently(operation) => ignore_absent(begin(&self.sides.argocd, &name, &operation).await)?,
                    State::Waiting(verdict) | State::Unseen(verdict) => {
                        let namespace = self.sides.argocd.namespace.clone();
                        waiting.push(Judged { name, namespace, verdict, actual: state.cloned(), cause: None });
                    }
                }
            }
            if !unseen.is_empty() && asked.elapsed() >= FORGOTTEN {
                self.ask_again(unseen.iter().filter(|name| found.contains_key(*name))).await?;
                asked = Instant::now();
            }
            look.follow(&self.sides, &mut waiting).await;
            if let Some(one) = waiting.first() {
                say(&format!("{}: {}", one.name, one.why(120)));
            }
            if late {
                explain_all(&self.sides, &mut waiting).await;
                settled.extend(waiting.into_iter().map(|one| {
                    let end = End::Late(one.verdict.reason().to_owned(), one.cause);
                    Settled { name: one.name, end, took: self.began.elapsed() }
                }));
                self.pending.clear();
                break;
            }
            if !self.pending.is_empty() {
                tokio::time::sleep(POLL * u32::try_from(1 + self.pending.len() / FEW).unwrap_or(u32::MAX)).await;
            }
        }
        self.explain(&mut settled).await;
        settled.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(settled)
    }

    /// Names of those that have not settled.
    pub fn unsettled(&self) -> BTreeSet<String> {
        self.pending.iter().filter(|(_, one)| !one.gone).map(|(name, _)| name.clone()).collect()
    }

    async fn explain(&self, settled: &mut [Settled]) {
        let failed: Vec<String> =
            settled.iter().filter(|one| matches!(one.end, End::Failed(..))).map(|one| one.name.clone()).collect();
        if failed.is_empty() {
            return;
        }
        let found = self.read(&failed).await.unwrap_or_default();
        let judged = failed.iter().map(|name| Judged {
            name: name.clone(),
            namespace: self.sides.argocd.namespace.clone(),
            verdict: Verdict::Failing(String::new()),
            actual: found.get(name).cloned(),
            cause: None,
        });
        let mut judged: Vec<Judged> = judged.collect();
        explain_all(&self.sides, &mut judged).await;
        for one in settled {
            if let End::Failed(_, cause) = &mut one.end {
                *cause = judged.iter().find(|judged| judged.name == one.name).and_then(|judged| judged.cause.clone());
            }
        }
    }

    async fn read(&self, names: &[String]) -> Result<BTreeMap<String, Value>> {
        let named = |app: Value| Some((app["metadata"]["name"].as_str()?.to_owned(), app));
        let of = application_type();
        if names.len() > FEW {
            return Ok(self.sides.argocd.list(&of, "").await?.into_iter().filter_map(named).collect());
        }
        let found = join_all(names.iter().map(|name| self.sides.argocd.get(&of, name))).await;
        let found: Result<Vec<Option<Value>>> = found.into_iter().collect();
        Ok(found?.into_iter().flatten().filter_map(named).collect())
    }
}

enum State {
    Done(End),
    Waiting(Verdict),
    /// Argo CD has looked, and not at the change.
    Unseen(Verdict),
    /// It fails, perhaps for a reason that has gone: it is asked once more.
    Again,
    /// The sync that was begun for it failed: it is begun again, as Argo CD would.
    Patiently(Value),
}

fn unseen(reason: impl Into<String>) -> State {
    State::Unseen(Verdict::Waiting(reason.into()))
}

fn waiting(reason: impl Into<String>) -> State {
    State::Waiting(Verdict::Waiting(reason.into()))
}

impl Pending {
    fn judge(&mut self, app: Option<&Value>, commit: &str) -> State {
        let Some(app) = app else {
            return if self.gone { State::Done(End::Gone) } else { unseen("Argo CD has not made it yet") };
        };
        if self.gone {
            return unseen("it should go away");
        }
        let status = &app["status"];
        if app["metadata"]["deletionTimestamp"].is_string() {
            return waiting("it is being deleted");
        }
        if is_asked(app) {
            return waiting("Argo CD has not looked at it yet");
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some(error) = conditions.iter().find(|c| c["type"].as_str().is_some_and(|kind| kind.ends_with("Error")))
        {
            return self.failing(format!("{}: {}", text(&error["type"]), text(&error["message"])), !self.asked_again);
        }
        if !is_at(&status["sync"], commit) {
            return unseen("Argo CD has not seen the change yet");
        }
        let spec = &app["spec"];
        if let Some(wanted) = &self.source {
            let actual = if wanted.is_array() { &spec["sources"] } else { &spec["source"] };
            if let Some(path) = difference(actual, wanted) {
                return unseen(format!("its definition is still the old one at source.{path}"));
            }
        }
        if app.get("operation").is_some() {
            return waiting("a sync begins");
        }
        let operation = &status["operationState"];
        let synced = status["sync"]["status"] == "Synced";
        let of_this = is_at(&operation["syncResult"], commit) || is_at(&operation["operation"]["sync"], commit);
        match operation["phase"].as_str() {
            Some("Running") => {
                let message = text(&operation["message"]);
                if message.contains("Retrying attempt") {
                    return self.failing(format!("sync is being retried: {message}"), false);
                }
                return waiting(format!("sync runs{}", colon(&message)));
            }
            Some("Failed") if of_this && !synced && self.operation.take().is_some() => {
                return match patient(app, commit) {
                    Some(operation) => State::Patiently(operation),
                    None => self.failed(format!("sync failed: {}", text(&operation["message"]))),
                };
            }
            Some("Failed" | "Error") if of_this && !synced => {
                return self.failed(format!("sync failed: {}", text(&operation["message"])));
            }
            Some("Succeeded") if of_this || synced => {}
            _ if synced => {}
            _ if spec["syncPolicy"]["automated"].is_null() || spec["syncPolicy"]["automated"]["enabled"] == false => {
                return State::Done(End::NoBetter("not synced: its automatic sync is off".into()));
            }
            _ => return waiting("it is about to be synced"),
        }
        // Right after a sync the comparison is still that of before; in the same second it is taken for that, too.
        if !synced && compared_after_sync(status) != Some(Ordering::Greater) {
            let since = *self.compared_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= COMPARED && !self.asked_again {
                self.asked_again = true;
                return State::Again;
            }
            return waiting("it is compared again");
        }
        if status["resources"].as_array().is_none_or(Vec::is_empty) {
            return self.failing("it deployed nothing: its path renders no objects".into(), false);
        }
        self.health(status)
    }

    fn health(&mut self, status: &Value) -> State {
        let health = status["health"]["status"].as_str().unwrap_or("Unknown");
        if health == "Healthy" {
            return State::Done(End::Live);
        }
        let reason = format!("{health}{}", colon(&unhealthy(status)));
        if let Some(before) = &self.before
            && self.source.is_none()
            && rank(health) <= rank(before)
        {
            let since = *self.unchanged_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= RECOVERY {
                return State::Done(End::NoBetter(reason));
            }
            return waiting(reason);
        }
        match health {
            "Degraded" => self.failing(reason, false),
            _ => {
                self.failing_since = None;
                waiting(reason)
            }
        }
    }

    fn failing(&mut self, reason: String, again: bool) -> State {
        let since = *self.failing_since.get_or_insert_with(Instant::now);
        if again {
            self.asked_again = true;
            return State::Again;
        }
        if self.asked_again || since.elapsed() >= PATIENCE {
            return self.failed(reason);
        }
        State::Waiting(Verdict::Failing(reason))
    }

    fn failed(&self, reason: String) -> State {
        State::Done(End::Failed(reason, None))
    }
}

/// From best to worst, as Argo CD sees it.
fn rank(health: &str) -> u8 {
    match health {
        "Healthy" => 0,
        "Suspended" => 1,
        "Progressing" => 2,
        "Missing" => 3,
        "Degraded" => 4,
        _ => 5,
    }
}

/// Whether something of Argo CD's is at a commit, by its one revision or one of several.
fn is_at(value: &Value, commit: &str) -> bool {
    let is = |revision: &Value| revision.as_str().is_some_and(|revision| revision.eq_ignore_ascii_case(commit));
    is(&value["revision"]) || value["revisions"].as_array().is_some_and(|revisions| revisions.iter().any(is))
}

fn colon(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
