//! A developer's day: an own repository with unfinished work, a commit on the branch, an app left out.

use std::fs;
use std::path::Path;

use crate::support::{World, assert_same_world};

const EDITED: &str = "<h1>Edited by Alice</h1>\n";

#[test]
fn a_commit_on_the_branch_goes_live_and_is_kept_and_the_checkout_stays() {
    let world = World::new();
    let name = world.name("alice");
    let repo = world.own_repository();
    let branch = format!("dev/{name}");
    let before = world.snapshot(&[&repo]);
    let same_checkout = || {
        let ours = format!("tre refs/heads/{branch}");
        let after =
            world.snapshot(&[&repo]).without(&ours).without("docker").without("file data").without("file cache");
        assert_same_world(&before.without("docker").without("file cache"), &after);
    };

    let first = world.up_healthy(&name, &["--repo", &repo.to_string_lossy()]);
    world.assert_deployed(&name, &repo, &first);
    same_checkout();

    let commit = commit_an_edit(&world, &name, &repo);
    world.assert_status_names(&name, "publish");
    let second = world.up_healthy(&name, &[]);
    world.assert_deployed(&name, &repo, &second);
    assert_eq!(second.commit, commit, "the developer's commit is what is deployed");
    assert_eq!(second.applications, first.applications);
    assert_eq!(live_page(&world, &name), EDITED);
    same_checkout();

    let left_out = format!("metrics-{name}");
    assert!(second.applications.contains(&left_out), "{:?}", second.applications);
    let third = world.up_healthy(&name, &["--skip", "metrics"]);
    assert!(!third.applications.contains(&left_out), "{:?}", third.applications);
    world.assert_deployed(&name, &repo, &third);
    world.git(&repo, &["merge-base", "--is-ancestor", &commit, &branch]).expect(0);
    assert_eq!(live_page(&world, &name), EDITED, "what is edited outlasts another change");
    same_checkout();

    let down = world.down(&name);
    assert!(down.stderr.contains(&branch) && down.stderr.contains("of your own"), "why the branch stays: {down}");
    world.git(&repo, &["merge-base", "--is-ancestor", &commit, &branch]).expect(0);
    world.git(&repo, &["branch", "--quiet", "-D", &branch]).expect(0);
    world.assert_nothing_left(&before, &[&repo]);
}

/// Another work tree, as a developer would take one, with the page of the portal replaced in this environment alone.
fn commit_an_edit(world: &World, name: &str, repo: &Path) -> String {
    let place = world.home.join("edit");
    let path = place.to_string_lossy().into_owned();
    world.git(repo, &["worktree", "add", "--quiet", &path, &format!("dev/{name}")]).expect(0);
    let folder = place.join("apps/portal/envs").join(format!("dev-{name}"));
    let kustomization = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n  - ../dev\n\
        configMapGenerator:\n  - name: portal-page\n    namespace: portal\n    behavior: replace\n    files:\n      - index.html\n";
    fs::write(folder.join("kustomization.yaml"), kustomization).expect("the branch has a folder for the environment");
    fs::write(folder.join("index.html"), EDITED).expect("a new file");
    world.git(&place, &["add", "--all"]).expect(0);
    world.git(&place, &["commit", "--quiet", "--message", "Greet from the portal"]).expect(0);
    let commit = world.tip(&place, "HEAD").expect("a commit was made");
    world.git(repo, &["worktree", "remove", "--force", &path]).expect(0);
    commit
}

/// The page that the portal's running Deployment mounts.
pub fn live_page(world: &World, name: &str) -> String {
    let deployment = world.object(name, "deployment", "portal", "portal");
    let volumes = deployment["spec"]["template"]["spec"]["volumes"].as_array().expect("the portal has volumes");
    let page = volumes.iter().find(|volume| volume["name"] == "page").expect("one of them is the page");
    let map = page["configMap"]["name"].as_str().expect("from a ConfigMap");
    let map = world.object(name, "configmap", "portal", map);
    map["data"]["index.html"].as_str().expect("with the page").to_owned()
}
