//! An environment that is stopped for a while.

use super::support::desk::{Desk, SAMPLE, changes};

const UP: [&str; 4] = ["dev", "up", "alice", "--sample"];
const NOTHING: [&str; 0] = [];

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_environment_says_so_and_resumes_as_it_was() {
    let desk = Desk::new().await;
    let before = desk.snapshot();
    desk.run(&["dev", "pause"]).await.code(4);
    desk.run(&UP).await.code(0);
    let objects = desk.clusters.versions("k8tre-alice");
    desk.run(&["dev", "pause"]).await.code(0).says("alice is paused").says("600 MiB of memory are free again");
    assert!(desk.clusters.versions("k8tre-alice").is_empty(), "its containers are stopped");
    desk.run(&["dev", "status"]).await.code(3).shows("paused for").shows("k8tre dev resume alice");
    desk.run(&["dev", "list"]).await.code(0).shows("paused");
    desk.run(&["dev", "pause"]).await.code(0).says("was paused already");
    assert_eq!(desk.run(&["dev", "pause", "-o", "json"]).await.code(0).json()["paused"], true);

    desk.run(&["dev", "resume"]).await.code(0).says(&format!("alice is healthy: {} Applications", SAMPLE.len()));
    assert_eq!(desk.clusters.versions("k8tre-alice").len(), objects.len());
    desk.run(&["dev", "status"]).await.code(0);
    desk.run(&["dev", "resume"]).await.code(0).says("nothing was to be done");

    desk.run(&["dev", "pause"]).await.code(0);
    desk.run(&["dev", "down"]).await.code(0);
    assert_eq!(changes(&before, &desk.snapshot()), NOTHING);
    desk.run(&["dev", "resume"]).await.code(4);
}
