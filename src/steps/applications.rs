//! The wait for health: every predicted Application at the published commit, and nothing taken on trust.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::argocd::application::{Verdict, judge};
use crate::argocd::held::judge_held;
use crate::argocd::side::ArgoCd;
use crate::causes::Cause;
use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::{Error, Kind, Result};
use crate::steps::explain::{Look, explain_all, hints, kubeconfig_hint};
use crate::steps::look::{application_set_type, application_type, ignore_absent, refresh, regenerate};
use crate::steps::{APPLICATIONS, REGISTRATION, ROOT};
use crate::text::one_line;

const POLL: Duration = Duration::from_millis(250);
/// How often an Application that is behind or in error is asked to look again.
const NUDGE: Duration = Duration::from_secs(2);

pub struct Applications;

/// One Application as expected and as found.
#[derive(Debug, Clone)]
pub struct Judged {
    pub name: String,
    /// Where Argo CD keeps it.
    pub namespace: String,
    pub verdict: Verdict,
    /// What Argo CD holds; `None` if it holds nothing of that name.
    pub actual: Option<Value>,
    /// Why it is not healthy, once somebody looked.
    pub cause: Option<Cause>,
}

impl Judged {
    /// The root of what is wrong, or what Argo CD says where that is all that is known.
    pub fn why(&self, width: usize) -> String {
        match &self.cause {
            Some(cause) => cause.short(width),
            None => one_line(self.verdict.reason(), width),
        }
    }

    /// As the causes are asked for: one that is not there by its name alone.
    pub fn subject(&self) -> Value {
        self.actual.clone().unwrap_or_else(|| json!({"metadata": {"name": self.name, "namespace": self.namespace}}))
    }
}

/// Judges the root Application and every predicted one, and names those that nobody predicted.
pub async fn judge_all(cx: &Context, argocd: &ArgoCd) -> Result<Vec<Judged>> {
    let overlay = cx.overlay().await?;
    let now = Timestamp::now();
    let project = cx.spec.name.project();
    let root = cx.spec.name.root_application();
    let namespace = &argocd.namespace;
    let mut found: BTreeMap<String, Value> = argocd
        .list(&application_type(), "")
        .await?
        .into_iter()
        .filter(|app| app["spec"]["project"] == *project || app["metadata"]["name"] == *root)
        .filter_map(|app| Some((app["metadata"]["name"].as_str()?.to_owned(), app)))
        .collect();

    let predicted = overlay.prediction.applications.iter().map(|app| app.name.to_string());
    let names: BTreeSet<String> = predicted.chain([root]).collect();
    let mut judged: Vec<Judged> = names
        .into_iter()
        .map(|name| {
            let actual = found.remove(&name);
            let verdict = match &actual {
                Some(application) => {
                    let seen = application["status"]["sync"]["revision"].as_str().unwrap_or_default();
                    let expected = cx.expected(&name, seen);
                    match cx.spec.holds.get(&name).filter(|hold| !hold.is_over(now)) {
                        Some(hold) => judge_held(application, &expected, hold, now),
                        None => judge(application, &expected, now),
                    }
                }
                None => Verdict::Waiting("Argo CD has not made it yet".into()),
            };
            Judged { name, namespace: namespace.clone(), verdict, actual, cause: None }
        })
        .collect();
    judged.extend(found.into_iter().map(|(name, application)| Judged {
        name,
        namespace: namespace.clone(),
        verdict: Verdict::Waiting("it is not expected, and should go away".into()),
        actual: Some(application),
        cause: None,
    }));
    Ok(judged)
}

/// Those that this run waits for.
async fn wanted(cx: &Context, argocd: &ArgoCd) -> Result<Vec<Judged>> {
    let mut judged = judge_all(cx, argocd).await?;
    judged.retain(|one| cx.options.only.as_ref().is_none_or(|only| *only == one.name));
    Ok(judged)
}

/// Asks Argo CD to look again where it has not seen the newest commit, or shows an error whose cause
/// may have gone: its own next look can be minutes away.
async fn nudge(argocd: &ArgoCd, judged: &[Judged], sets: &[String]) -> Result<()> {
    for one in judged.iter().filter(|one| !one.verdict.is_healthy()) {
        let running = one.actual.as_ref().is_some_and(|app| app["status"]["operationState"]["phase"] == "Running");
        if one.actual.is_some() && !running {
            ignore_absent(refresh(argocd, &one.name).await)?;
        }
    }
    if judged.iter().any(|one| one.actual.is_none()) {
        for set in sets {
            ignore_absent(regenerate(argocd, set).await)?;
        }
    }
    Ok(())
}

