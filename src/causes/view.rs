//! One Application's part of the evidence: what belongs to it, and what of that is in trouble.

use std::collections::BTreeSet;

use serde_json::Value;

use super::evidence::{Evidence, items, name_of, namespace_of};
use super::words::pattern;
use crate::ports::kube::condition;

/// Owners that stand between a pod and what git declares.
const DEPTH: usize = 6;

pub struct View<'a> {
    pub app: &'a Value,
    pub evidence: &'a Evidence,
    /// Pods that belong to the Application and are not fine, in a stable order.
    pub pods: Vec<Pod<'a>>,
    /// Objects that the API server refused.
    pub refusals: Vec<Refusal<'a>>,
    /// Namespaces that it deploys to: what lies elsewhere needs no second look.
    namespaces: BTreeSet<&'a str>,
}

/// A pod in trouble.
pub struct Pod<'a> {
    pub object: &'a Value,
    pub namespace: &'a str,
    pub name: &'a str,
    /// `PostSync hook Job migrate`, if it belongs to a hook.
    pub hook: Option<String>,
}

/// A container in trouble.
pub struct Container<'a> {
    pub status: &'a Value,
    pub init: bool,
}

/// An object that could not be made, or changed: by Argo CD in a sync, or by a controller (a pod).
pub struct Refusal<'a> {
    /// `ConfigMap a`.
    pub object: String,
    /// Whether it is a pod that is refused to the object.
    pub of_pod: bool,
    pub namespace: &'a str,
    pub message: &'a str,
}

impl<'a> View<'a> {
    pub fn new(app: &'a Value, evidence: &'a Evidence) -> View<'a> {
        let mut view = View { app, evidence, pods: Vec::new(), refusals: Vec::new(), namespaces: BTreeSet::new() };
        let placed = view.resources().chain(view.sync_results()).filter_map(|one| one["namespace"].as_str());
        view.namespaces = placed.collect();
        let mut pods: Vec<Pod> = evidence
            .pods
            .iter()
            .filter(|pod| view.is_near(pod) && in_trouble(pod))
            .filter_map(|pod| view.own(pod))
            .collect();
        pods.sort_by_key(|pod| (pod.namespace, pod.name));
        view.refusals = view.refused_by_sync().chain(view.refused_pods()).collect();
        view.pods = pods;
        view
    }

    pub fn name(&self) -> &'a str {
        name_of(self.app)
    }

    pub fn operation(&self) -> &'a Value {
        &self.app["status"]["operationState"]
    }

    /// What the last operation says, without the remark on retries.
    pub fn operation_message(&self) -> &'a str {
        let message = self.operation()["message"].as_str().unwrap_or_default();
        let end = pattern!(r"\s*(\(retried \d+ times\)\.?|\.? ?Retrying attempt #\d+ at .*)$").find(message);
        message[..end.map_or(message.len(), |found| found.start())].trim()
    }

    /// Whether the last sync failed, also if Argo CD is trying again.
    pub fn sync_failed(&self) -> bool {
        let operation = self.operation();
        match operation["phase"].as_str() {
            Some("Failed" | "Error") => true,
            // A retry counts as failed until it runs: then it can still succeed.
            Some("Running") => {
                let message = operation["message"].as_str().unwrap_or_default();
                message.contains("Retrying attempt #") || self.sync_results().any(failed)
            }
            _ => false,
        }
    }

    pub fn sync_results(&self) -> impl Iterator<Item = &'a Value> {
        items(&self.operation()["syncResult"]["resources"])
    }

    pub fn resources(&self) -> impl Iterator<Item = &'a Value> {
        items(&self.app["status"]["resources"])
    }

    /// Conditions that stand for an error, as type and message.
    pub fn conditions(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        items(&self.app["status"]["conditions"])
            .filter_map(|condition| Some((condition["type"].as_str()?, condition["message"].as_str()?)))
            .filter(|(kind, _)| kind.ends_with("Error"))
    }

    /// The errors of comparing git with the cluster: what keeps a sync from being tried at all.
    pub fn comparison_errors(&self) -> impl Iterator<Item = &'a str> {
        self.conditions().filter(|(kind, _)| *kind != "SyncError").map(|(_, message)| message)
    }

    /// How the Application looks from outside: the first link of every chain.
    pub fn symptom(&self) -> String {
        let status = &self.app["status"];
        let health = status["health"]["status"].as_str().unwrap_or_default();
        let word = if self.app["spec"].is_null() {
            "is missing"
        } else if self.app["metadata"]["deletionTimestamp"].is_string() {
            "is being deleted"
        } else if self.sync_failed() {
            "sync failed"
        } else if health == "Degraded" {
            "Degraded"
        } else if self.comparison_errors().next().is_some() {
            "cannot be compared"
        } else if self.operation()["phase"] == "Running" {
            "sync running"
        } else {
            match health {
                "" | "Healthy" => status["sync"]["status"].as_str().unwrap_or("not looked at yet"),
                health => health,
            }
        };
        format!("{} {word}", self.name())
    }

    /// Whether an object belongs to this Application, and through which hook if through one.
    fn belongs(&self, kind: &str, namespace: &str, name: &str, depth: usize) -> Option<Option<String>> {
        if !self.namespaces.contains(namespace) {
            return None;
        }
        let named = |one: &&Value| {
            one["kind"] == kind && one["name"] == name && one["namespace"].as_str().unwrap_or_default() == namespace
        };
        if let Some(result) = self.sync_results().find(|one| named(one) && one["hookType"].is_string()) {
            return Some(Some(format!("{} hook {kind} {name}", result["hookType"].as_str().unwrap_or_default())));
        }
        if self.resources().chain(self.sync_results()).any(|one| named(&one)) {
            return Some(None);
        }
        let object = self.evidence.owner(kind, namespace, name)?;
        if depth == 0 {
            return None;
        }
        items(&object["metadata"]["ownerReferences"])
            .find_map(|owner| self.belongs(owner["kind"].as_str()?, namespace, owner["name"].as_str()?, depth - 1))
    }

    /// Whether an object lies where this Application has any: the cheap question before the thorough one.
    fn is_near(&self, object: &Value) -> bool {
        self.namespaces.contains(namespace_of(object))
    }

    pub fn owns(&self, object: &Value) -> bool {
        let kind = object["kind"].as_str().unwrap_or_default();
        self.belongs(kind, namespace_of(object), name_of(object), DEPTH).is_some()
    }

    fn own(&self, pod: &'a Value) -> Option<Pod<'a>> {
        let (namespace, name) = (namespace_of(pod), name_of(pod));
        let hook = self.belongs("Pod", namespace, name, DEPTH)?;
        Some(Pod { object: pod, namespace, name, hook })
    }

    fn refused_by_sync(&self) -> impl Iterator<Item = Refusal<'a>> + use<'a> {
        let failed: Vec<Refusal> = self
            .sync_results()
            .filter(|result| failed(result) && !result["hookType"].is_string())
            .filter_map(|result| {
                Some(Refusal {
                    object: format!("{} {}", result["kind"].as_str()?, result["name"].as_str()?),
                    of_pod: false,
                    namespace: result["namespace"].as_str().unwrap_or_default(),
                    message: result["message"].as_str()?,
                })
            })
            .collect();
        failed.into_iter()
    }

    /// Workloads whose pods are refused: by their condition if they have one, else by the newest event.
    fn refused_pods(&self) -> impl Iterator<Item = Refusal<'a>> + use<'a> {
        let evidence = self.evidence;
        let refused: Vec<Refusal> = evidence
            .workloads
            .iter()
            .chain(&evidence.jobs)
            .filter(|workload| self.is_near(workload))
            .filter(|workload| workload["kind"] != "Deployment" && lacks_pods(workload) && self.owns(workload))
            .filter_map(|workload| {
                let kind = workload["kind"].as_str()?;
                let (namespace, name) = (namespace_of(workload), name_of(workload));
                let message = condition(workload, "ReplicaFailure").and_then(|c| c["message"].as_str());
                let message = message.or_else(|| evidence.event_message(kind, namespace, name, &["FailedCreate"]))?;
                Some(Refusal { object: format!("{kind} {name}"), of_pod: true, namespace, message })
            })
            .collect();
        refused.into_iter()
    }
}

