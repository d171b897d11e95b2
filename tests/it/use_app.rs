//! One Application's files from another branch, and the rest from the base.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::cli_whole::sample_in;
use super::support::desk::{Desk, Ended, changes};
use super::support::gate::Rule;

const NOTHING: [&str; 0] = [];
const CLUSTER: &str = "k8tre-alice";
const PAGE: &str = "apps/portal/base/index.html";

/// An environment from the user's own repository `tre`, which has a branch with another page.
async fn desk() -> Desk {
    let desk = Desk::new().await;
    sample_in(&desk, "tre").await;
    branch(&desk, "feature-x", "main", &[(PAGE, "new page")]);
    let repo = desk.path("tre").display().to_string();
    desk.run(&["dev", "up", "alice", "--repo", &repo]).await.code(0);
    desk
}

/// A commit on a branch, with main checked out again after it.
fn branch(desk: &Desk, name: &str, from: &str, files: &[(&str, &str)]) {
    let known = desk.git("tre", &["branch", "--list", name]);
    match known.is_empty() {
        true => desk.git("tre", &["switch", "--quiet", "-c", name, from]),
        false => desk.git("tre", &["switch", "--quiet", name]),
    };
    for (path, content) in files {
        desk.write(&format!("tre/{path}"), content);
    }
    desk.git("tre", &["add", "."]);
    desk.git("tre", &["commit", "--quiet", "-m", "Work"]);
    desk.git("tre", &["switch", "--quiet", "main"]);
}

fn tip(desk: &Desk, name: &str) -> String {
    desk.git("tre", &["rev-parse", name])
}

/// A file as it is on the developer's branch, which has to be what is published.
fn live(desk: &Desk, path: &str) -> String {
    assert_eq!(desk.clusters.published(CLUSTER, "dev/alice"), Some(tip(desk, "dev/alice")));
    desk.git("tre", &["show", &format!("dev/alice:{path}")])
}

async fn use_portal(desk: &Desk, more: &[&str]) -> Ended {
    desk.run(&[&["dev", "use", "portal"], more].concat()).await
}

