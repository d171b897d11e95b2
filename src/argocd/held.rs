//! What a held Application's status says: differences from git are what a hold is for.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::application::{Expected, Verdict, judge};
use crate::gitops::windows::Hold;

/// Judges an Application whose automatic sync is off. That it was not synced, or not well, is no failure then; what
/// it runs has to be healthy all the same.
pub fn judge_held(application: &Value, expected: &Expected, hold: &Hold, now: Timestamp) -> Verdict {
    let held = |more: &str| {
        let colon = if more.is_empty() { "" } else { ": " };
        Verdict::Warning(format!("held for another {}{colon}{more}", hold.left(now)))
    };
    let waits = application["status"]["sync"]["status"] == "OutOfSync"
        && application["status"]["operationState"]["phase"] != "Running";
    let mut seen = application.clone();
    if waits {
        seen["status"]["operationState"] = json!({"phase": "Succeeded"});
    }
    match judge(&seen, &Expected { synced: false, ..expected.clone() }, now) {
        Verdict::Healthy => held(""),
        Verdict::Warning(reason) => held(&reason),
        // What was never synced has nothing that could be healthy.
        Verdict::Waiting(_) if waits && application["status"]["health"]["status"] == "Missing" => held("not deployed"),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn judged(sync: &str, health: &str, phase: Value) -> Verdict {
        let now: Timestamp = "2026-05-01T12:00:00Z".parse().unwrap();
        let application = json!({"status": {
            "sync": {"status": sync, "revision": "abc"}, "health": {"status": health},
            "operationState": {"phase": phase, "message": "no"},
            "resources": [{"kind": "ConfigMap", "name": "a", "status": sync}],
        }});
        let expected = Expected { revision: Some("abc".into()), since: None, synced: true };
        judge_held(&application, &expected, &Hold::new(now, Duration::from_secs(3600)), now)
    }

    #[test]
    fn a_held_application_that_differs_is_a_warning_that_says_how_long() {
        let warning = |text: &str| Verdict::Warning(text.into());
        for (sync, health, phase, wanted) in [
            ("Synced", "Healthy", json!("Succeeded"), warning("held for another 1 h")),
            ("OutOfSync", "Healthy", json!("Succeeded"), warning("held for another 1 h: OutOfSync: ConfigMap a")),
            ("OutOfSync", "Healthy", json!("Failed"), warning("held for another 1 h: OutOfSync: ConfigMap a")),
            ("OutOfSync", "Missing", Value::Null, warning("held for another 1 h: not deployed")),
            ("OutOfSync", "Degraded", json!("Succeeded"), Verdict::Failing("Degraded".into())),
            ("OutOfSync", "Healthy", json!("Running"), Verdict::Waiting("sync running: no".into())),
        ] {
            assert_eq!(judged(sync, health, phase), wanted, "{sync} {health}");
        }
    }
}
