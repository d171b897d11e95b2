//! The environment as a tree: what lives in what, and how each part does.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::argocd::application::Verdict;
use crate::commands::status::gather::{ApplicationReport, Report};
use crate::commands::status::show::describe_branch;
use crate::steps::{ARGOCD, ARGOCD_CONFIG, ARGOCD_UI, GIT_SERVER};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Good,
    /// Not there yet, and may get there by itself.
    Waiting,
    Bad,
    /// Nobody can tell now.
    Unknown,
}

#[derive(Debug, Serialize)]
pub struct Node {
    /// `cluster`, `Argo CD`, `branch`, `ApplicationSet`, `Application` or `cause`.
    pub kind: &'static str,
    pub name: String,
    /// How it does, in words.
    pub note: String,
    pub state: State,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Node>,
}

impl Node {
    /// What a box in a picture says, line by line.
    pub fn lines(&self) -> Vec<String> {
        let short = |text: &str| crate::text::one_line(text, 60);
        let first = if self.kind == "cause" { self.name.clone() } else { format!("{} {}", self.kind, self.name) };
        [short(&first)].into_iter().chain((!self.note.is_empty()).then(|| short(&self.note))).collect()
    }
}

/// All nodes, parents first, each with its number and its parent's.
pub fn numbered(root: &Node) -> Vec<(usize, Option<usize>, &Node)> {
    let mut all = Vec::new();
    let mut next = vec![(None, root)];
    while let Some((parent, node)) = next.pop() {
        let number = all.len();
        all.push((number, parent, node));
        next.extend(node.children.iter().rev().map(|child| (Some(number), child)));
    }
    all
}

pub fn of(report: &Report) -> Node {
    let seen = report.cluster.state == "running";
    let branch = Node {
        kind: "branch",
        name: report.branch.name.clone(),
        note: describe_branch(&report.branch)
            .trim_start_matches(&report.branch.name)
            .trim_start_matches([':', ' '])
            .to_owned(),
        state: match (&report.branch.error, &report.branch.tip) {
            (Some(_), _) => State::Unknown,
            (None, None) => State::Bad,
            (None, tip) if *tip == report.branch.published => State::Good,
            _ => State::Waiting,
        },
        children: Vec::new(),
    };
    let root = report.environment.root_application();
    let parts = [ARGOCD_CONFIG, ARGOCD, ARGOCD_UI, GIT_SERVER];
    let wrong: Vec<String> = report
        .steps
        .iter()
        .filter(|step| parts.contains(&step.id) && step.state != "ready" && step.state != "foreign")
        .map(|step| format!("{} {}", step.id, step.state))
        .collect();
    let argocd = Node {
        kind: "Argo CD",
        name: report.argocd.version.clone(),
        note: if wrong.is_empty() { "running".to_owned() } else { wrong.join(", ") },
        state: match (wrong.is_empty(), seen) {
            (true, _) => State::Good,
            (false, true) => State::Bad,
            (false, false) => State::Unknown,
        },
        children: vec![branch, root_application(report, &root)],
    };
    let state = match report.cluster.state.as_str() {
        "running" => State::Good,
        state if state.starts_with("unknown") => State::Unknown,
        _ => State::Bad,
    };
    let cluster = Node {
        kind: "cluster",
        name: report.cluster.name.clone(),
        note: report.cluster.state.clone(),
        state,
        children: vec![argocd],
    };
    Node {
        kind: "environment",
        name: report.environment.to_string(),
        note: if report.healthy { "healthy".into() } else { "not healthy".into() },
        state: if report.healthy { State::Good } else { State::Bad },
        children: vec![cluster],
    }
}

