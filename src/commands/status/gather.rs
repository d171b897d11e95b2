//! What `status` and `graph` show, gathered in one look that no silence can hold up.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::argocd::application::Verdict;
use crate::causes::Cause;
use crate::commands::App;
use crate::commands::plan::{Nothing, words};
use crate::context::{Context, Options, Record};
use crate::engine::{Engine, State};
use crate::error::{Error, Result};
use crate::gitops::windows::Hold;
use crate::journal::Journal;
use crate::names::EnvName;
use crate::ports::git::{Checkout, CommitId, redacted};
use crate::providers::ClusterState;
use crate::report::{SCHEMA, age};
use crate::shared::check::version;
use crate::spec::Use;
use crate::steps::applications::{Judged, judge_all, state_of};
use crate::steps::explain::explain_all;
use crate::steps::{APPLICATIONS, publish, uses};

/// A server that hangs must not make status hang. Longer than Docker gets, whose silence is then named.
const LIMIT: Duration = Duration::from_secs(11);
/// A token that ends within this time is warned of, in seconds.
const TOKEN_WARNING: i64 = 2 * 3600;
/// Width of the table's last column.
const CELL: usize = 120;

#[derive(Debug, Serialize)]
pub struct Report {
    pub schema: u32,
    pub environment: EnvName,
    pub id: String,
    pub created: jiff::Timestamp,
    /// When whoever runs `gc` may remove it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<jiff::Timestamp>,
    pub healthy: bool,
    pub cluster: ClusterReport,
    pub argocd: ArgoCdReport,
    pub branch: BranchReport,
    pub applications: Vec<ApplicationReport>,
    pub steps: Vec<StepReport>,
    /// Applications that the branch makes, by name, with their ApplicationSet.
    #[serde(skip)]
    pub predicted: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
pub struct ClusterReport {
    pub provider: &'static str,
    pub name: String,
    pub state: String,
    pub address: Option<String>,
    pub kubeconfig: PathBuf,
}

#[derive(Debug, Serialize)]
pub struct ArgoCdReport {
    pub version: String,
    pub placement: &'static str,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedReport>,
}

/// An Argo CD that others use too.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SharedReport {
    pub context: String,
    pub namespace: String,
    /// Address of the environment's cluster there.
    pub server: String,
    /// The only namespaces that it may manage; absent if it may manage all.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub namespaces: BTreeSet<String>,
    pub token_expires: Option<jiff::Timestamp>,
    /// What is to be done about the token, and until when.
    pub warning: Option<String>,
}

#[derive(Debug, Default, Serialize)]
pub struct BranchReport {
    pub name: String,
    pub repository: PathBuf,
    pub base: String,
    pub tip: Option<String>,
    pub published: Option<String>,
    /// The work tree that is deployed in place of the branch's tip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synced: Option<SyncedReport>,
    /// Commits of the base that the branch lacks, and of the branch that the base lacks.
    pub behind: Option<usize>,
    pub ahead: Option<usize>,
    /// Files of the work tree that differ from its commit.
    pub changed: Option<usize>,
    pub untracked: Option<usize>,
    pub error: Option<String>,
    /// Applications whose files come from another branch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<UseReport>,
}

#[derive(Debug, Serialize)]
pub struct UseReport {
    pub application: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    pub branch: String,
    pub commit: String,
    /// As people read it.
    #[serde(skip)]
    pub source: String,
}

#[derive(Debug, Serialize)]
pub struct SyncedReport {
    pub commit: String,
    pub at: jiff::Timestamp,
}

#[derive(Debug, Serialize)]
pub struct ApplicationReport {
    pub name: String,
    #[serde(rename = "applicationSet", skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    pub sync: Option<String>,
    pub health: Option<String>,
    pub revision: Option<String>,
    #[serde(flatten)]
    pub verdict: Verdict,
    /// While it is not synced by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Hold>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The root of it, as the table shows it.
    #[serde(skip)]
    pub why: String,
}