impl Refusal<'_> {
    pub fn link(&self) -> String {
        format!("{} {}", self.object, if self.of_pod { "makes no pod" } else { "is refused" })
    }
}

impl<'a> Pod<'a> {
    /// The links from the Application to this pod.
    pub fn links(&self) -> Vec<String> {
        let waiting = self.containers().find_map(|c| c.waiting()).map(|(reason, _)| reason);
        let phase = self.object["status"]["phase"].as_str().unwrap_or("Unknown");
        let word = match (waiting, phase) {
            (Some(reason), _) => reason,
            (None, "Running") => "not ready",
            (None, phase) => phase,
        };
        let pod = format!("Pod {} {word}", self.name);
        self.hook.clone().into_iter().chain([pod]).collect()
    }

    pub fn containers(&self) -> impl Iterator<Item = Container<'a>> {
        let status = &self.object["status"];
        let init = items(&status["initContainerStatuses"]).map(|status| Container { status, init: true });
        init.chain(items(&status["containerStatuses"]).map(|status| Container { status, init: false }))
    }

    pub fn describe(&self) -> String {
        format!("kubectl -n {} describe pod {}", self.namespace, self.name)
    }
}

impl<'a> Container<'a> {
    pub fn name(&self) -> &'a str {
        self.status["name"].as_str().unwrap_or_default()
    }

    /// Why it waits, and in which words; not the ordinary wait for the pod's start.
    pub fn waiting(&self) -> Option<(&'a str, &'a str)> {
        let waiting = &self.status["state"]["waiting"];
        let reason = waiting["reason"].as_str()?;
        let ordinary = matches!(reason, "ContainerCreating" | "PodInitializing");
        (!ordinary).then(|| (reason, waiting["message"].as_str().unwrap_or_default()))
    }

    /// How it ended the last time, if it is down or was restarted for that.
    pub fn ended(&self) -> Option<&'a Value> {
        let now = &self.status["state"]["terminated"];
        [now, &self.status["lastState"]["terminated"]].into_iter().find(|ended| ended.is_object())
    }
}

fn failed(result: &Value) -> bool {
    result["status"] == "SyncFailed" || matches!(result["hookPhase"].as_str(), Some("Failed" | "Error"))
}

/// Whether a pod holds something up: not one that has done its work or is going away.
pub fn in_trouble(pod: &Value) -> bool {
    let status = &pod["status"];
    let ready = items(&status["containerStatuses"]).all(|c| c["ready"] == true);
    match status["phase"].as_str() {
        _ if pod["metadata"]["deletionTimestamp"].is_string() => false,
        Some("Succeeded") => false,
        Some("Running") => !ready,
        _ => true,
    }
}

fn lacks_pods(workload: &Value) -> bool {
    let status = &workload["status"];
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    match workload["kind"].as_str() {
        Some("DaemonSet") => number(&status["currentNumberScheduled"]) < number(&status["desiredNumberScheduled"]),
        Some("Job") => number(&status["active"]) + number(&status["succeeded"]) + number(&status["failed"]) == 0,
        _ => number(&status["replicas"]) < workload["spec"]["replicas"].as_u64().unwrap_or(1),
    }
}
