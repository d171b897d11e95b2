//! A cluster that is stopped for the night.

use std::io::Write;
use std::time::Duration;

use crate::support::{World, assert_same_world};

#[test]
fn a_paused_environment_frees_its_memory_and_resumes_sooner_than_it_came_up() {
    let world = World::new();
    let name = world.name("pia");
    let before = world.snapshot(&[]);
    let cold = world.up(&name, &["--sample", "-o", "json"]).expect(0);
    let secret = world.object(&name, "secret", "argocd", &format!("k8tre-cluster-{name}"));

    let paused = world.k8tre(&["dev", "pause", &name, "-o", "json"]).expect(0).json();
    assert!(paused["freedBytes"].as_u64().is_some_and(|bytes| bytes > 100 << 20), "{paused}");
    let running = ["ps", "--quiet", "--filter", &format!("name=k8tre-{name}-control-plane")];
    assert_eq!(world.docker(&running).expect(0).stdout, "", "no container of it runs");
    let status = world.status(&name).expect(3);
    assert!(status.stdout.contains("paused for") && status.took < Duration::from_secs(5), "{status}");

    let resumed = world.k8tre(&["dev", "resume", &name]).expect(0);
    let ratio = resumed.took.as_secs_f64() / cold.took.as_secs_f64();
    let text = format!("up {:.1} s, resume {:.1} s: {ratio:.2}\n", cold.took.as_secs_f64(), resumed.took.as_secs_f64());
    std::io::stderr().write_all(text.as_bytes()).expect("stderr is open in tests");
    assert!(ratio < 0.8, "{text}");
    world.status_in_peace(&name, &[]).expect(0);
    let after = world.object(&name, "secret", "argocd", &format!("k8tre-cluster-{name}"));
    assert_eq!(after["metadata"]["uid"], secret["metadata"]["uid"], "it is the same cluster");

    // Docker or the machine was restarted: `up` ends in the same state.
    world.docker(&["restart", "--time", "1", &format!("k8tre-{name}-control-plane")]).expect(0);
    world.up_healthy(&name, &[]);

    world.k8tre(&["dev", "pause", &name]).expect(0);
    world.down(&name);
    assert_same_world(&before, &world.snapshot(&[]));
}
