//! What was observed, and how one finds one's way in it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Objects as the API server gave them, of all the namespaces that were looked at. What could not
/// be read in time is missing, so absence from a list proves nothing by itself.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    pub pods: Vec<Value>,
    pub events: Vec<Value>,
    pub claims: Vec<Value>,
    pub storage_classes: Vec<Value>,
    /// Deployments, ReplicaSets, StatefulSets and DaemonSets.
    pub workloads: Vec<Value>,
    pub jobs: Vec<Value>,
    pub nodes: Vec<Value>,
    pub namespaces: Vec<Value>,
    /// `{namespace, pod, container, text}`: the last lines of containers that ended.
    pub logs: Vec<Value>,
    pub application_sets: Vec<Value>,
    pub external_secrets: Vec<Value>,
    /// Objects of any kind that Argo CD blames, or wants to be gone.
    pub objects: Vec<Value>,
}

impl Evidence {
    /// The newest event about an object with one of these reasons.
    pub fn event(&self, kind: &str, namespace: &str, name: &str, reasons: &[&str]) -> Option<&Value> {
        let about = |event: &&Value| {
            let object = &event["involvedObject"];
            object["kind"] == kind
                && object["name"] == name
                && object["namespace"].as_str().unwrap_or_default() == namespace
                && event["reason"].as_str().is_some_and(|reason| reasons.contains(&reason))
        };
        self.events.iter().filter(about).max_by_key(|event| when(event))
    }

    pub fn event_message(&self, kind: &str, namespace: &str, name: &str, reasons: &[&str]) -> Option<&str> {
        self.event(kind, namespace, name, reasons)?["message"].as_str()
    }

    /// The object that owns or names another, among those that can stand between.
    pub fn owner(&self, kind: &str, namespace: &str, name: &str) -> Option<&Value> {
        let lists: [&[Value]; 3] = [&self.workloads, &self.jobs, &self.pods];
        lists.into_iter().flatten().find(|object| object["kind"] == kind && is(object, namespace, name))
    }

    pub fn claim(&self, namespace: &str, name: &str) -> Option<&Value> {
        self.claims.iter().find(|claim| is(claim, namespace, name))
    }

    pub fn log(&self, namespace: &str, pod: &str, container: &str) -> Option<&str> {
        let found = self
            .logs
            .iter()
            .find(|log| log["namespace"] == namespace && log["pod"] == pod && log["container"] == container);
        found?["text"].as_str()
    }
}

pub fn is(object: &Value, namespace: &str, name: &str) -> bool {
    namespace_of(object) == namespace && name_of(object) == name
}

pub fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub fn namespace_of(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}

pub fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// RFC 3339 in UTC sorts as text.
fn when(event: &Value) -> &str {
    let times =
        [&event["series"]["lastObservedTime"], &event["lastTimestamp"], &event["eventTime"], &event["firstTimestamp"]];
    times.iter().find_map(|time| time.as_str()).unwrap_or_default()
}
