//! What an Application's status says, judged without goodwill.
//!
//! Argo CD shows Healthy for an Application that has not looked at the newest commit yet, and for
//! one that deployed nothing. Neither is healthy here. Right after a sync it shows the health of before.

use std::cmp::Ordering;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;

/// What an Application must show before it counts as healthy.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    /// Commit that it must have been compared with.
    pub revision: Option<String>,
    /// It must have been looked at after this.
    pub since: Option<Timestamp>,
    /// Differences from git after a successful sync are an error, not a warning.
    pub synced: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "verdict", content = "reason")]
pub enum Verdict {
    Healthy,
    /// Healthy, but differs from git.
    Warning(String),
    /// Not there yet, and may get there by itself.
    Waiting(String),
    /// Will not get there by itself, or not soon.
    Failing(String),
}

impl Verdict {
    pub fn is_healthy(&self) -> bool {
        matches!(self, Verdict::Healthy | Verdict::Warning(_))
    }

    pub fn reason(&self) -> &str {
        match self {
            Verdict::Healthy => "",
            Verdict::Warning(reason) | Verdict::Waiting(reason) | Verdict::Failing(reason) => reason,
        }
    }
}

/// Condition types that stand for an error and not for a remark.
fn is_error(condition: &Value) -> bool {
    condition["type"].as_str().is_some_and(|kind| kind.ends_with("Error"))
}

/// Argo CD compares right after a sync: whatever it has not seen by then is what differs for longer.
const COMPARED: SignedDuration = SignedDuration::from_secs(5);

