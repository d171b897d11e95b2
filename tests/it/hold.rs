//! One Application held for a time, and released.

use jiff::{Timestamp, ToSpan};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::cli_repository::{REMOTE, give_remote};
use super::cli_whole::{UP, sample_in};
use super::support::desk::{Desk, changes};
use super::support::gate::Rule;

const NOTHING: [&str; 0] = [];
const CLUSTER: &str = "k8tre-alice";
const HOLD: [&str; 3] = ["dev", "hold", "portal"];
const RELEASE: [&str; 3] = ["dev", "release", "portal"];

async fn up() -> Desk {
    let desk = Desk::new().await;
    desk.run(&UP).await.code(0);
    desk
}

/// The sync windows of the live project.
fn windows(desk: &Desk) -> Vec<Value> {
    let project = desk.clusters.object(CLUSTER, "appprojects", "dev-alice").unwrap();
    project["spec"]["syncWindows"].as_array().cloned().unwrap_or_default()
}

/// The table's line and the JSON of an Application.
async fn portal(desk: &Desk, code: i32) -> Value {
    let status = desk.run(&["dev", "status", "-o", "json"]).await.code(code).json();
    let applications = status["applications"].as_array().unwrap();
    applications.iter().find(|one| one["name"] == "portal-alice").unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_is_live_and_shown_and_kept_until_it_is_released() {
    let desk = Desk::new().await;
    let before = desk.snapshot();
    desk.run(&UP).await.code(0);
    assert_eq!(windows(&desk), Vec::<Value>::new());

    desk.run(&HOLD).await.code(0).says("portal-alice is held until").says("k8tre dev release portal --name alice");
    let [window] = &windows(&desk)[..] else { panic!("{:?}", windows(&desk)) };
    assert_eq!((&window["kind"], &window["applications"]), (&json!("deny"), &json!(["portal-alice"])));
    assert_eq!((&window["manualSync"], &window["timeZone"]), (&json!(true), &json!("UTC")));
    desk.run(&["dev", "status"]).await.code(0).shows("held for another 2 h").says("dev release portal-alice");
    let held = portal(&desk, 0).await;
    assert_eq!(held["verdict"], "warning");
    assert!(held["reason"].as_str().unwrap().contains("OutOfSync"), "{held}");
    let until: Timestamp = held["held"]["until"].as_str().unwrap().parse().unwrap();
    assert!((115..=121).contains(&until.duration_since(Timestamp::now()).as_mins()), "{held}");

    let again = desk.run(&["dev", "up", "-o", "json"]).await.code(0).json();
    assert_eq!(again["changed"], false, "up keeps a hold as it is, and does not wait for the Application");
    let shorter = desk.run(&["dev", "hold", "portal-alice", "--for", "20m", "-o", "json"]).await.code(0).json();
    assert_eq!(shorter["application"], "portal-alice");
    assert_eq!(windows(&desk).len(), 1, "held again is held once");
    desk.run(&["dev", "hold", "metrics"]).await.code(0);
    assert_eq!(windows(&desk).len(), 2);

    desk.run(&RELEASE).await.code(0).says("portal-alice follows the branch again");
    assert_eq!(windows(&desk).len(), 1);
    assert!(portal(&desk, 0).await["held"].is_null());
    desk.run(&RELEASE).await.code(0).says("was not held");
    desk.run(&["dev", "release", "metrics"]).await.code(0);
    assert_eq!(windows(&desk), Vec::<Value>::new());

    desk.run(&HOLD).await.code(0);
    desk.run(&["dev", "down"]).await.code(0).says("nothing left");
    assert_eq!(changes(&before, &desk.snapshot()), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_held_is_refused_and_changes_nothing() {
    let desk = up().await;
    desk.run(&["dev", "hold", "portal", "--name", "bob"]).await.code(4).says("there is no environment bob");
    assert!(!desk.path("data/environments/bob").exists());
    let other = json!({"spec": {"project": "somebody-elses"}});
    desk.clusters.plant(
        CLUSTER,
        "applications",
        &json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "theirs", "namespace": "argocd"}, "spec": other["spec"]
        }),
    );
    let tip = || desk.git("data/sample-tre", &["rev-parse", "dev/alice"]);
    let before = tip();
    for (args, code, words) in [
        (&["portla"][..], 2, "did you mean portal-alice?"),
        (&["theirs"], 2, "theirs is in the project somebody-elses, not in dev-alice"),
        (&["root-app-of-apps-alice"], 2, "hold the Applications that they make"),
        (&["portal", "--for", "25h"], 2, "at most 24h"),
        (&["portal", "--for", "0s"], 2, "at least a minute"),
    ] {
        desk.run(&[&["dev", "hold"], args].concat()).await.code(code).says(words);
    }
    desk.run(&["dev", "release", "theirs"]).await.code(2).says("not in dev-alice");
    assert_eq!((tip(), windows(&desk)), (before, Vec::new()));

    let lock = std::fs::File::open(desk.path("data/environments/alice/lock")).unwrap();
    lock.try_lock().unwrap();
    desk.run(&HOLD).await.code(1).says("is working on the environment alice");
    desk.run(&RELEASE).await.code(1).says("is working on the environment alice");
}

