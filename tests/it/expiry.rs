//! Environments that end by themselves, and what is removed after that.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::support::desk::Desk;
use super::support::shared::{HUB, desk};

const ALICE: &str = "k8tre-alice";
const EXPIRES: &str = "k8tre.dev/expires";

pub fn journal(desk: &Desk, name: &str) -> Value {
    let path = desk.path(&format!("data/environments/{name}/journal.json"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Moves the end that an environment's journal has, as time would.
pub fn ended(desk: &Desk, name: &str) {
    let mut saved = journal(desk, name);
    saved["spec"]["expires"] = json!("2026-01-01T00:00:00Z");
    std::fs::write(desk.path(&format!("data/environments/{name}/journal.json")), saved.to_string()).unwrap();
}

fn expires(desk: &Desk, name: &str) -> Timestamp {
    journal(desk, name)["spec"]["expires"].as_str().unwrap().parse().unwrap()
}

fn node_says(desk: &Desk, cluster: &str) -> String {
    let path = desk.docker.containers().join(format!("{cluster}-control-plane.json"));
    let node: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    node["times"]["/k8tre/expires"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_is_written_on_all_that_is_made_and_can_be_moved() {
    let desk = Desk::new().await;
    desk.run(&["dev", "up", "alice", "--sample", "--ttl", "30s"]).await.code(2).says("at least 1m");
    desk.run(&["dev", "up", "alice", "--sample", "--ttl", "8h"]).await.code(0);
    let end = expires(&desk, "alice");
    let left = end.duration_since(Timestamp::now());
    assert!(left > SignedDuration::from_hours(7) && left <= SignedDuration::from_hours(8), "{left}");
    let on_secret = |desk: &Desk| {
        let secret = desk.clusters.object(ALICE, "secrets", "k8tre-cluster-alice").unwrap();
        secret["metadata"]["annotations"][EXPIRES].as_str().unwrap().to_owned()
    };
    assert_eq!(on_secret(&desk), end.to_string());
    assert_eq!(node_says(&desk, ALICE), end.as_second().to_string());
    let repo = journal(&desk, "alice")["spec"]["repo"].as_str().unwrap().to_owned();
    let message = desk.git(&repo, &["log", "-1", "--format=%B", "dev/alice"]);
    assert!(message.contains(&format!("K8tre-Expires: {end}\nK8tre-Environment: alice ")), "{message}");
    desk.run(&["dev", "up", "alice"]).await.code(0).says("nothing was to be done");
    desk.run(&["dev", "status"]).await.code(0).shows("expires in 7 h");
    desk.run(&["dev", "list"]).await.code(0).shows("in 7 h");

    desk.run(&["dev", "extend", "4h"]).await.code(0).says("expires in 11 h");
    let later = expires(&desk, "alice");
    assert_eq!(later, end + SignedDuration::from_hours(4));
    assert_eq!((on_secret(&desk), node_says(&desk, ALICE)), (later.to_string(), later.as_second().to_string()));
    desk.run(&["dev", "up", "alice"]).await.code(0).says("nothing was to be done");
    desk.run(&["dev", "extend", "alice", "soon"]).await.code(2);

    ended(&desk, "alice");
    desk.run(&["dev", "status"]).await.shows("expired").shows("k8tre dev extend alice 8h");
    desk.run(&["dev", "list"]).await.code(0).shows("expired");
    // What has ended begins anew from now on.
    desk.run(&["dev", "extend", "alice", "2d"]).await.code(0).says("expires in 47 h");
    desk.run(&["dev", "down", "alice"]).await.code(0);

    desk.run(&["dev", "up", "alice", "--sample"]).await.code(0);
    assert!(journal(&desk, "alice")["spec"].get("expires").is_none());
    desk.run(&["dev", "extend", "alice", "4h"]).await.code(2).says("--ttl 8h");
    desk.run(&["dev", "down", "alice"]).await.code(0);
    desk.write("config/config.toml", "ttl = \"3h\"\n");
    desk.run(&["dev", "up", "alice", "--sample"]).await.code(0);
    desk.run(&["dev", "status", "-o", "json"]).await.code(0).shows("\"expires\"");
    desk.run(&["dev", "down", "alice"]).await.code(0);
}