pub fn judge(application: &Value, expected: &Expected, now: Timestamp) -> Verdict {
    let status = &application["status"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let waiting = |reason: String| Verdict::Waiting(reason);

    if application["metadata"]["deletionTimestamp"].is_string() {
        return waiting("it is being deleted".into());
    }
    if let Some(condition) = status["conditions"].as_array().into_iter().flatten().find(|c| is_error(c)) {
        return Verdict::Failing(format!("{}: {}", text(&condition["type"]), text(&condition["message"])));
    }
    let Some(sync) = status["sync"]["status"].as_str() else {
        return waiting("Argo CD has not looked at it yet".into());
    };
    let revision = text(&status["sync"]["revision"]);
    if let Some(wanted) = &expected.revision
        && !revision.eq_ignore_ascii_case(wanted)
    {
        let seen = if revision.is_empty() { "no commit" } else { revision.get(..8).unwrap_or(&revision) };
        return waiting(format!("Argo CD has seen {seen}, not yet {}", wanted.get(..8).unwrap_or(wanted)));
    }
    if let Some(since) = expected.since
        && time(&status["reconciledAt"]).is_none_or(|at| at.as_second() < since.as_second())
    {
        return waiting("Argo CD has not looked at it since the last push".into());
    }
    let operation = &status["operationState"];
    // Asked for, and not taken up yet: what is shown is the sync before.
    if operation["phase"] == "Succeeded" && application["operation"].is_object() {
        return waiting("a sync begins".into());
    }
    match operation["phase"].as_str() {
        Some("Succeeded") => {}
        Some("Failed" | "Error") => return Verdict::Failing(format!("sync failed: {}", text(&operation["message"]))),
        Some(phase) => {
            let message = text(&operation["message"]);
            // A sync that waits for its next attempt has failed already; its message says why. One that
            // runs may be a retry that goes well.
            return match message.contains("Retrying attempt") {
                false => waiting(format!("sync {}{}", phase.to_lowercase(), colon(&message))),
                true => Verdict::Failing(format!("sync is being retried{}", colon(&message))),
            };
        }
        // Nothing to deploy is nothing to sync: no operation will ever start.
        None if sync == "Synced" && deploys_nothing(status) => return Verdict::Failing(DEPLOYED_NOTHING.into()),
        // All of it was there when the Application was made, as when it is made again: no sync will start.
        None if sync == "Synced" => {}
        None => return waiting("it has not been synced yet".into()),
    }
    if sync != "Synced" && is_of_before_the_sync(status, now) {
        return waiting("it is compared again after its sync".into());
    }
    if deploys_nothing(status) {
        return Verdict::Failing(DEPLOYED_NOTHING.into());
    }
    match status["health"]["status"].as_str() {
        Some("Healthy") => {}
        Some("Degraded") => return Verdict::Failing(format!("Degraded{}", colon(&unhealthy(status)))),
        Some(other) => return waiting(format!("{other}{}", colon(&unhealthy(status)))),
        None => return waiting("its health is not known yet".into()),
    }
    match sync {
        "Synced" => Verdict::Healthy,
        _ if expected.synced => Verdict::Failing(format!("{sync}: {}", out_of_sync(status))),
        _ => Verdict::Warning(format!("{sync}: {}", out_of_sync(status))),
    }
}

/// Whether the comparison, and the health with it, are older than the last sync. A comparison in the same second
/// can be either, until the one after the sync has to be there.
fn is_of_before_the_sync(status: &Value, now: Timestamp) -> bool {
    match compared_after_sync(status) {
        Some(Ordering::Less) => true,
        Some(Ordering::Equal) => time(&status["operationState"]["finishedAt"]).is_some_and(|at| now < at + COMPARED),
        Some(Ordering::Greater) | None => false,
    }
}

/// When an Application was compared, seen from the end of its last sync; both times are whole seconds.
pub fn compared_after_sync(status: &Value) -> Option<Ordering> {
    Some(time(&status["reconciledAt"])?.cmp(&time(&status["operationState"]["finishedAt"])?))
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

const DEPLOYED_NOTHING: &str = "it deployed nothing: its path renders no objects";

fn deploys_nothing(status: &Value) -> bool {
    status["resources"].as_array().is_none_or(Vec::is_empty)
}

fn colon(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

/// The first object that holds the Application back, as `Deployment portal: waiting for rollout`.
pub fn unhealthy(status: &Value) -> String {
    let resources = status["resources"].as_array().map(Vec::as_slice).unwrap_or_default();
    let bad = resources.iter().find(|r| r["health"]["status"].as_str().is_some_and(|s| s != "Healthy"));
    match bad {
        Some(resource) => {
            let message = resource["health"]["message"].as_str().unwrap_or_default();
            format!("{}{}", shown(resource), colon(message))
        }
        None => status["health"]["message"].as_str().unwrap_or_default().to_owned(),
    }
}

fn out_of_sync(status: &Value) -> String {
    let resources = status["resources"].as_array().map(Vec::as_slice).unwrap_or_default();
    let different: Vec<String> = resources.iter().filter(|r| r["status"] == "OutOfSync").map(shown).collect();
    different.join(", ")
}

fn shown(resource: &Value) -> String {
    format!("{} {}", resource["kind"].as_str().unwrap_or("object"), resource["name"].as_str().unwrap_or("?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn healthy() -> Value {
        json!({"status": {
            "sync": {"status": "Synced", "revision": COMMIT},
            "health": {"status": "Healthy"},
            "reconciledAt": "2026-01-01T00:01:00Z",
            "operationState": {"phase": "Succeeded"},
            "resources": [{"kind": "ConfigMap", "name": "a", "status": "Synced"}],
        }})
    }

    fn expected() -> Expected {
        Expected { revision: Some(COMMIT.into()), since: "2026-01-01T00:00:30Z".parse().ok(), synced: false }
    }

    fn now() -> Timestamp {
        "2026-01-01T00:02:00Z".parse().unwrap()
    }

    fn with(pointer: &str, value: Value) -> Verdict {
        let mut application = healthy();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        application.pointer_mut(parent).unwrap()[key] = value;
        judge(&application, &expected(), now())
    }

    #[test]
    fn all_that_is_asked_for_is_healthy() {
        assert_eq!(judge(&healthy(), &expected(), now()), Verdict::Healthy);
    }

    #[test]
    fn an_old_commit_is_not_healthy() {
        assert!(
            matches!(with("/status/sync/revision", json!("feedface")), Verdict::Waiting(r) if r.contains("feedface"))
        );
    }

    #[test]
    fn a_look_before_the_push_does_not_count() {
        assert!(matches!(with("/status/reconciledAt", json!("2026-01-01T00:00:00Z")), Verdict::Waiting(_)));
    }

    #[test]
    fn an_application_that_deployed_nothing_is_failing() {
        assert!(matches!(with("/status/resources", json!([])), Verdict::Failing(_)));
        let mut application = healthy();
        application["status"]["resources"] = json!([]);
        application["status"]["operationState"] = Value::Null;
        assert!(matches!(judge(&application, &expected(), now()), Verdict::Failing(_)), "no sync will ever start");
    }

    #[test]
    fn a_running_or_missing_operation_is_waited_for() {
        assert!(matches!(with("/status/operationState", json!({"phase": "Running"})), Verdict::Waiting(_)));
        let mut fresh = healthy();
        fresh["status"]["operationState"] = Value::Null;
        fresh["status"]["sync"]["status"] = json!("OutOfSync");
        assert!(matches!(judge(&fresh, &expected(), now()), Verdict::Waiting(_)));
    }

    #[test]
    fn one_that_was_made_again_over_what_is_in_place_needs_no_sync() {
        assert_eq!(with("/status/operationState", Value::Null), Verdict::Healthy);
    }

    #[test]
    fn errors_are_said_with_their_message() {
        let condition = json!([{"type": "ComparisonError", "message": "no such path"}]);
        assert_eq!(with("/status/conditions", condition), Verdict::Failing("ComparisonError: no such path".into()));
        let failed = json!({"phase": "Failed", "message": "denied"});
        assert_eq!(with("/status/operationState", failed), Verdict::Failing("sync failed: denied".into()));
    }

    #[test]
    fn differences_after_success_are_a_warning_that_names_them_unless_asked_for() {
        let mut application = healthy();
        application["status"]["sync"]["status"] = json!("OutOfSync");
        application["status"]["resources"][0]["status"] = json!("OutOfSync");
        assert_eq!(judge(&application, &expected(), now()), Verdict::Warning("OutOfSync: ConfigMap a".into()));
        let strict = Expected { synced: true, ..expected() };
        assert_eq!(judge(&application, &strict, now()), Verdict::Failing("OutOfSync: ConfigMap a".into()));
    }

    #[test]
    fn right_after_a_sync_the_comparison_of_before_it_is_not_believed() {
        let judged = |reconciled: &str, finished: &str| {
            let mut application = healthy();
            application["status"]["sync"]["status"] = json!("OutOfSync");
            application["status"]["resources"][0]["status"] = json!("OutOfSync");
            application["status"]["reconciledAt"] = json!(reconciled);
            application["status"]["operationState"]["finishedAt"] = json!(finished);
            judge(&application, &expected(), now())
        };
        let warning = Verdict::Warning("OutOfSync: ConfigMap a".into());
        let waiting = Verdict::Waiting("it is compared again after its sync".into());
        assert_eq!(judged("2026-01-01T00:01:50Z", "2026-01-01T00:01:58Z"), waiting, "compared before");
        assert_eq!(judged("2026-01-01T00:01:58Z", "2026-01-01T00:01:58Z"), waiting, "perhaps before");
        assert_eq!(judged("2026-01-01T00:01:55Z", "2026-01-01T00:01:55Z"), warning, "by now it was compared");
        assert_eq!(judged("2026-01-01T00:01:59Z", "2026-01-01T00:01:58Z"), warning, "compared since");
    }

    #[test]
    fn a_sync_that_was_asked_for_is_waited_for() {
        let mut application = healthy();
        application["operation"] = json!({"sync": {"revision": COMMIT}});
        assert_eq!(judge(&application, &expected(), now()), Verdict::Waiting("a sync begins".into()));
    }
}
