//! `status` answers in time and tells the truth, also when nothing else answers.

use crate::support::{STATUS_LIMIT, World};

#[test]
fn status_answers_whatever_is_stopped_hanging_or_gone() {
    let world = World::new();
    let name = world.name("alice");
    let before = world.snapshot(&[]);
    let node = format!("k8tre-{name}-control-plane");
    let docker = |args: &[&str]| world.docker(args).expect(0);
    world.status(&name).expect(4);
    world.k8tre(&["dev", "status"]).expect(4);
    world.up_healthy(&name, &["--sample"]);
    world.assert_status_healthy(&name);

    let nowhere = [("DOCKER_HOST", "unix:///nowhere/docker.sock")];
    let ran = world.k8tre_with(&nowhere, &["dev", "status", &name]).expect(3);
    assert!(ran.took < STATUS_LIMIT && ran.stdout.contains("unix:///nowhere/docker.sock"), "no Docker: {ran}");
    assert!(ran.stdout.contains("is not healthy"), "what cannot be seen is not called healthy: {ran}");
    world.k8tre_with(&nowhere, &["dev", "status", "nobody"]).expect(4);
    let ran = world.k8tre_with(&nowhere, &["dev", "list"]).expect(0);
    assert!(ran.took < STATUS_LIMIT && ran.stdout.contains(&name), "no Docker: {ran}");

    docker(&["pause", &node]);
    world.assert_status_names(&name, "paused");
    let password = world.k8tre(&["dev", "password", &name]).expect(1);
    assert!(password.took.as_secs() < 60 && password.stdout.is_empty(), "a hanging cluster: {password}");
    docker(&["unpause", &node]);

    docker(&["stop", &node]);
    world.assert_status_names(&name, "stopped");
    let ran = world.k8tre(&["dev", "list"]).expect(0);
    assert!(ran.stdout.contains("stopped"), "{ran}");

    docker(&["rm", "--force", "--volumes", &node]);
    world.assert_status_names(&name, "absent");
    world.down(&name);
    world.assert_nothing_left(&before, &[]);
}