/// As if the hold of the portal had begun three hours before.
fn let_end(desk: &Desk) {
    let path = desk.path("data/environments/alice/journal.json");
    let mut journal: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let hold = &mut journal["spec"]["holds"]["portal-alice"];
    for end in ["since", "until"] {
        let at: Timestamp = hold[end].as_str().unwrap().parse().unwrap();
        hold[end] = json!((at - 3.hours()).to_string());
    }
    std::fs::write(&path, journal.to_string()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_that_has_ended_goes_with_a_sync() {
    let desk = up().await;
    desk.run(&HOLD).await.code(0);
    let_end(&desk);
    desk.run(&["dev", "sync"]).await.code(0);
    assert_eq!(windows(&desk), Vec::<Value>::new(), "a schedule without a year would come back");
    let file = desk.path("data/environments/alice/journal.json");
    let journal: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(journal["spec"]["holds"], json!({}));
    desk.run(&["dev", "status"]).await.code(0);
    let tip = desk.git("data/sample-tre", &["rev-parse", "dev/alice"]);
    assert_eq!(desk.clusters.published(CLUSTER, "dev/alice").unwrap(), tip, "the work tree is as it is committed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_that_has_ended_is_no_trouble_and_goes_with_the_next_change() {
    let desk = up().await;
    desk.run(&HOLD).await.code(0);
    let_end(&desk);
    desk.run(&["dev", "hold", "metrics"]).await.code(0);
    let [window] = &windows(&desk)[..] else { panic!("{:?}", windows(&desk)) };
    assert_eq!(window["applications"], json!(["metrics-alice"]));
    assert!(portal(&desk, 0).await["held"].is_null());
    desk.run(&["dev", "release", "metrics"]).await.code(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_hold_is_completed_by_the_next_try() {
    for (command, signal, left) in
        [(HOLD, Signal::KILL, 1), (HOLD, Signal::INT, 1), (RELEASE, Signal::KILL, 0), (RELEASE, Signal::INT, 0)]
    {
        let desk = up().await;
        if command == RELEASE {
            desk.run(&HOLD).await.code(0);
        }
        desk.gate.set(Rule::HoldAfter);
        let running = desk.start(&command);
        desk.gate.wait_until_reached().await;
        running.signal(signal);
        assert_ne!(running.ended().await.code, Some(0));
        desk.gate.set(Rule::Open);
        desk.run(&command).await.code(0);
        assert_eq!(windows(&desk).len(), left, "{command:?} {signal:?}");
        desk.run(&["dev", "status"]).await.code(0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_on_a_remote_can_be_held_too() {
    let desk = Desk::new().await;
    sample_in(&desk, "tre").await;
    give_remote(&desk);
    let repo = desk.path("tre").display().to_string();
    desk.run(&[&["dev", "up", "alice", "--repo", &repo], &REMOTE[..]].concat()).await.code(0);
    desk.run(&HOLD).await.code(0);
    assert_eq!(windows(&desk).len(), 1);
    desk.run(&RELEASE).await.code(0);
    assert_eq!(windows(&desk), Vec::<Value>::new());
}