/// The root Application with the sets that it deploys, and what belongs to none of them.
fn root_application(report: &Report, root: &str) -> Node {
    let known: BTreeMap<&str, &ApplicationReport> =
        report.applications.iter().map(|app| (app.name.as_str(), app)).collect();
    let names: BTreeSet<&str> = known.keys().copied().chain(report.predicted.keys().map(String::as_str)).collect();
    let mut sets: BTreeMap<&str, Vec<Node>> = BTreeMap::new();
    let mut loose = Vec::new();
    for name in names.into_iter().filter(|name| *name != root) {
        let node = application(name, known.get(name).copied());
        let set = known.get(name).and_then(|app| app.set.as_ref()).or_else(|| report.predicted.get(name));
        match set {
            Some(set) => sets.entry(set).or_default().push(node),
            None => loose.push(node),
        }
    }
    let mut node = application(root, known.get(root).copied());
    node.children.extend(sets.into_iter().map(|(name, applications)| Node {
        kind: "ApplicationSet",
        name: name.to_owned(),
        note: String::new(),
        state: worst(&applications),
        children: applications,
    }));
    node.children.extend(loose);
    node
}

fn application(name: &str, seen: Option<&ApplicationReport>) -> Node {
    let node =
        |note: String, state| Node { kind: "Application", name: name.to_owned(), note, state, children: Vec::new() };
    let Some(app) = seen else { return node("cannot be seen".into(), State::Unknown) };
    let (sync, health) = (app.sync.as_deref().unwrap_or("not synced"), app.health.as_deref().unwrap_or("no health"));
    let state = match app.verdict {
        Verdict::Healthy | Verdict::Warning(_) => State::Good,
        Verdict::Waiting(_) => State::Waiting,
        Verdict::Failing(_) => State::Bad,
    };
    let mut node = node(format!("{health}, {sync}"), state);
    let why = match &app.cause {
        Some(cause) => Some((cause.chain.get(1..).unwrap_or_default().join(" <- "), cause.code)),
        None if app.verdict.reason().is_empty() => None,
        None => Some((app.verdict.reason().to_owned(), "")),
    };
    node.children.extend(why.map(|(why, code)| Node {
        kind: "cause",
        name: if why.is_empty() { code.to_owned() } else { why },
        note: code.to_owned(),
        state,
        children: Vec::new(),
    }));
    node
}

fn worst(nodes: &[Node]) -> State {
    let any = |state| nodes.iter().any(|node| node.state == state);
    [State::Bad, State::Waiting, State::Unknown].into_iter().find(|state| any(*state)).unwrap_or(State::Good)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// An environment with something of everything, and names that pictures could trip over.
    pub fn sample() -> Node {
        let node = |kind, name: &str, note: &str, state, children| Node {
            kind,
            name: name.into(),
            note: note.into(),
            state,
            children,
        };
        let cause = node("cause", "Pod \"web\" <- image <a&b> cannot be pulled", "image-pull", State::Bad, vec![]);
        let set = node(
            "ApplicationSet",
            "apps-alice",
            "",
            State::Bad,
            vec![
                node("Application", "portal-alice", "Degraded, Synced", State::Bad, vec![cause]),
                node("Application", "metrics-alice", "Healthy, Synced", State::Good, vec![]),
            ],
        );
        let root = node("Application", "root-app-of-apps-alice", "Healthy, Synced", State::Good, vec![set]);
        let branch = node("branch", "dev/alice", "at ae389a1b, published", State::Good, vec![]);
        let argocd = node("Argo CD", "v3.6.1", "running", State::Good, vec![branch, root]);
        let cluster = node("cluster", "k8tre-alice", "running", State::Good, vec![argocd]);
        node("environment", "alice", "not healthy", State::Bad, vec![cluster])
    }

    #[test]
    fn numbers_are_in_the_order_of_reading() {
        let root = sample();
        let names: Vec<&str> = numbered(&root).iter().map(|(_, _, node)| node.name.as_str()).collect();
        assert_eq!(names[..5], ["alice", "k8tre-alice", "v3.6.1", "dev/alice", "root-app-of-apps-alice"]);
        let parents: Vec<Option<usize>> = numbered(&root).iter().map(|(_, parent, _)| *parent).collect();
        assert_eq!(parents[..5], [None, Some(0), Some(1), Some(2), Some(2)]);
    }
}
