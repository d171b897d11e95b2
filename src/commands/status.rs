//! `k8tre dev status`: what is there, what is wrong and why. Reads only, and answers also when
//! nothing else does.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::argocd::application::Verdict;
use crate::causes::Cause;
use crate::cli::StatusArgs;
use crate::commands::plan::{Nothing, words};
use crate::commands::{App, select};
use crate::context::{Context, Options, Record};
use crate::engine::{Engine, State};
use crate::error::{Error, Kind, Result};
use crate::names::EnvName;
use crate::ports::git::Checkout;
use crate::report::{SCHEMA, age, table};
use crate::steps::applications::{Judged, judge_all};
use crate::steps::explain::{explain_all, hints, kubeconfig_hint};
use crate::steps::{cluster, publish};

/// A server that hangs must not make status hang. Longer than Docker gets, whose silence is then named.
const LIMIT: Duration = Duration::from_secs(11);
/// Width of the table's last column.
const CELL: usize = 120;

#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    environment: EnvName,
    id: String,
    created: jiff::Timestamp,
    healthy: bool,
    cluster: ClusterReport,
    argocd: ArgoCdReport,
    branch: BranchReport,
    applications: Vec<ApplicationReport>,
    steps: Vec<StepReport>,
}

#[derive(Debug, Serialize)]
struct ClusterReport {
    provider: &'static str,
    name: String,
    state: String,
    address: Option<String>,
    kubeconfig: std::path::PathBuf,
}

#[derive(Debug, Serialize)]
struct ArgoCdReport {
    version: String,
    placement: &'static str,
}

