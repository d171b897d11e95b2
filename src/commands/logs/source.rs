//! What can be read: each run of a container that has begun.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub namespace: String,
    pub pod: String,
    pub container: String,
    uid: String,
    restarts: u64,
    pub running: bool,
    /// Whether the pod has only this one.
    alone: bool,
}

impl Source {
    /// One run of one container.
    pub fn key(&self) -> String {
        format!("{}/{}/{}", self.uid, self.container, self.restarts)
    }

    pub fn shown(&self) -> String {
        if self.alone { self.pod.clone() } else { format!("{}/{}", self.pod, self.container) }
    }
}

/// What of these pods can be read; with `previous`, what has a run that ended badly or was followed by another.
pub fn sources(pods: &[Value], container: Option<&str>, previous: bool) -> Vec<Source> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut found = Vec::new();
    for pod in pods {
        let status = &pod["status"];
        let lists = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"];
        let all: Vec<&Value> = lists.iter().flat_map(|list| status[*list].as_array().into_iter().flatten()).collect();
        for one in &all {
            let running = one["state"]["running"].is_object();
            // A container that waits after a crash still has the log of its last run.
            let ran_before = one["lastState"]["terminated"].is_object();
            let ended = &one["state"]["terminated"];
            let begun = match previous {
                false => running || ended.is_object() || ran_before,
                true => ran_before || ended["exitCode"].as_i64().is_some_and(|code| code != 0),
            };
            if !begun || container.is_some_and(|wanted| one["name"] != wanted) {
                continue;
            }
            found.push(Source {
                namespace: text(&pod["metadata"]["namespace"]),
                pod: text(&pod["metadata"]["name"]),
                container: text(&one["name"]),
                uid: text(&pod["metadata"]["uid"]),
                restarts: one["restartCount"].as_u64().unwrap_or(0),
                running,
                alone: all.len() == 1,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_has_begun_can_be_read_and_each_run_is_another() {
        let pod = |state: Value, restarts: u64| {
            json!({
                "metadata": {"name": "web-1", "namespace": "a", "uid": "u"},
                "status": {
                    "initContainerStatuses": [{"name": "init", "state": {"terminated": {}}}],
                    "containerStatuses": [{"name": "web", "state": state, "restartCount": restarts}],
                }
            })
        };
        let names = |pod: Value| sources(&[pod], None, false).iter().map(Source::shown).collect::<Vec<_>>();
        assert_eq!(names(pod(json!({"waiting": {"reason": "ImagePullBackOff"}}), 0)), ["web-1/init"]);
        assert_eq!(names(pod(json!({"running": {}}), 0)), ["web-1/init", "web-1/web"]);
        let keys = |restarts| sources(&[pod(json!({"running": {}}), restarts)], Some("web"), false)[0].key();
        assert_ne!(keys(0), keys(1));
        let mut crashed = pod(json!({"waiting": {"reason": "CrashLoopBackOff"}}), 3);
        crashed["status"]["containerStatuses"][0]["lastState"] = json!({"terminated": {"exitCode": 1}});
        let pods = [crashed, pod(json!({"running": {}}), 0)];
        assert_eq!(sources(&pods, Some("web"), false).len(), 2);
        assert_eq!(sources(&pods, None, true).len(), 1, "one container ran before");
        let failed = pod(json!({"terminated": {"exitCode": 1}}), 0);
        assert_eq!(sources(&[failed], None, true).len(), 1, "it ended badly, and does not run again yet");
    }
}
