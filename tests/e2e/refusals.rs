//! What is not ours stays untouched; what is ours is found without a record; what is exposed was asked for.

use std::time::Duration;

use crate::support::{LIMIT, World, assert_same_world};

/// A container that kind would take for the control plane of this environment's cluster.
fn somebody_elses_cluster(world: &World, name: &str) -> String {
    let node = format!("k8tre-{name}-control-plane");
    let label = format!("io.x-k8s.kind.cluster=k8tre-{name}");
    let images = world.docker(&["images", "--format", "{{.Repository}}:{{.Tag}}", "kindest/node"]).expect(0).stdout;
    let image = images.lines().next().expect("Docker has a node image").to_owned();
    let role = "io.x-k8s.kind.role=control-plane";
    world.docker(&["create", "--name", &node, "--label", &label, "--label", role, &image]).expect(0);
    node
}

#[test]
fn a_cluster_of_that_name_that_is_not_ours_is_left_alone() {
    let world = World::new();
    let name = world.name("alice");
    somebody_elses_cluster(&world, &name);
    let before = world.snapshot(&[]);
    let up = world.up(&name, &["--sample"]).expect(5);
    assert!(up.stderr.contains(&format!("k8tre-{name}")) && up.stderr.contains("hint"), "{up}");
    world.assert_nothing_left(&before, &[]);
    world.k8tre(&["dev", "down", &name]).expect(4);
    world.assert_nothing_left(&before, &[]);
}

#[test]
fn the_ui_is_open_only_when_asked_and_a_lost_record_does_not_stop_down() {
    let world = World::new();
    let name = world.name("alice");
    let before = world.snapshot(&[]);
    let closed = world.up(&name, &["--sample"]).expect(0);
    assert!(!closed.stderr.contains("without login"), "{closed}");
    assert_eq!(ask_the_api(&world, &name), "401", "without a token the API tells nothing");

    let open = world.up(&name, &["--anonymous"]).expect(0);
    assert!(open.stderr.contains("without login"), "what --anonymous exposes is said: {open}");
    assert_eq!(ask_the_api(&world, &name), "200", "--anonymous opens the API");

    let folder = world.data.join("environments").join(&name);
    std::fs::remove_dir_all(&folder).expect("the environment has a folder");
    world.down(&name);
    world.assert_nothing_left(&before, &[]);
}

/// The HTTP code with which Argo CD's API answers a list of Applications without a token.
fn ask_the_api(world: &World, name: &str) -> String {
    let mut open = world.start(&["dev", "open", "--name", name, "--print"]);
    open.wait_for("Ctrl-C", Duration::from_secs(60));
    let url = open.stdout().trim_end().to_owned();
    let wanted = format!("{url}api/v1/applications");
    // While a rollout ends, a connection can reach the pod that is leaving.
    let patience = ["--silent", "--show-error", "--retry", "5", "--retry-all-errors", "--max-time", "60"];
    let args = [&patience[..], &["--output", "/dev/null", "--write-out", "%{http_code}", &wanted]].concat();
    let ran = world.start_program("curl", &args).wait(LIMIT);
    open.signal(rustix::process::Signal::INT);
    open.wait(LIMIT).expect(0);
    ran.stdout
}

#[test]
fn a_cluster_that_took_our_place_is_neither_used_nor_removed() {
    let world = World::new();
    let name = world.name("alice");
    let before = world.snapshot(&[]);
    let running = world.up_until_kind_creates(&name);
    running.signal(rustix::process::Signal::INT);
    running.wait(LIMIT).expect(130);
    // Its removal of what it began may be complete; the record that it was begun stays in any case.
    let left = world.docker(&["ps", "--all", "--quiet", "--filter", &format!("name=k8tre-{name}")]).expect(0).stdout;
    if !left.is_empty() {
        world.docker(&["rm", "--force", "--volumes", left.trim_end()]).expect(0);
    }
    let node = somebody_elses_cluster(&world, &name);
    let theirs = world.snapshot(&[]).without("file");
    let status = world.status(&name).expect(3);
    assert!(status.stdout.contains("not"), "{status}");
    world.up(&name, &[]).expect(5);
    assert_same_world(&theirs, &world.snapshot(&[]).without("file"));
    let down = world.k8tre(&["dev", "down", &name]).expect(1);
    assert!(down.stderr.contains("not ours"), "{down}");
    assert_same_world(&theirs, &world.snapshot(&[]).without("file"));

    world.docker(&["rm", "--force", "--volumes", &node]).expect(0);
    world.down(&name);
    world.assert_nothing_left(&before, &[]);
}