pub async fn our_sets(cx: &Context, argocd: &ArgoCd) -> Result<Vec<String>> {
    let project = cx.spec.name.project();
    let sets = argocd.list(&application_set_type(), "").await?;
    Ok(sets
        .iter()
        .filter(|set| set["spec"]["template"]["spec"]["project"] == *project)
        .filter_map(|set| set["metadata"]["name"].as_str().map(str::to_owned))
        .collect())
}

#[async_trait]
impl Step<Context> for Applications {
    fn id(&self) -> StepId {
        APPLICATIONS
    }

    fn needs(&self) -> &[StepId] {
        &[ROOT, REGISTRATION]
    }

    fn inside(&self) -> Option<StepId> {
        None
    }

    fn describe(&self) -> String {
        "every Application healthy at the published commit".into()
    }

    fn limit(&self) -> Duration {
        // Its own limit is the user's --timeout, and ends with a list of what is missing.
        Duration::from_secs(24 * 3600)
    }

    fn leaves_nothing(&self) -> bool {
        true
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        let Some(argocd) = cx.argocd().await? else { return Ok(Context::needs_cluster()) };
        Ok(state_of(&wanted(cx, &argocd).await?))
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        if cx.options.no_wait {
            return Ok(());
        }
        let sides = cx.require_sides().await?;
        let argocd = &sides.argocd;
        let deadline = Instant::now() + cx.options.timeout;
        let mut nudged = Instant::now();
        let mut look = Look::begin();
        loop {
            let mut judged = wanted(cx, argocd).await?;
            look.follow(&sides, &mut judged).await;
            let healthy = judged.iter().filter(|one| one.verdict.is_healthy()).count();
            let Some(worst) = worst(&judged) else { return Ok(()) };
            cx.detail(
                APPLICATIONS,
                &format!("{healthy} of {} healthy; {}: {}", judged.len(), worst.name, worst.why(120)),
            );
            if Instant::now() >= deadline {
                explain_all(&sides, &mut judged).await;
                return Err(unhealthy(cx, &judged));
            }
            if nudged.elapsed() >= NUDGE {
                nudge(argocd, &judged, &our_sets(cx, argocd).await?).await?;
                nudged = Instant::now();
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn undo(&self, _cx: &Context) -> Result<()> {
        Ok(())
    }
}

/// What the Applications say of the step that waits for them.
pub fn state_of(judged: &[Judged]) -> State {
    match judged.iter().find(|one| !one.verdict.is_healthy()) {
        None => State::Ready,
        Some(one) => State::Drifted(format!("{}: {}", one.name, one.verdict.reason())),
    }
}

/// The one to show: a failing Application before one that only takes its time.
fn worst(judged: &[Judged]) -> Option<&Judged> {
    let failing = judged.iter().find(|one| matches!(one.verdict, Verdict::Failing(_)));
    failing.or_else(|| judged.iter().find(|one| !one.verdict.is_healthy()))
}

fn unhealthy(cx: &Context, judged: &[Judged]) -> Error {
    let bad: Vec<&Judged> = judged.iter().filter(|one| !one.verdict.is_healthy()).collect();
    let lines: Vec<String> = bad
        .iter()
        .map(|one| match &one.cause {
            Some(cause) => format!("{cause}  [{}]", cause.code),
            None => format!("{}  {}", one.name, one.verdict.reason()),
        })
        .collect();
    let name = &cx.spec.name;
    let hints = hints(bad.iter().filter_map(|one| one.cause.as_ref()));
    let error = Error::new(
        Kind::Unhealthy,
        format!(
            "{} of {} Applications are not healthy after {} s",
            bad.len(),
            judged.len(),
            cx.options.timeout.as_secs()
        ),
    )
    .detail(lines.join("\n"));
    let first = (!hints.is_empty()).then(|| kubeconfig_hint(name));
    let error = first.into_iter().chain(hints).fold(error, Error::hint);
    error
        .hint(format!("see each with its cause: k8tre dev status {name}"))
        .hint(format!("go on waiting: k8tre dev up {name} --timeout 15m"))
}
