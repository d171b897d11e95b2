//! Workloads on their way to what was asked for: whether they are there, and what they wait for.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::error::{Error, Result};
use crate::ports::kube::{Kube, Type, name_of};

const POLL: Duration = Duration::from_millis(200);
/// Before that nobody wonders.
const WONDER: Duration = Duration::from_secs(3);
/// How often the pods are asked what keeps them.
const ASK: Duration = Duration::from_secs(2);

/// Whether a Deployment or StatefulSet runs the generation that was asked for.
pub fn is_done(workload: &Value) -> bool {
    let status = &workload["status"];
    let wanted = workload["spec"]["replicas"].as_u64().unwrap_or(1);
    let number = |key: &str| status[key].as_u64().unwrap_or(0);
    wanted > 0
        && status["observedGeneration"] == workload["metadata"]["generation"]
        && number("updatedReplicas") >= wanted
        && number("readyReplicas") >= wanted
}

/// Waits until each of these workloads is rolled out, and says what for; gives up with the last that was seen.
pub async fn wait(
    kube: &Kube,
    workloads: &[Value],
    namespace: &str,
    limit: Duration,
    say: impl Fn(&str),
) -> Result<()> {
    let began = Instant::now();
    let (mut why, mut asked) = (String::new(), began);
    loop {
        let mut missing = Vec::new();
        for workload in workloads {
            let (of, name) = (Type::of(workload)?, name_of(workload)?);
            match kube.get(&of, namespace, name).await? {
                Some(actual) if is_done(&actual) => {}
                actual => missing.push((name, actual)),
            }
        }
        let Some((first, actual)) = missing.first() else { return Ok(()) };
        if began.elapsed() > WONDER && asked.elapsed() > ASK {
            let selector = actual.as_ref().map(selector).unwrap_or_default();
            // What cannot be asked must not end the wait.
            let pods = kube.list(&Type::new("v1", "Pod"), namespace, &selector).await.unwrap_or_default();
            (why, asked) = (format!("; {first}: {}", waits_for(&pods)), Instant::now());
        }
        let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        if began.elapsed() > limit {
            return Err(Error::failed(format!("{names} not ready within {} s{why}", limit.as_secs()))
                .hint(format!("kubectl -n {namespace} describe pods")));
        }
        say(&format!("waiting for {names}{why}"));
        tokio::time::sleep(POLL).await;
    }
}

/// The labels of a workload's pods, as `a=b,c=d`.
fn selector(workload: &Value) -> String {
    let labels = workload["spec"]["selector"]["matchLabels"].as_object().into_iter().flatten();
    let pairs = labels.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
    pairs.collect::<Vec<_>>().join(",")
}

/// What the first of these pods that is not ready waits for, in a line.
pub fn waits_for(pods: &[Value]) -> String {
    let ready = |pod: &&Value| {
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
    };
    let Some(pod) = pods.iter().find(|pod| !ready(pod)) else {
        return if pods.is_empty() { "it has no pod yet".into() } else { "it is starting".into() };
    };
    let status = &pod["status"];
    let lists = ["initContainerStatuses", "containerStatuses"];
    let containers = lists.iter().filter_map(|list| status[*list].as_array()).flatten();
    let mut stuck = containers.filter_map(|container| {
        let waiting = &container["state"]["waiting"];
        let reason = waiting["reason"].as_str().filter(|reason| *reason != "PodInitializing")?;
        let image = container["image"].as_str().unwrap_or_default();
        let message = waiting["message"].as_str().map(|message| format!(": {message}")).unwrap_or_default();
        Some(format!("{reason} of {image}{message}"))
    });
    let unscheduled = || {
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let mut scheduled = conditions.filter(|one| one["type"] == "PodScheduled" && one["status"] == "False");
        Some(scheduled.next()?["message"].as_str()?.to_owned())
    };
    let said = unscheduled().or_else(|| stuck.next());
    crate::text::one_line(&said.unwrap_or_else(|| "it is starting".into()), 300)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_scaled_down_or_outdated_workload_is_not_rolled_out() {
        let workload = |replicas: u64, observed: u64| {
            json!({"metadata": {"generation": 2}, "spec": {"replicas": replicas},
                   "status": {"observedGeneration": observed, "updatedReplicas": replicas, "readyReplicas": replicas}})
        };
        assert!(is_done(&workload(1, 2)));
        assert!(!is_done(&workload(0, 2)), "scaled to zero");
        assert!(!is_done(&workload(1, 1)), "an older generation");
    }

    #[test]
    fn what_a_pod_waits_for_is_said() {
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        assert_eq!(waits_for(&[]), "it has no pod yet");
        assert_eq!(waits_for(std::slice::from_ref(&ready)), "it is starting");
        let pulling = json!({"status": {"initContainerStatuses": [
            {"image": "ghcr.io/x:1", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no route"}}},
        ]}});
        assert_eq!(waits_for(&[ready, pulling]), "ImagePullBackOff of ghcr.io/x:1: no route");
        let claim = json!({"status": {"conditions": [
            {"type": "PodScheduled", "status": "False", "message": "pod has unbound PersistentVolumeClaims"},
        ]}});
        assert_eq!(waits_for(&[claim]), "pod has unbound PersistentVolumeClaims");
        assert_eq!(waits_for(&[json!({"status": {}})]), "it is starting");
        let labels = json!({"spec": {"selector": {"matchLabels": {"a": "b", "c": "d"}}}});
        assert_eq!(selector(&labels), "a=b,c=d");
    }
}
