//! The whole way of an environment on a machine of fakes: made, looked at, removed.

use super::support::desk::{Desk, SAMPLE, changes};
use super::support::tools::{self, KUBECONFIG};

pub const UP: [&str; 4] = ["dev", "up", "alice", "--sample"];
const NOTHING: [&str; 0] = [];

#[tokio::test(flavor = "multi_thread")]
async fn up_status_and_down_leave_the_machine_as_it_was_twice_in_a_row() {
    let desk = Desk::new().await;
    let before = desk.snapshot();
    for round in 1..=2 {
        desk.run(&UP).await.code(0).says("alice is healthy");
        desk.run(&["dev", "status"]).await.code(0);
        let down = desk.run(&["dev", "down"]).await;
        down.code(0).says("nothing left");
        assert_eq!(changes(&before, &desk.snapshot()), NOTHING, "round {round}: {}", down.stderr);
    }
    desk.run(&["dev", "status", "alice"]).await.code(4).says("there is no environment alice");
    desk.run(&["dev", "down", "alice"]).await.code(4).says("there is no environment alice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_up_writes_nothing_and_the_reports_agree() {
    let desk = Desk::new().await;
    let plan = desk.run(&["dev", "plan", "alice", "--sample", "-o", "json"]).await;
    let states = |plan: &serde_json::Value| -> Vec<String> {
        plan["steps"].as_array().unwrap().iter().map(|step| step["state"].as_str().unwrap().to_owned()).collect()
    };
    let planned = plan.code(0).json();
    assert!(states(&planned).iter().all(|state| state != "ready"), "{planned}");

    let up = desk.run(&["dev", "up", "alice", "--sample", "-o", "json"]).await;
    let report = up.code(0).json();
    let names: Vec<String> = SAMPLE.iter().map(|name| format!("{name}-alice")).collect();
    assert_eq!(report["applications"], serde_json::json!(names));
    assert_eq!((&report["schema"], &report["changed"]), (&1.into(), &true.into()));
    let commit = report["commit"].as_str().unwrap();
    assert_eq!(desk.clusters.published("k8tre-alice", "dev/alice").as_deref(), Some(commit));

    let (before, versions) = (desk.snapshot(), desk.clusters.versions("k8tre-alice"));
    let again = desk.run(&["dev", "up", "-o", "json"]).await;
    let report = again.code(0).json();
    assert_eq!(report["changed"], false);
    assert!(report["steps"].as_array().unwrap().iter().all(|step| step["outcome"] == "ready"), "{report}");
    let written = changes(&before, &desk.snapshot());
    assert!(written.iter().all(|what| what.contains("/alice/lock: ")), "only who held the lock: {written:?}");
    assert_eq!(desk.clusters.versions("k8tre-alice"), versions);

    let before = desk.snapshot();
    let status = desk.run(&["dev", "status", "-o", "json"]).await.code(0).json();
    assert_eq!((&status["schema"], &status["healthy"]), (&1.into(), &true.into()));
    assert_eq!((&status["environment"], &status["branch"]["tip"]), (&"alice".into(), &commit.into()));
    assert_eq!(status["applications"].as_array().unwrap().len(), SAMPLE.len() + 1);
    let list = desk.run(&["dev", "list", "-o", "json"]).await.code(0).json();
    assert_eq!(
        (&list["environments"][0]["name"], &list["environments"][0]["state"]),
        (&"alice".into(), &"running".into())
    );
    let planned = desk.run(&["dev", "plan", "-o", "json"]).await.code(0).json();
    assert!(states(&planned).iter().all(|state| state == "ready"), "{planned}");
    assert_eq!(changes(&before, &desk.snapshot()), NOTHING, "looking changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_changes_nothing() {
    let desk = Desk::new().await;
    let before = desk.snapshot();
    desk.run(&["dev", "up", "alice", "--sample", "--dry-run"]).await.code(0);
    assert_eq!(changes(&before, &desk.snapshot()), NOTHING);
    desk.run(&UP).await.code(0);
    let before = desk.snapshot();
    let down = desk.run(&["dev", "down", "--dry-run"]).await;
    assert!(down.code(0).stdout.contains("cluster"), "{}", down.stdout);
    desk.run(&["dev", "down", "--all", "--dry-run"]).await.code(0);
    assert_eq!(changes(&before, &desk.snapshot()), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_login_the_environment_is_named_after_the_account() {
    let desk = Desk::new().await.with("USER", None);
    let plan = ["dev", "up", "--sample", "--dry-run", "-o", "json"];
    desk.run(&plan).await.code(2).says("there is nobody to name the environment after");
    tools::write(desk.kind.folder(), "id", "#!/bin/sh\n[ \"$*\" = -un ] && echo carol\n");
    assert_eq!(desk.run(&plan).await.code(0).json()["environment"], "carol");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_environments_come_up_at_once_and_go_one_after_the_other() {
    let desk = Desk::new().await;
    let before = desk.snapshot();
    let bob = ["dev", "up", "bob", "--sample"];
    let (one, two) = tokio::join!(desk.run(&UP), desk.run(&bob));
    one.code(0);
    two.code(0);
    desk.run(&["dev", "status"]).await.code(2).says("there are several environments: alice, bob");
    desk.run(&["dev", "down", "alice"]).await.code(0);
    desk.run(&["dev", "status", "bob"]).await.code(0);
    desk.run(&["dev", "down", "--all"]).await.code(2).says("--yes");
    desk.run(&UP).await.code(0);
    desk.run(&["dev", "down", "--all", "--yes"]).await.code(0);
    assert_eq!(changes(&before, &desk.snapshot()), NOTHING);
    desk.run(&["dev", "down", "--all", "--yes"]).await.code(0).says("nothing to remove");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_kubeconfig_is_touched_only_when_asked_and_put_back() {
    let desk = Desk::new().await;
    let read = || std::fs::read_to_string(desk.path("home/.kube/config")).unwrap();
    desk.run(&UP).await.code(0);
    assert_eq!(read(), KUBECONFIG);
    desk.run(&["dev", "up", "--merge-kubeconfig"]).await.code(0);
    assert!(read().contains("kind-k8tre-alice") && read().contains("current-context: work"), "{}", read());
    desk.run(&["dev", "down"]).await.code(0);
    assert_eq!(read(), KUBECONFIG);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_branch_stays_when_it_is_to_stay_or_holds_work() {
    let desk = Desk::new().await;
    sample_in(&desk, "tre").await;
    let repo = desk.path("tre").display().to_string();
    let up = ["dev", "up", "alice", "--repo", &repo];
    let tip = || desk.git("tre", &["for-each-ref", "--format=%(objectname)", "refs/heads/dev/alice"]);

    desk.run(&up).await.code(0);
    desk.run(&["dev", "down", "--keep-branch"]).await.code(0).says("kept: branch dev/alice");
    assert!(!tip().is_empty());
    desk.git("tre", &["branch", "-D", "dev/alice"]);

    desk.run(&up).await.code(0);
    desk.git("tre", &["switch", "--quiet", "dev/alice"]);
    desk.write("tre/thesis.txt", "years of work");
    desk.git("tre", &["add", "."]);
    desk.git("tre", &["commit", "--quiet", "-m", "Work"]);
    let work = tip();
    desk.run(&["dev", "status"]).await.code(3);
    desk.run(&up).await.code(0);
    assert_eq!(desk.clusters.published("k8tre-alice", "dev/alice"), Some(work.clone()));
    desk.git("tre", &["switch", "--quiet", "main"]);
    desk.run(&["dev", "down"]).await.code(0).says("kept: branch dev/alice");
    assert_eq!(tip(), work);
}

/// The sample's files as a repository of the user's own.
pub async fn sample_in(desk: &Desk, name: &str) {
    let files: Vec<(String, String)> = k8tre::sample::files()
        .into_iter()
        .map(|(path, content)| (path.display().to_string(), String::from_utf8(content.to_vec()).unwrap()))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, content)| (path.as_str(), content.as_str())).collect();
    desk.repository(name, &files);
}
