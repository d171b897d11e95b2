//! A status as text: what is data, and what is advice.

use owo_colors::{OwoColorize, Style};

use super::gather::{ApplicationReport, ArgoCdReport, BranchReport, ClusterReport, Report};
use crate::expiry;
use crate::names::EnvName;
use crate::report::{age, table};
use crate::steps::explain::{hints, kubeconfig_hint};

const HEADER: [&str; 5] = ["APPLICATION", "SYNC", "HEALTH", "COMMIT", ""];

/// Everything above the table.
pub fn head(report: &Report, unicode: bool) -> Vec<String> {
    let word = if report.healthy { "healthy" } else { "not healthy" };
    let mut lines = vec![
        format!("{} {} is {word}, {} old", mark(report.healthy, unicode), report.environment, age(report.created)),
        format!("  {:<13} {} {}", "cluster", report.cluster.state, describe_cluster(&report.cluster)),
        format!("  {:<13} {} {}", "Argo CD", report.argocd.version, placement(&report.argocd)),
        format!("  {:<13} {}", "branch", describe_branch(&report.branch)),
    ];
    if let Some(expires) = report.expires {
        let now = jiff::Timestamp::now();
        let words = format!("{}; k8tre dev extend {} 8h", expiry::shown(expires, now), report.environment);
        lines.push(match expiry::is_over(report.expires, now) {
            true => format!("  {} {:<11} {words}", mark(false, unicode), "end"),
            false => format!("  {:<13} {words}", "end"),
        });
    }
    if let Some(warning) = report.argocd.shared.as_ref().and_then(|shared| shared.warning.as_ref()) {
        lines.push(format!("  {} {:<11} {warning}", mark(false, unicode), "token"));
    }
    lines.extend(report.branch.uses.iter().map(|used| format!("  {:<13} {} {}", "", used.application, used.source)));
    for step in report.steps.iter().filter(|step| step.state != "ready" && step.state != "foreign") {
        let detail = if step.detail.is_empty() { String::new() } else { format!(": {}", step.detail) };
        lines.push(format!("  {} {:<11} {}{detail}", mark(false, unicode), step.id, step.state));
    }
    lines
}

/// The table: its header, then a line an Application.
pub fn applications(report: &Report) -> Vec<String> {
    let rows = report.applications.iter().map(row);
    table(&HEADER, rows).lines().map(str::to_owned).collect()
}

fn row(app: &ApplicationReport) -> Vec<String> {
    let revision = app.revision.as_deref().map_or("-", |revision| revision.get(..8).unwrap_or(revision));
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    vec![app.name.clone(), or_dash(&app.sync), or_dash(&app.health), revision.to_owned(), app.why.clone()]
}

/// The data as `status` prints it.
pub fn text(report: &Report, unicode: bool) -> String {
    let mut lines = head(report, unicode);
    if !report.applications.is_empty() {
        lines.push(String::new());
        lines.extend(applications(report));
    }
    lines.join("\n")
}

/// What to do about it.
pub fn advice(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    let hints = hints(report.applications.iter().filter_map(|app| app.cause.as_ref()));
    if !hints.is_empty() {
        lines.extend([String::new(), look_closer(&report.environment)]);
        lines.extend(hints.iter().map(|hint| format!("    {hint}")));
    }
    for app in report.applications.iter().filter(|app| app.held.is_some()) {
        lines.extend([
            String::new(),
            format!("  end the hold: k8tre dev release {} --name {}", app.name, report.environment),
        ]);
    }
    if !report.healthy {
        lines.extend([String::new(), format!("  repair it: k8tre dev up {}", report.environment)]);
    }
    lines
}

fn look_closer(name: &EnvName) -> String {
    format!("  look closer, after {}:", kubeconfig_hint(name))
}

fn mark(good: bool, unicode: bool) -> String {
    match (good, unicode) {
        (true, true) => "✓".style(Style::new().green().bold()).to_string(),
        (true, false) => "ok".style(Style::new().green().bold()).to_string(),
        (false, true) => "✗".style(Style::new().red().bold()).to_string(),
        (false, false) => "x ".style(Style::new().red().bold()).to_string(),
    }
}

fn placement(argocd: &ArgoCdReport) -> String {
    match &argocd.shared {
        None => argocd.placement.to_owned(),
        Some(shared) => {
            let names: Vec<&str> = shared.namespaces.iter().map(String::as_str).collect();
            let held = if names.is_empty() { String::new() } else { format!(", held to {}", names.join(", ")) };
            format!(
                "shared, in {}/{}, reaches the cluster at {}{held}",
                shared.context, shared.namespace, shared.server
            )
        }
    }
}

fn describe_cluster(cluster: &ClusterReport) -> String {
    let address = cluster.address.as_deref().unwrap_or("no address");
    format!("({} {}, {address})", cluster.provider, cluster.name)
}

/// Where the branch is, in words.
pub fn describe_branch(branch: &BranchReport) -> String {
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
