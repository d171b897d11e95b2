//! The pods of an Application, in trouble or not: through Argo CD's list of what it deployed, and the
//! owners between that and a pod.

use std::collections::BTreeSet;

use futures::future::join_all;
use serde_json::Value;

use super::evidence::{Evidence, items};
use super::view::View;
use crate::error::Result;
use crate::ports::kube::{Kube, Type};

/// Kinds that stand between a pod and what git declares.
const BETWEEN: [(&str, &str); 4] =
    [("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("apps/v1", "DaemonSet"), ("batch/v1", "Job")];

/// All pods that belong to an Application, in a stable order.
pub async fn pods_of(kube: &Kube, app: &Value) -> Result<Vec<Value>> {
    let status = &app["status"];
    let placed = items(&status["resources"]).chain(items(&status["operationState"]["syncResult"]["resources"]));
    let namespaces: BTreeSet<&str> =
        placed.filter_map(|one| one["namespace"].as_str()).filter(|namespace| !namespace.is_empty()).collect();
    let all = |api_version: &'static str, kind: &'static str| {
        let of = Type::new(api_version, kind);
        let namespaces = &namespaces;
        async move {
            let lists = join_all(namespaces.iter().map(|namespace| kube.list(&of, namespace, ""))).await;
            lists.into_iter().collect::<Result<Vec<Vec<Value>>>>().map(|lists| lists.concat())
        }
    };
    let between = join_all(BETWEEN.map(|(api_version, kind)| all(api_version, kind)));
    let (pods, between) = tokio::join!(all("v1", "Pod"), between);
    let between = between.into_iter().collect::<Result<Vec<_>>>()?.concat();
    let (jobs, workloads) = between.into_iter().partition(|object| object["kind"] == "Job");
    Ok(owned(app, Evidence { pods: pods?, workloads, jobs, ..Evidence::default() }))
}

fn owned(app: &Value, mut evidence: Evidence) -> Vec<Value> {
    let view = View::new(app, &evidence);
    let ours: Vec<bool> = evidence.pods.iter().map(|pod| view.owns(pod)).collect();
    drop(view);
    let mut ours = ours.into_iter();
    evidence.pods.retain(|_| ours.next() == Some(true));
    evidence.pods
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_are_found_through_their_owners_and_no_others() {
        let owned_by = |kind: &str, name: &str, by: Option<(&str, &str)>| {
            let owners: Vec<Value> = by.iter().map(|(kind, name)| json!({"kind": kind, "name": name})).collect();
            json!({"kind": kind, "metadata": {"name": name, "namespace": "a", "ownerReferences": owners},
                   "status": {"phase": "Running"}})
        };
        let app = json!({"metadata": {"name": "app"}, "status": {"resources": [
            {"kind": "Deployment", "name": "web", "namespace": "a"}, {"kind": "CronJob", "name": "night", "namespace": "a"}
        ]}});
        let evidence = Evidence {
            pods: vec![
                owned_by("Pod", "web-1-x", Some(("ReplicaSet", "web-1"))),
                owned_by("Pod", "night-1-x", Some(("Job", "night-1"))),
                owned_by("Pod", "other-1-x", Some(("ReplicaSet", "other-1"))),
                owned_by("Pod", "alone", None),
            ],
            workloads: vec![
                owned_by("ReplicaSet", "web-1", Some(("Deployment", "web"))),
                owned_by("ReplicaSet", "other-1", Some(("Deployment", "other"))),
            ],
            jobs: vec![owned_by("Job", "night-1", Some(("CronJob", "night")))],
            ..Evidence::default()
        };
        let names: Vec<Value> = owned(&app, evidence).iter().map(|pod| pod["metadata"]["name"].clone()).collect();
        assert_eq!(names, ["web-1-x", "night-1-x"]);
    }
}