#[derive(Debug, Default, Serialize)]
struct BranchReport {
    name: String,
    repository: std::path::PathBuf,
    base: String,
    tip: Option<String>,
    published: Option<String>,
    /// The work tree that is deployed in place of the branch's tip.
    #[serde(skip_serializing_if = "Option::is_none")]
    synced: Option<SyncedReport>,
    /// Commits of the base that the branch lacks, and of the branch that the base lacks.
    behind: Option<usize>,
    ahead: Option<usize>,
    /// Files of the work tree that differ from its commit.
    changed: Option<usize>,
    untracked: Option<usize>,
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct SyncedReport {
    commit: String,
    at: jiff::Timestamp,
}

#[derive(Debug, Serialize)]
struct ApplicationReport {
    name: String,
    sync: Option<String>,
    health: Option<String>,
    revision: Option<String>,
    #[serde(flatten)]
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<Cause>,
    /// The root of it, as the table shows it.
    #[serde(skip)]
    why: String,
}

#[derive(Debug, Serialize)]
struct StepReport {
    id: &'static str,
    state: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    detail: String,
}

pub async fn run(app: &App, args: &StatusArgs) -> Result<u8> {
    let name = select::existing_name(app, &args.name)?;
    let journal = select::journal_of(app, &name)?;
    let facts = Box::new(journal.facts.clone());
    let options = Options { require_synced: args.require_synced, offline: true, ..Options::default() };
    let cx = Context::new(&journal, Record::Reading(facts), app.dirs.clone(), options, app.ui.clone());
    let steps = crate::plan::steps(&cx.spec);
    let engine = Engine { steps: &steps, ledger: &Nothing, events: &(), cancel: app.cancel.clone() };
    let look =
        async { tokio::join!(engine.observe(&cx, LIMIT), cluster_report(&cx), branch_report(&cx), applications(&cx)) };
    let (states, cluster, branch, applications) = tokio::select! {
        () = app.cancel.cancelled() => return Err(Error::interrupted()),
        seen = look => seen,
    };
    let steps: Vec<StepReport> = states
        .iter()
        .map(|(id, state)| {
            let (state, detail) = words(state);
            StepReport { id, state, detail }
        })
        .collect();
    let healthy = states.iter().all(|(_, state)| matches!(state, State::Ready | State::Foreign));
    let report = Report {
        schema: SCHEMA,
        environment: name.clone(),
        id: journal.id.clone(),
        created: journal.created,
        healthy,
        cluster,
        argocd: ArgoCdReport { version: cx.spec.argocd.version.clone(), placement: "co-located" },
        branch,
        applications: applications.iter().map(application_report).collect(),
        steps,
    };
    match app.ui.is_json() {
        true => app.ui.json(&report)?,
        false => show(app, &report),
    }
    Ok(if healthy { 0 } else { Kind::Unhealthy.exit_code() })
}

async fn cluster_report(cx: &Context) -> ClusterReport {
    let state = match tokio::time::timeout(LIMIT, cluster::observe(cx)).await {
        Ok(Ok(state)) => state.to_string(),
        Ok(Err(error)) => format!("unknown: {}", error.message()),
        Err(_) => "unknown: Docker does not answer".to_owned(),
    };
    let kube = cx.kube().await.ok().flatten();
    ClusterReport {
        provider: "kind",
        name: cx.spec.name.cluster(),
        state,
        address: kube.map(|kube| kube.server().trim_end_matches('/').to_owned()),
        kubeconfig: cx.kubeconfig(),
    }
}

async fn branch_report(cx: &Context) -> BranchReport {
    let mut report = BranchReport {
        name: cx.spec.name.branch(),
        repository: cx.spec.repo.clone(),
        base: cx.spec.base.clone(),
        published: cx.facts().published,
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

async fn applications(cx: &Context) -> Vec<Judged> {
    let Ok(Some(kube)) = cx.kube().await else { return Vec::new() };
    let judged = tokio::time::timeout(LIMIT, judge_all(cx, &kube)).await;
    let mut judged = judged.ok().and_then(Result::ok).unwrap_or_default();
    explain_all(&kube, &mut judged).await;
    judged
}

fn application_report(judged: &Judged) -> ApplicationReport {
    let text = |pointer: &str| {
        let value = judged.actual.as_ref()?.pointer(pointer)?.as_str()?;
        Some(value.to_owned())
    };
    ApplicationReport {
        name: judged.name.clone(),
        sync: text("/status/sync/status"),
        health: text("/status/health/status"),
        revision: text("/status/sync/revision"),
        verdict: judged.verdict.clone(),
        cause: judged.cause.clone(),
        why: judged.why(CELL),
    }
}

fn show(app: &App, report: &Report) {
    let ui = &app.ui;
    let mark = if report.healthy { ui.tick() } else { ui.cross() };
    let word = if report.healthy { "healthy" } else { "not healthy" };
    ui.data(&format!("{mark} {} is {word}, {} old", report.environment, age(report.created)));
    ui.data(&format!("  {:<13} {} {}", "cluster", report.cluster.state, describe_cluster(&report.cluster)));
    ui.data(&format!("  {:<13} {} {}", "Argo CD", report.argocd.version, report.argocd.placement));
    ui.data(&format!("  {:<13} {}", "branch", describe_branch(&report.branch)));
    let wrong: BTreeMap<&str, &StepReport> = report
        .steps
        .iter()
        .filter(|step| step.state != "ready" && step.state != "foreign")
        .map(|step| (step.id, step))
        .collect();
    for step in report.steps.iter().filter(|step| wrong.contains_key(step.id)) {
        let detail = if step.detail.is_empty() { String::new() } else { format!(": {}", step.detail) };
        ui.data(&format!("  {} {:<11} {}{detail}", ui.cross(), step.id, step.state));
    }
    if !report.applications.is_empty() {
        ui.data("");
        let rows = report.applications.iter().map(|app| {
            let revision = app.revision.as_deref().map(|r| r.get(..8).unwrap_or(r)).unwrap_or("-");
            let health = match (&app.verdict, &app.health) {
                (Verdict::Healthy | Verdict::Warning(_), Some(health)) => health.clone(),
                (_, health) => health.clone().unwrap_or_else(|| "-".into()),
            };
            vec![
                app.name.clone(),
                app.sync.clone().unwrap_or_else(|| "-".into()),
                health,
                revision.to_owned(),
                app.why.clone(),
            ]
        });
        ui.data(&table(&["APPLICATION", "SYNC", "HEALTH", "COMMIT", ""], rows));
    }
    let hints = hints(report.applications.iter().filter_map(|app| app.cause.as_ref()));
    if !hints.is_empty() {
        ui.say("");
        ui.say(&format!("  look closer, after {}:", kubeconfig_hint(&report.environment)));
        hints.iter().for_each(|hint| ui.say(&format!("    {hint}")));
    }
    if !report.healthy {
        ui.say("");
        ui.say(&format!("  repair it: k8tre dev up {}", report.environment));
    }
}

fn describe_cluster(cluster: &ClusterReport) -> String {
    let address = cluster.address.as_deref().unwrap_or("no address");
    format!("({} {}, {address})", cluster.provider, cluster.name)
}

fn describe_branch(branch: &BranchReport) -> String {
    if let Some(error) = &branch.error {
        return format!("{}: {error}", branch.name);
    }
    let short = |commit: &Option<String>| commit.as_deref().map(|c| c.get(..8).unwrap_or(c).to_owned());
    let mut parts = vec![match (short(&branch.tip), short(&branch.published)) {
        (Some(tip), Some(published)) if branch.synced.is_some() => {
            let old = branch.synced.as_ref().map(|synced| age(synced.at)).unwrap_or_default();
            format!("{} at {tip}; your work tree of {old} ago is deployed, as {published}", branch.name)
        }
        (None, _) => format!("{} is gone", branch.name),
        (Some(tip), Some(published)) if tip == published => format!("{} at {tip}, published", branch.name),
        (Some(tip), Some(published)) => format!("{} at {tip}, {published} is published", branch.name),
        (Some(tip), None) => format!("{} at {tip}, not published", branch.name),
    }];
    if let Some(behind) = branch.behind.filter(|behind| *behind > 0) {
        parts.push(format!("{behind} commits behind {}", branch.base));
    }
    let dirty = branch.changed.unwrap_or(0) + branch.untracked.unwrap_or(0);
    if dirty > 0 {
        parts.push(format!("{dirty} uncommitted files in the work tree"));
    }
    parts.join("; ")
}