#[derive(Debug, Serialize)]
pub struct StepReport {
    pub id: &'static str,
    pub state: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// One look at an environment; it reads only.
pub async fn look(app: &App, journal: &Journal, require_synced: bool) -> Result<Report> {
    let facts = Box::new(journal.facts.clone());
    let options = Options { require_synced, offline: true, ..Options::default() };
    let cx = Context::new(journal, Record::Reading(facts), app.dirs.clone(), options, app.ui.clone());
    let mut steps = crate::plan::steps(&cx.spec);
    // The Applications are listed once, for the step's state and for the table.
    let at = steps.iter().position(|step| step.id() == APPLICATIONS).unwrap_or(steps.len());
    steps.retain(|step| step.id() != APPLICATIONS);
    let engine = Engine { steps: &steps, ledger: &Nothing, events: &(), cancel: app.cancel.clone() };
    let look = async {
        tokio::join!(
            engine.observe(&cx, LIMIT),
            cluster_report(&cx),
            branch_report(&cx),
            applications(&cx),
            argocd_report(&cx)
        )
    };
    let (mut states, cluster, branch, judged, argocd) = tokio::select! {
        () = app.cancel.cancelled() => return Err(Error::interrupted()),
        seen = look => seen,
    };
    states.insert(at.min(states.len()), (APPLICATIONS, judged.as_ref().map_or_else(Clone::clone, |all| state_of(all))));
    let predicted = predicted(&cx).await;
    Ok(Report {
        schema: SCHEMA,
        environment: journal.spec.name.clone(),
        id: journal.id.clone(),
        created: journal.created,
        expires: journal.spec.expires,
        healthy: states.iter().all(|(_, state)| matches!(state, State::Ready | State::Foreign)),
        cluster,
        argocd,
        branch,
        applications: judged.iter().flatten().map(|one| application_report(one, &predicted, held(&cx, one))).collect(),
        steps: states.iter().map(|(id, state)| step_report(id, state)).collect(),
        predicted,
    })
}

fn step_report(id: &'static str, state: &State) -> StepReport {
    let (state, detail) = words(state);
    StepReport { id, state, detail }
}

async fn predicted(cx: &Context) -> BTreeMap<String, String> {
    let Ok(overlay) = cx.overlay().await else { return BTreeMap::new() };
    let applications = overlay.prediction.applications.iter();
    applications.map(|app| (app.name.to_string(), app.application_set.to_string())).collect()
}

async fn cluster_report(cx: &Context) -> ClusterReport {
    let state = match tokio::time::timeout(LIMIT, cx.provider().observe(cx)).await {
        Ok(Ok(state @ ClusterState::Stopped(_))) => match cx.facts().paused_at {
            Some(since) => format!("paused for {}; go on with it: k8tre dev resume {}", age(since), cx.spec.name),
            None => state.to_string(),
        },
        Ok(Ok(state)) => state.to_string(),
        Ok(Err(error)) => format!("unknown: {}", error.message()),
        Err(_) => "unknown: Docker does not answer".to_owned(),
    };
    let kube = cx.kube().await.ok().flatten();
    ClusterReport {
        provider: cx.provider().name(),
        name: cx.provider().cluster(&cx.spec.name),
        state,
        address: kube.map(|kube| kube.server().trim_end_matches('/').to_owned()),
        kubeconfig: cx.kubeconfig(),
    }
}

async fn argocd_report(cx: &Context) -> ArgoCdReport {
    let Some(shared) = cx.spec.argocd.shared() else {
        let version = match cx.spec.installs_argocd() {
            true => cx.spec.argocd.version.clone(),
            false => version_there(cx).await,
        };
        return ArgoCdReport { version, placement: "co-located", shared: None };
    };
    let version = version_there(cx).await;
    let expires = cx.facts().token_expires;
    let report = SharedReport {
        context: shared.context.clone(),
        namespace: shared.namespace.clone(),
        server: shared.server.clone(),
        namespaces: shared.namespaces.clone(),
        token_expires: expires,
        warning: expires.and_then(|expires| token_warning(&cx.spec.name, expires, jiff::Timestamp::now())),
    };
    ArgoCdReport { version, placement: "shared", shared: Some(report) }
}

/// The version of an Argo CD that k8tre did not install.
async fn version_there(cx: &Context) -> String {
    let version = async { version(&cx.require_argocd().await.ok()?).await };
    let version = tokio::time::timeout(LIMIT, version).await.ok().flatten();
    version.unwrap_or_else(|| "of unknown version".into())
}

/// What a person has to know of a token that ends soon, or has ended.
fn token_warning(name: &EnvName, expires: jiff::Timestamp, now: jiff::Timestamp) -> Option<String> {
    let left = expires.duration_since(now);
    let at = expires.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M %Z");
    let renew = format!("a new one: k8tre dev up {name}");
    match left.as_secs() {
        ..=0 => Some(format!("the token ended at {at}: Argo CD cannot reach the cluster; {renew}")),
        1..=TOKEN_WARNING => Some(format!("the token ends at {at}, in {} min; {renew}", left.as_mins())),
        _ => None,
    }
}

fn use_report((application, used): (&String, &Use)) -> UseReport {
    UseReport {
        application: application.clone(),
        repo: used.repo.as_deref().map(redacted),
        branch: used.branch.clone(),
        commit: used.commit.clone(),
        source: uses::source(used),
    }
}

async fn branch_report(cx: &Context) -> BranchReport {
    let mut report = BranchReport {
        name: cx.spec.name.branch(),
        repository: cx.spec.repo.clone(),
        base: cx.spec.base.clone(),
        published: cx.facts().published,
        uses: cx.spec.uses.iter().filter(|(_, used)| !used.back).map(use_report).collect(),
        ..BranchReport::default()
    };
    let mut look = async || -> Result<()> {
        let checkout = Checkout::open(&cx.spec.repo)?;
        let dirty = checkout.dirty().await?;
        (report.changed, report.untracked) = (Some(dirty.changed), Some(dirty.untracked));
        if let (Some(_), Some(synced)) = (publish::work_tree(cx)?, cx.facts().synced) {
            report.synced = Some(SyncedReport { commit: synced.commit, at: synced.at });
        }
        if let Some(tip) = checkout.tip(&report.name)? {
            report.tip = Some(tip.to_string());
            let counts = checkout.ahead_behind(tip, checkout.resolve(&cx.spec.base)?)?;
            (report.ahead, report.behind) = (Some(counts.ahead), Some(counts.behind));
        }
        Ok(())
    };
    if let Err(error) = look().await {
        report.error = Some(error.to_string());
    }
    report
}

/// The Applications with their causes, or the state of a step that cannot see them.
async fn applications(cx: &Context) -> Result<Vec<Judged>, State> {
    let unknown = |error: Error| State::Unknown(error.to_string());
    let sides = cx.sides().await.map_err(unknown)?.ok_or_else(Context::needs_cluster)?;
    let judged = tokio::time::timeout(LIMIT, judge_all(cx, &sides.argocd)).await;
    let mut judged = judged
        .unwrap_or_else(|_| Err(Error::failed(format!("gave up after {} s", LIMIT.as_secs()))))
        .map_err(unknown)?;
    explain_all(&sides, &mut judged).await;
    Ok(judged)
}

fn held(cx: &Context, judged: &Judged) -> Option<Hold> {
    let hold = cx.spec.holds.get(&judged.name).copied();
    hold.filter(|hold| !hold.is_over(jiff::Timestamp::now()))
}

fn application_report(judged: &Judged, predicted: &BTreeMap<String, String>, held: Option<Hold>) -> ApplicationReport {
    let text = |pointer: &str| {
        let value = judged.actual.as_ref()?.pointer(pointer)?.as_str()?;
        Some(value.to_owned())
    };
    let owner = || {
        (text("/metadata/ownerReferences/0/kind")? == "ApplicationSet")
            .then_some(())
            .and_then(|()| text("/metadata/ownerReferences/0/name"))
    };
    ApplicationReport {
        name: judged.name.clone(),
        set: owner().or_else(|| predicted.get(&judged.name).cloned()),
        sync: text("/status/sync/status"),
        health: text("/status/health/status"),
        // What was never compared has the branch's name there.
        revision: text("/status/sync/revision").filter(|revision| revision.parse::<CommitId>().is_ok()),
        verdict: judged.verdict.clone(),
        held,
        cause: judged.cause.clone(),
        why: judged.why(CELL),
    }
}
