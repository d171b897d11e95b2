//! The main job, whole: up, look, up again, down; and the same once more under the same name.

use std::collections::BTreeMap;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use crate::support::{Snapshot, World, assert_same_world};

#[test]
fn the_sample_comes_up_is_left_alone_by_a_second_up_and_goes_without_a_trace() {
    let world = World::new();
    let name = world.name("alice");
    let before = world.snapshot(&[]);
    for round in ["the first time", "once more under the same name"] {
        comes_up(&world, &name, round);
        is_looked_at(&world, &name);
        is_left_alone(&world, &name);

        let down = world.down(&name);
        assert!(down.stderr.contains("nothing left"), "{round}: {down}");
        world.assert_nothing_left(&before, &[]);
        world.status(&name).expect(4);
        world.k8tre(&["dev", "down", &name]).expect(4);
    }
}

fn comes_up(world: &World, name: &str, round: &str) {
    let plan = world.up(name, &["--sample", "--dry-run"]).expect(0);
    assert!(plan.stdout.contains("absent"), "{round}: before anything is made, all is absent: {plan}");
    assert!(!world.data.exists(), "{round}: a plan makes nothing");

    let users = std::fs::read(world.kubeconfig_of_user()).expect("the user's kubeconfig is there");
    let up = world.up_healthy(name, &["--sample"]);
    assert!(up.changed, "{round}");
    world.assert_deployed(name, &world.sample(), &up);
    let server = world.object(name, "deployment", "argocd", "argocd-server");
    assert_eq!(server["status"]["readyReplicas"], 1, "{round}: the UI's server runs");
    assert_eq!(std::fs::read(world.kubeconfig_of_user()).ok(), Some(users), "{round}: the user's kubeconfig");
    let head = world.git(&world.sample(), &["symbolic-ref", "HEAD"]).expect(0).stdout;
    assert_eq!(head, "refs/heads/main\n", "{round}: the checkout stays where it is");
    assert_eq!(world.git(&world.sample(), &["status", "--porcelain"]).expect(0).stdout, "", "{round}: and clean");
}

fn is_looked_at(world: &World, name: &str) {
    world.assert_status_healthy(name);
    let list = world.k8tre(&["dev", "list", "-o", "json"]).expect(0).json();
    assert_eq!(list["environments"][0]["name"], *name);
    assert_eq!(list["environments"][0]["state"], "running");
    let plan = world.k8tre(&["dev", "plan", name, "-o", "json"]).expect(0).json();
    let states: Vec<&Value> = plan["steps"].as_array().into_iter().flatten().map(|step| &step["state"]).collect();
    assert!(!states.is_empty() && states.iter().all(|state| **state == "ready"), "nothing is to be done: {plan}");

    let path = world.k8tre(&["dev", "kubeconfig", name]).expect(0).stdout;
    assert_eq!(path, format!("{}\n", world.kubeconfig(name).display()));
    let nodes = world.kubectl(name, &["get", "nodes", "-o", "name"]).expect(0).stdout;
    assert_eq!(nodes, format!("node/k8tre-{name}-control-plane\n"));

    let secret = world.object(name, "secret", "argocd", "argocd-initial-admin-secret");
    let password = BASE64_STANDARD.decode(secret["data"]["password"].as_str().expect("a password")).expect("base64");
    let password = String::from_utf8(password).expect("the password is text");
    assert_eq!(world.k8tre(&["dev", "password", name]).expect(0).stdout, format!("{password}\n"));
    let journal = world.data.join("environments").join(name).join("journal.json");
    let journal = std::fs::read_to_string(journal).expect("the journal is there");
    assert!(!journal.contains(&password), "the password is kept in the cluster alone");
}

fn is_left_alone(world: &World, name: &str) {
    let outside = || outside(world, name);
    let (world_before, objects_before) = (outside(), inside(world, name));
    let again = world.up(name, &[]).expect(0);
    assert!(again.stderr.contains("nothing was to be done"), "{again}");
    assert!(again.took.as_secs() < 15, "looking is quick, even where others compute: {again}");
    assert!(!world.up_healthy(name, &["--sample"]).changed, "asking for the sample again is no change");
    assert_same_world(&world_before, &outside());
    assert_eq!(objects_before, inside(world, name), "objects in the cluster");
}

/// Docker, files, the sample's refs, HEAD, index and work tree. The lock names whoever held it last.
fn outside(world: &World, name: &str) -> Snapshot {
    let lock = format!("file data/environments/{name}/lock");
    world.snapshot(&[&world.sample()]).without(&lock).without("file cache")
}

/// What k8tre applies, by version; of Applications and the like, which Argo CD keeps writing to, what was asked for.
fn inside(world: &World, name: &str) -> BTreeMap<String, Value> {
    let applied = "deployments,statefulsets,secrets,configmaps,services,serviceaccounts,appprojects.argoproj.io";
    let applied = world.objects(name, applied, &["-n", "argocd"]);
    assert!(applied.keys().any(|key| key == "AppProject argocd/default"), "{:?}", applied.keys());
    let versions = applied.into_iter().map(|(key, object)| (key, object["metadata"]["resourceVersion"].clone()));
    let kept = world.objects(name, "applications.argoproj.io,applicationsets.argoproj.io", &["-n", "argocd"]);
    let asked = kept.into_iter().map(|(key, object)| {
        let about = &object["metadata"];
        (key, json!([object["spec"], about["uid"], about["labels"], about["annotations"], about["finalizers"]]))
    });
    versions.chain(asked).collect()
}
