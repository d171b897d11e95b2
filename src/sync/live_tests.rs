use serde_json::json;

use super::*;

const NEW: &str = "0123456789abcdef0123456789abcdef01234567";
const OLD: &str = "fedcba9876543210fedcba9876543210fedcba98";

/// An Application whose change is live.
fn live() -> Value {
    json!({
        "metadata": {"name": "a", "annotations": {}},
        "spec": {"source": {"path": "apps/a"}, "syncPolicy": {"automated": {"selfHeal": true}}},
        "status": {
            "sync": {"status": "Synced", "revision": NEW}, "health": {"status": "Healthy"},
            "reconciledAt": "2026-01-01T00:01:00Z", "resources": [{"kind": "ConfigMap", "name": "a"}],
            "operationState": {"phase": "Succeeded", "syncResult": {"revision": NEW}, "finishedAt": "2026-01-01T00:00:59Z"},
        }
    })
}

fn with(changes: &[(&str, Value)]) -> Value {
    let mut app = live();
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        app.pointer_mut(parent).unwrap()[key] = value.clone();
    }
    app
}

fn healthy_before() -> Pending {
    Pending { before: Some("Healthy".into()), ..Pending::default() }
}

#[track_caller]
fn is_live(app: &Value) {
    assert!(matches!(healthy_before().judge(Some(app), NEW), State::Done(End::Live)));
}

#[track_caller]
fn waits(app: &Value, words: &str) {
    match healthy_before().judge(Some(app), NEW) {
        State::Waiting(verdict) | State::Unseen(verdict) => {
            assert!(verdict.reason().contains(words), "{verdict:?}")
        }
        State::Done(end) => panic!("it is not waited for: {end:?}"),
        State::Again | State::Patiently(_) => panic!("it is asked again"),
    }
}

#[test]
fn a_synced_healthy_application_at_the_commit_is_live() {
    is_live(&live());
    // Nothing that it renders changed, so nothing was synced.
    is_live(&with(&[("/status/operationState/syncResult/revision", json!(OLD))]));
    // Several sources, one of them ours.
    is_live(&with(&[("/status/sync", json!({"status": "Synced", "revisions": ["1.2.3", NEW]}))]));
    // It differs from git after its sync, as it may.
    is_live(&with(&[("/status/sync/status", json!("OutOfSync"))]));
}

#[test]
fn nothing_old_is_taken_for_the_change() {
    let refresh = json!({"argocd.argoproj.io/refresh": "normal"});
    waits(&with(&[("/metadata/annotations", refresh)]), "not looked");
    waits(&with(&[("/status/sync/revision", json!(OLD))]), "not seen");
    let before_sync =
        [("/status/sync/status", json!("OutOfSync")), ("/status/operationState/syncResult/revision", json!(OLD))];
    waits(&with(&before_sync), "about to be synced");
    waits(&with(&[("/operation", json!({"sync": {}}))]), "a sync begins");
    waits(&with(&[("/status/operationState/phase", json!("Running"))]), "sync runs");
    let same_second =
        [("/status/sync/status", json!("OutOfSync")), ("/status/reconciledAt", json!("2026-01-01T00:00:59Z"))];
    waits(&with(&same_second), "compared again");
    waits(&with(&[("/status/health/status", json!("Progressing"))]), "Progressing");
    assert!(matches!(healthy_before().judge(None, NEW), State::Unseen(_)));
}

#[test]
fn a_new_definition_has_to_have_arrived() {
    let mut pending = Pending { source: Some(json!({"path": "apps/b"})), ..healthy_before() };
    assert!(
        matches!(pending.judge(Some(&live()), NEW), State::Unseen(verdict) if verdict.reason().contains("source.path"))
    );
    let mut pending = Pending { source: Some(json!({"path": "apps/a"})), ..healthy_before() };
    assert!(matches!(pending.judge(Some(&live()), NEW), State::Done(End::Live)));
}

#[test]
fn an_error_is_asked_about_once_more_and_then_believed() {
    let broken = with(&[("/status/conditions", json!([{"type": "ComparisonError", "message": "no"}]))]);
    let mut pending = healthy_before();
    assert!(matches!(pending.judge(Some(&broken), NEW), State::Again));
    assert!(
        matches!(pending.judge(Some(&broken), NEW), State::Done(End::Failed(reason, _)) if reason == "ComparisonError: no")
    );
    let failed = with(&[
        ("/status/sync/status", json!("OutOfSync")),
        ("/status/operationState/phase", json!("Failed")),
        ("/status/operationState/message", json!("denied")),
    ]);
    assert!(
        matches!(healthy_before().judge(Some(&failed), NEW), State::Done(End::Failed(reason, _)) if reason.contains("denied"))
    );
}

#[test]
fn a_sync_that_was_begun_for_it_is_begun_once_more_with_argo_cds_patience() {
    let failed = with(&[
        ("/status/sync/status", json!("OutOfSync")),
        ("/status/operationState/phase", json!("Failed")),
        ("/status/operationState/message", json!("no matches for kind")),
    ]);
    let mut pending = Pending { operation: operation(&live(), NEW), ..healthy_before() };
    assert!(
        matches!(pending.judge(Some(&failed), NEW), State::Patiently(operation) if operation["retry"]["limit"] == 5)
    );
    assert!(matches!(pending.judge(Some(&failed), NEW), State::Done(End::Failed(..))));
}

#[test]
fn automatic_sync_that_is_off_is_said_at_once() {
    let held = with(&[
        ("/spec/syncPolicy", json!({})),
        ("/status/sync/status", json!("OutOfSync")),
        ("/status/operationState/syncResult/revision", json!(OLD)),
    ]);
    let state = healthy_before().judge(Some(&held), NEW);
    assert!(matches!(state, State::Done(End::NoBetter(reason)) if reason.contains("automatic sync is off")));
}

#[test]
fn what_has_to_go_is_gone_when_it_is() {
    let mut pending = Pending { gone: true, ..Pending::default() };
    assert!(matches!(pending.judge(Some(&live()), NEW), State::Unseen(_)));
    assert!(matches!(pending.judge(None, NEW), State::Done(End::Gone)));
}
