//! The sync of a change, begun for Argo CD: the one that it would begin by itself, without waiting until it has compared.
//! Comparing and syncing then go side by side, which is a quarter of the time from an edit to its effect.

use serde_json::{Value, json};

/// What Argo CD would do for the commit. None where it would not sync by itself, where something is under way, and
/// where a sync is more than applying what differs.
pub fn operation(app: &Value, commit: &str) -> Option<Value> {
    let (spec, state) = (&app["spec"], &app["status"]["operationState"]);
    let policy = &spec["syncPolicy"];
    let automated = policy["automated"].as_object()?;
    let off = automated.get("enabled").is_some_and(|enabled| enabled == false);
    let busy = app.get("operation").is_some() || state["phase"] == "Running";
    // Which revision is meant is clear only for a single source.
    if off || busy || !spec["source"].is_object() || app["metadata"]["deletionTimestamp"].is_string() {
        return None;
    }
    let resources = state["syncResult"]["resources"].as_array().map(Vec::as_slice).unwrap_or_default();
    // Hooks run with every sync, also with one that changes nothing.
    if resources.iter().any(|resource| resource["hookType"].as_str().is_some_and(|hook| !hook.is_empty())) {
        return None;
    }
    let mut sync = json!({"revision": commit, "prune": automated.get("prune").is_some_and(|prune| prune == true)});
    if policy["syncOptions"].is_array() {
        sync["syncOptions"] = policy["syncOptions"].clone();
    }
    // One attempt: what does not render would be tried for minutes, and the mended commit wait as long.
    Some(json!({"sync": sync, "initiatedBy": {"automated": true}, "retry": {"limit": 0}}))
}

/// The same with Argo CD's own patience, for what it could not apply at the first attempt.
pub fn patient(app: &Value, commit: &str) -> Option<Value> {
    let mut operation = operation(app, commit)?;
    let retry = &app["spec"]["syncPolicy"]["retry"];
    operation["retry"] = if retry.is_object() { retry.clone() } else { json!({"limit": 5}) };
    Some(operation)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn app() -> Value {
        json!({
            "metadata": {"name": "a"},
            "spec": {
                "source": {"path": "apps/a"},
                "syncPolicy": {"automated": {"prune": true}, "syncOptions": ["CreateNamespace=true"]},
            },
            "status": {"operationState": {"phase": "Succeeded", "syncResult": {"resources": [{"kind": "ConfigMap"}]}}},
        })
    }

    #[test]
    fn it_is_the_one_that_argo_cd_would_begin_by_itself() {
        let wanted = json!({
            "sync": {"revision": COMMIT, "prune": true, "syncOptions": ["CreateNamespace=true"]},
            "initiatedBy": {"automated": true},
            "retry": {"limit": 0},
        });
        assert_eq!(operation(&app(), COMMIT), Some(wanted));
        assert_eq!(patient(&app(), COMMIT).unwrap()["retry"], json!({"limit": 5}));
        let mut own = app();
        own["spec"]["syncPolicy"]["retry"] = json!({"limit": 2, "backoff": {"duration": "1s"}});
        assert_eq!(patient(&own, COMMIT).unwrap()["retry"], own["spec"]["syncPolicy"]["retry"]);
    }

    #[test]
    fn nothing_is_begun_that_argo_cd_would_leave_or_do_otherwise() {
        let changes = [
            ("/spec/syncPolicy/automated", Value::Null),
            ("/spec/syncPolicy/automated", json!({"enabled": false})),
            ("/spec/source", Value::Null),
            ("/operation", json!({"sync": {}})),
            ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
            ("/status/operationState/phase", json!("Running")),
            ("/status/operationState/syncResult/resources", json!([{"kind": "Job", "hookType": "PreSync"}])),
        ];
        for (pointer, value) in changes {
            let mut app = app();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            app.pointer_mut(parent).unwrap()[key] = value;
            assert_eq!(operation(&app, COMMIT), None, "{pointer}");
        }
    }
}
