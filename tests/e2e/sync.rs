//! The inner loop against the real Argo CD: edits without a commit, one that breaks, and what stays of it.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::{LIMIT, World, assert_same_world};

const PROFILES: &str = "apps/workspaces/base/profiles.yaml";

#[test]
fn what_is_edited_is_live_without_a_commit_and_what_breaks_is_named() {
    let world = World::new();
    let name = world.name("sync");
    let repo = world.own_repository();
    let before = world.snapshot(&[&repo]);
    let index = fs::read(repo.join(".git/index")).expect("an index");
    world.up_healthy(&name, &["--repo", &repo.to_string_lossy()]);
    let tip = world.tip(&repo, &format!("dev/{name}"));

    edit(&repo, PROFILES, "a day", "two days");
    let edited = world.snapshot(&[&repo]);
    let report = world.k8tre(&["dev", "sync", &name, "-o", "json"]).expect(0).json();
    assert_eq!(applications(&report), [format!("workspaces-{name}")]);
    assert_eq!(profile(&world, &name), "1 CPU, 2 GiB, two days");
    assert_eq!(world.tip(&repo, &format!("dev/{name}")), tip, "the branch does not move");
    // The checkout, the index, the stash: all as it was, but for the one reference of k8tre's.
    let kept = format!("tre refs/k8tre/{name}");
    let same = |snapshot: &crate::support::Snapshot| {
        snapshot.without(&kept).without("docker").without("file data").without("file cache").without("file tmp")
    };
    assert_same_world(&same(&edited), &same(&world.snapshot(&[&repo])));
    world.k8tre(&["dev", "status", &name]).expect(0);

    // A repair keeps what is deployed.
    world
        .kubectl(&name, &["delete", "application", "--wait=false", "-n", "argocd", &format!("portal-{name}")])
        .expect(0);
    world.up_healthy(&name, &[]);
    assert_eq!(profile(&world, &name), "1 CPU, 2 GiB, two days");

    // An ApplicationSet's new folder: one more Application.
    add_app(&repo, "second");
    let report = world.k8tre(&["dev", "sync", &name, "-o", "json"]).expect(0).json();
    assert!(applications(&report).contains(&format!("second-{name}")), "{report}");
    world.k8tre(&["dev", "status", &name]).expect(0);

    edit(&repo, "apps/workspaces/base/quota.yaml", "kind:", "  kind: {\nbroken:");
    let broken = world.k8tre(&["dev", "sync", &name]).expect(3);
    assert!(broken.stdout.contains("apps/workspaces/base/quota.yaml") && broken.stdout.contains("line"), "{broken}");
    world.git(&repo, &["checkout", "--quiet", "apps/workspaces/base/quota.yaml"]).expect(0);

    let mut watch = world.start(&["dev", "sync", &name, "--watch"]);
    watch.wait_for("watching", LIMIT);
    edit(&repo, PROFILES, "two days", "three days");
    let deadline = Instant::now() + Duration::from_secs(60);
    while profile(&world, &name) != "1 CPU, 2 GiB, three days" {
        assert!(Instant::now() < deadline, "the edit is not live:\n{}\n{}", watch.stdout(), watch.stderr());
    }
    watch.signal(Signal::INT);
    watch.wait(LIMIT).expect(0);

    world.k8tre(&["dev", "sync", &name, "--reset"]).expect(0);
    assert_eq!(profile(&world, &name), "1 CPU, 2 GiB, a day");
    world.git(&repo, &["checkout", "--quiet", "--", "apps", "appsets"]).expect(0);
    world.git(&repo, &["clean", "--quiet", "-d", "--force", "apps", "appsets"]).expect(0);
    // Which git's own checkout has written to.
    fs::write(repo.join(".git/index"), index).expect("the repository is ours");
    world.down(&name);
    world.assert_nothing_left(&before, &[&repo]);
}

fn edit(repo: &Path, path: &str, from: &str, to: &str) {
    let text = fs::read_to_string(repo.join(path)).expect("a file of the sample");
    assert!(text.contains(from), "{path} holds no {from:?}");
    fs::write(repo.join(path), text.replacen(from, to, 1)).expect("the repository is ours");
}

fn applications(report: &serde_json::Value) -> Vec<String> {
    let names = report["applications"].as_array().into_iter().flatten();
    names
        .filter(|app| app["name"].as_str().is_some_and(|name| !name.starts_with("root-")))
        .map(|app| app["name"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// What is live of the file that is edited.
fn profile(world: &World, name: &str) -> String {
    let map = world.object(name, "configmap", "workspaces", "workspace-profiles");
    map["data"]["small"].as_str().expect("a profile").to_owned()
}

/// Another app with an ApplicationSet of its own, and one ConfigMap.
fn add_app(repo: &Path, app: &str) {
    let write = |path: String, text: &str| {
        let path = repo.join(path);
        fs::create_dir_all(path.parent().expect("in the repository")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    let identity = fs::read_to_string(repo.join("appsets/identity/identity.yaml")).expect("the sample's");
    write(format!("appsets/{app}/{app}.yaml"), &identity.replace("identity", app));
    edit(repo, "appsets/kustomization.yaml", "resources:\n", &format!("resources:\n  - {app}/{app}.yaml\n"));
    write(format!("apps/{app}/envs/dev/kustomization.yaml"), "resources: [../../base]\n");
    write(format!("apps/{app}/base/kustomization.yaml"), "resources: [map.yaml]\n");
    write(
        format!("apps/{app}/base/map.yaml"),
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\ndata: {a: b}\n",
    );
}
