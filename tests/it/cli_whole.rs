//! The whole way of an environment on a machine of fakes: made, looked at, repaired, removed.

use super::support::desk::{Desk, SAMPLE, changes};

const UP: [&str; 4] = ["dev", "up", "alice", "--sample"];

#[tokio::test(flavor = "multi_thread")]
async fn up_status_and_down_leave_the_machine_as_it_was_twice_in_a_row() {
    let desk = Desk::new().await;
    let before = desk.snapshot();
    for round in 1..=2 {
        desk.run(&UP).await.code(0).says("alice is healthy");
        desk.run(&["dev", "status"]).await.code(0);
        let down = desk.run(&["dev", "down"]).await;
        down.code(0).says("nothing left");
        assert_eq!(changes(&before, &desk.snapshot()), [] as [&str; 0], "round {round}: {}", down.stderr);
    }
    let _ = SAMPLE;
}
