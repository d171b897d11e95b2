//! One Application apart from the others, with the real controller: held, released, from another branch, and back.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::edit::live_page;
use crate::support::World;

const PAGE: &str = "apps/portal/base/index.html";
const PROFILES: &str = "apps/workspaces/base/profiles.yaml";
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn a_held_application_stays_and_one_from_another_branch_comes_and_goes() {
    let world = World::new();
    let name = world.name("hold");
    let repo = world.own_repository();
    let branch = format!("dev/{name}");
    world.git(&repo, &["branch", "feature-x", "main"]).expect(0);
    commit(&world, &repo, "feature-x", &[(PAGE, "<h1>Feature</h1>\n")]);
    world.up_healthy(&name, &["--repo", &repo.to_string_lossy()]);
    let (old, base) = (live_page(&world, &name), fs::read_to_string(repo.join(PAGE)).expect("a page"));
    let run = |args: &[&str]| world.k8tre(&[args, &["--name", &name]].concat()).expect(0);

    let hold = run(&["dev", "hold", "portal", "--for", "20m"]);
    assert!(hold.took < Duration::from_secs(30), "{hold}");
    let profiles = fs::read_to_string(repo.join(PROFILES)).expect("profiles").replace("8 CPU", "9 CPU");
    commit(&world, &repo, &branch, &[(PAGE, "<h1>Held back</h1>\n"), (PROFILES, &profiles)]);
    let up = world.up_healthy(&name, &[]);
    let live = world.object(&name, "configmap", "workspaces", "workspace-profiles");
    assert!(live["data"]["large"].as_str().expect("a profile").starts_with("9 CPU"), "others go on: {live}");
    assert_eq!(live_page(&world, &name), old, "the held one stays");
    let status = world.status_in_peace(&name, &[]).expect(0);
    assert!(status.stdout.contains("held for another"), "{status}");
    let application = world.object(&name, "application", "argocd", &format!("portal-{name}"));
    assert_eq!(application["status"]["sync"]["status"], "OutOfSync");
    assert_eq!(application["status"]["sync"]["revision"], up.commit);
    // Argo CD does not sync it later either.
    std::thread::sleep(Duration::from_secs(10));
    assert_eq!(live_page(&world, &name), old);

    run(&["dev", "release", "portal"]);
    await_page(&world, &name, "<h1>Held back</h1>\n");
    let project = world.object(&name, "appproject", "argocd", &format!("dev-{name}"));
    assert!(project["spec"]["syncWindows"].as_array().is_none_or(Vec::is_empty), "{project}");

    // The developer's own commit is in the way until it is somewhere else, too.
    let refused = world.k8tre(&["dev", "use", "portal", "--branch", "feature-x", "--name", &name]).expect(5);
    assert!(refused.stderr.contains(PAGE), "{refused}");
    world.git(&repo, &["branch", "portal-work", &branch]).expect(0);
    run(&["dev", "use", "portal", "--branch", "portal-work"]);
    let used = run(&["dev", "use", "portal", "--branch", "feature-x"]);
    assert_eq!(live_page(&world, &name), "<h1>Feature</h1>\n", "{used}");
    let status = world.status_in_peace(&name, &[]).expect(0);
    assert!(status.stdout.contains("from branch feature-x at"), "{status}");
    run(&["dev", "use", "portal", "--reset"]);
    assert_eq!(live_page(&world, &name), base);
    world.down(&name);
}

/// A commit on a branch, through a work tree of its own.
fn commit(world: &World, repo: &Path, branch: &str, files: &[(&str, &str)]) {
    let place = world.home.join("elsewhere");
    let path = place.to_string_lossy().into_owned();
    world.git(repo, &["worktree", "add", "--quiet", &path, branch]).expect(0);
    for (file, content) in files {
        fs::write(place.join(file), content).expect("a file of the sample");
    }
    world.git(&place, &["commit", "--quiet", "--all", "--message", "Work"]).expect(0);
    world.git(repo, &["worktree", "remove", "--force", &path]).expect(0);
}

/// Waits for a page; while the portal is replaced, the page that its Deployment names may be gone already.
fn await_page(world: &World, name: &str, page: &str) {
    let get = |what: &[&str]| world.kubectl(name, &[&["get", "-n", "portal", "-o", "json"], what].concat());
    let deadline = Instant::now() + LIMIT;
    loop {
        let deployment = get(&["deployment", "portal"]).expect(0).json();
        let volumes = deployment["spec"]["template"]["spec"]["volumes"].as_array().expect("the portal has volumes");
        let map = volumes.iter().find(|volume| volume["name"] == "page").expect("one of them is the page");
        let map = get(&["configmap", map["configMap"]["name"].as_str().expect("from a ConfigMap")]);
        if map.code == Some(0) && map.json()["data"]["index.html"] == page {
            return;
        }
        assert!(Instant::now() < deadline, "the page is still another: {map}");
        std::thread::sleep(Duration::from_millis(500));
    }
}