async fn uses(desk: &Desk) -> Value {
    desk.run(&["dev", "status", "-o", "json"]).await.json()["branch"]["uses"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_comes_from_another_branch_until_it_is_reset() {
    let desk = desk().await;
    let (old, before) = (live(&desk, PAGE), desk.git("tre", &["ls-tree", "-r", "dev/alice"]));
    let state = || ["HEAD", "main", "feature-x"].map(|name| tip(&desk, name));
    let untouched = state();

    use_portal(&desk, &["--branch", "feature-x"]).await.code(0).says("portal-alice comes from branch feature-x at");
    assert_eq!(live(&desk, PAGE), "new page");
    let env = live(&desk, "apps/portal/envs/dev-alice/kustomization.yaml");
    assert!(env.contains("../dev"), "the environment's own folder stays: {env}");
    let trailer = desk.git("tre", &["log", "-1", "--format=%(trailers:key=K8tre-Environment)", "dev/alice"]);
    assert!(trailer.contains("alice"), "{trailer}");
    let taken = tip(&desk, "feature-x");
    assert_eq!(uses(&desk).await, json!([{"application": "portal-alice", "branch": "feature-x", "commit": taken}]));
    let short = &taken[..8];
    desk.run(&["dev", "status"]).await.code(0).shows(&format!("portal-alice from branch feature-x at {short}"));

    let kept = tip(&desk, "dev/alice");
    desk.run(&["dev", "up"]).await.code(0).hides("to take that");
    assert_eq!(tip(&desk, "dev/alice"), kept);
    branch(&desk, "feature-x", "main", &[(PAGE, "newer page"), ("notes.txt", "theirs")]);
    desk.run(&["dev", "up"]).await.code(0).says("k8tre dev use portal-alice --branch feature-x");
    assert_eq!(live(&desk, PAGE), "new page");
    use_portal(&desk, &["--branch", "feature-x"]).await.code(0);
    assert_eq!(live(&desk, PAGE), "newer page");
    assert!(!desk.git("tre", &["ls-tree", "-r", "--name-only", "dev/alice"]).contains("notes.txt"));

    use_portal(&desk, &["--reset"]).await.code(0).says("is as in main again");
    assert_eq!(live(&desk, PAGE), old);
    assert_eq!(desk.git("tre", &["ls-tree", "-r", "dev/alice"]), before);
    assert_eq!(uses(&desk).await, Value::Null);
    assert_eq!(state()[..2], untouched[..2]);
    desk.run(&["dev", "down"]).await.code(0).says("nothing left");
    assert_eq!(desk.git("tre", &["branch", "--list", "dev/alice"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_repository_is_read_without_a_trace_in_this_one() {
    let desk = desk().await;
    desk.git(".", &["clone", "--quiet", "tre", "theirs"]);
    desk.git("theirs", &["switch", "--quiet", "-c", "page"]);
    desk.write(&format!("theirs/{PAGE}"), "their page");
    desk.git("theirs", &["commit", "--quiet", "--all", "-m", "Their page"]);
    let folder = desk.path("theirs").display().to_string();
    let address = format!("file://{folder}");
    let references = || {
        let all = desk.git("tre", &["for-each-ref"]);
        let foreign: Vec<&str> = all.lines().filter(|line| !line.contains("dev/alice")).collect();
        foreign.join("\n")
    };
    let before = references();
    for (more, words) in [
        (&["--repo", &folder][..], "from branch page of"),
        (&["--repo", &address, "--branch", "page"], "from branch page of file://"),
    ] {
        use_portal(&desk, more).await.code(0).says(words);
        assert_eq!(live(&desk, PAGE), "their page");
        assert_eq!(uses(&desk).await[0]["branch"], "page");
        use_portal(&desk, &["--reset"]).await.code(0);
    }
    assert_eq!(references(), before);
    assert!(!desk.path("tre/.git/FETCH_HEAD").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_used_is_refused_and_changes_nothing() {
    let desk = desk().await;
    desk.git("tre", &["switch", "--quiet", "--orphan", "empty"]);
    desk.git("tre", &["commit", "--quiet", "--allow-empty", "-m", "Nothing"]);
    desk.git("tre", &["switch", "--quiet", "main"]);
    let before = desk.snapshot();
    let repo = desk.path("tre").display().to_string();
    for (args, code, words) in [
        (&["portla", "--branch", "feature-x"][..], 2, "did you mean portal-alice?"),
        (&["portal", "--branch", "featur-x"], 2, "similar: feature-x"),
        (&["portal", "--branch", "empty"], 2, "empty has no folder apps/portal"),
        (&["portal", "--branch", "dev/alice"], 2, "the environment's own branch"),
        (&["portal", "--branch=--upload-pack=id"], 2, "cannot be the name of a git branch"),
        (&["portal", "--repo=--upload-pack=id"], 2, "cannot be the address of a repository"),
        (&["portal", "--repo", "ext::sh -c id"], 2, "cannot be the address of a repository"),
        (&["portal", "--repo", &repo, "--branch", "nothing"], 2, "has no branch nothing"),
        (&["portal"], 2, "--branch"),
        (&["portal", "--branch", "feature-x", "--name", "bob"], 4, "there is no environment bob"),
    ] {
        desk.run(&[&["dev", "use"], args].concat()).await.code(code).says(words);
    }
    let written = changes(&before, &desk.snapshot());
    assert!(written.iter().all(|what| what.contains("/alice/lock: ")), "only who held the lock: {written:?}");

    desk.git("tre", &["switch", "--quiet", "dev/alice"]);
    use_portal(&desk, &["--branch", "feature-x"]).await.code(5).says("is checked out in");
    desk.git("tre", &["switch", "--quiet", "main"]);
    assert_eq!(uses(&desk).await, Value::Null, "what was refused is not remembered");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_developers_own_commits_are_not_lost() {
    let desk = desk().await;
    let env = "apps/portal/envs/dev-alice/notes.txt";
    branch(&desk, "dev/alice", "main", &[(PAGE, "my page"), (env, "mine")]);
    let mine = tip(&desk, "dev/alice");
    let refused = use_portal(&desk, &["--branch", "feature-x"]).await;
    refused.code(5).says(PAGE).hides(env).says("branch portal-work dev/alice");
    use_portal(&desk, &["--reset"]).await.code(5).says(PAGE);
    assert_eq!((tip(&desk, "dev/alice"), uses(&desk).await), (mine, Value::Null));

    // As the hints say.
    desk.git("tre", &["branch", "portal-work", "dev/alice"]);
    use_portal(&desk, &["--branch", "portal-work"]).await.code(0);
    use_portal(&desk, &["--branch", "feature-x"]).await.code(0);
    assert_eq!((live(&desk, PAGE), live(&desk, env)), ("new page".into(), "mine".into()));

    // What comes on top is kept by `up`, and asked about again by `use`.
    branch(&desk, "dev/alice", "main", &[(PAGE, "my page on top")]);
    desk.run(&["dev", "up"]).await.code(0);
    assert_eq!(live(&desk, PAGE), "my page on top");
    use_portal(&desk, &["--reset"]).await.code(5).says(PAGE);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_interrupted_is_completed_by_the_same_again_or_by_up() {
    for (signal, again) in [(Signal::KILL, true), (Signal::INT, false)] {
        let desk = desk().await;
        let old = live(&desk, PAGE);
        let args = ["dev", "use", "portal", "--branch", "feature-x"];
        for (args, page) in [(&args[..], "new page"), (&["dev", "use", "portal", "--reset"], old.as_str())] {
            desk.gate.set(Rule::HoldAfter);
            let running = desk.start(args);
            desk.gate.wait_until_reached().await;
            running.signal(signal);
            assert_ne!(running.ended().await.code, Some(0));
            desk.gate.set(Rule::Open);
            let next = if again { args } else { &["dev", "up"] };
            desk.run(next).await.code(0);
            assert_eq!(live(&desk, PAGE), page, "{args:?} {signal:?}");
            assert_eq!(uses(&desk).await.is_null(), page != "new page");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_is_made_anew_gets_it_again() {
    let desk = desk().await;
    use_portal(&desk, &["--branch", "feature-x"]).await.code(0);
    desk.git("tre", &["branch", "--quiet", "-D", "dev/alice"]);
    desk.run(&["dev", "up"]).await.code(0);
    assert_eq!(live(&desk, PAGE), "new page");
    let before = desk.snapshot();
    desk.run(&["dev", "plan"]).await.code(0);
    assert_eq!(changes(&before, &desk.snapshot()), NOTHING);
}
