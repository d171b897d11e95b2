//! The binary starts, and the helpers below `support` see what they are there to see.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{World, assert_same_world};

#[test]
fn help_succeeds_and_touches_nothing() {
    let world = World::new();
    let before = world.snapshot(&[]);
    world.k8tre(&["--help"]).expect(0);
    assert_same_world(&before, &world.snapshot(&[]));
}

/// Every other test trusts the snapshot to notice what k8tre leaves behind.
#[test]
fn a_snapshot_notices_whatever_is_left_behind() {
    let world = World::new();
    let repo = world.home.join("tre");
    world.git(&world.home, &["init", "--quiet", "tre"]).expect(0);
    let before = world.snapshot(&[&repo]);

    let volume = world.name("left");
    world.docker(&["volume", "create", &volume]).expect(0);
    fs::create_dir(&world.data).expect("the world's folders can be written");
    fs::write(world.data.join("journal"), "left").expect("the world's folders can be written");
    world.git(&repo, &["commit", "--quiet", "--allow-empty", "--message", "left"]).expect(0);
    world.git(&repo, &["config", "left.behind", "true"]).expect(0);
    let sleeping = world.start_program("sleep", &["600"]);
    let after = world.snapshot(&[&repo]);

    let changes = before.changes(&after).join("\n");
    for left in [&format!("docker volume {volume}"), "file data/journal", "refs/heads/", "tre config", "sleep 600"] {
        assert!(changes.contains(left), "{left} is not among the changes:\n{changes}");
    }
    assert_eq!(before.changes(&before), Vec::<String>::new());
    let mended = after.without("docker").without("file").without("tre").without("process");
    assert!(before.changes(&mended).iter().all(|change| change.starts_with('-')), "what is set aside is not compared");
    drop(sleeping);
}

/// The tests of interruption trust these: output is seen while a program runs, and signals arrive.
#[test]
fn a_running_program_is_heard_and_interrupted() {
    let world = World::new();
    let script = "trap 'exit 130' INT; echo ready >&2; while :; do sleep 0.05; done";
    for alone in [true, false] {
        let mut running = world.start_program("bash", &["-c", script]);
        running.wait_for("ready", Duration::from_secs(10));
        if alone {
            running.signal(Signal::INT)
        } else {
            running.signal_group(Signal::INT)
        }
        running.wait(Duration::from_secs(10)).expect(130);
    }
    let server = world.docker(&["version", "--format", "{{json .Server}}"]).expect(0).json();
    assert!(server["ApiVersion"].is_string(), "these tests need a real Docker Engine: {server}");
}
