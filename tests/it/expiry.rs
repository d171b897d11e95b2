//! Environments that end by themselves, and what is removed after that.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::support::desk::{Desk, changes};
use super::support::shared::{HUB, UP, desk, remains};

const ALICE: &str = "k8tre-alice";
pub const EXPIRES: &str = "k8tre.dev/expires";

pub fn journal(desk: &Desk, name: &str) -> Value {
    let path = desk.path(&format!("data/environments/{name}/journal.json"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Moves the end that an environment's journal has, as time would.
pub fn ended(desk: &Desk, name: &str) {
    let mut saved = journal(desk, name);
    saved["spec"]["expires"] = json!("2026-01-01T00:00:00Z");
    std::fs::write(desk.path(&format!("data/environments/{name}/journal.json")), saved.to_string()).unwrap();
}

fn expires(desk: &Desk, name: &str) -> Timestamp {
    journal(desk, name)["spec"]["expires"].as_str().unwrap().parse().unwrap()
}

fn node_says(desk: &Desk, cluster: &str) -> String {
    let path = desk.docker.containers().join(format!("{cluster}-control-plane.json"));
    let node: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    node["times"]["/k8tre/expires"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_is_written_on_all_that_is_made_and_can_be_moved() {
    let desk = Desk::new().await;
    desk.run(&["dev", "up", "alice", "--sample", "--ttl", "30s"]).await.code(2).says("at least 1m");
    desk.run(&["dev", "up", "alice", "--sample", "--ttl", "8h"]).await.code(0);
    let end = expires(&desk, "alice");
    let left = end.duration_since(Timestamp::now());
    assert!(left > SignedDuration::from_hours(7) && left <= SignedDuration::from_hours(8), "{left}");
    let on_secret = |desk: &Desk| {
        let secret = desk.clusters.object(ALICE, "secrets", "k8tre-cluster-alice").unwrap();
        secret["metadata"]["annotations"][EXPIRES].as_str().unwrap().to_owned()
    };
    assert_eq!(on_secret(&desk), end.to_string());
    assert_eq!(node_says(&desk, ALICE), end.as_second().to_string());
    let repo = journal(&desk, "alice")["spec"]["repo"].as_str().unwrap().to_owned();
    let message = desk.git(&repo, &["log", "-1", "--format=%B", "dev/alice"]);
    assert!(message.contains(&format!("K8tre-Expires: {end}\nK8tre-Environment: alice ")), "{message}");
    desk.run(&["dev", "up", "alice"]).await.code(0).says("nothing was to be done");
    desk.run(&["dev", "status"]).await.code(0).shows("expires in 7 h");
    desk.run(&["dev", "list"]).await.code(0).shows("in 7 h");

    desk.run(&["dev", "extend", "4h"]).await.code(0).says("expires in 11 h");
    let later = expires(&desk, "alice");
    assert_eq!(later, end + SignedDuration::from_hours(4));
    assert_eq!((on_secret(&desk), node_says(&desk, ALICE)), (later.to_string(), later.as_second().to_string()));
    desk.run(&["dev", "up", "alice"]).await.code(0).says("nothing was to be done");
    desk.run(&["dev", "extend", "alice", "soon"]).await.code(2);

    ended(&desk, "alice");
    desk.run(&["dev", "status"]).await.shows("expired").shows("k8tre dev extend alice 8h");
    desk.run(&["dev", "list"]).await.code(0).shows("expired");
    // What has ended begins anew from now on.
    desk.run(&["dev", "extend", "alice", "2d"]).await.code(0).says("expires in 47 h");
    desk.run(&["dev", "down", "alice"]).await.code(0);

    desk.run(&["dev", "up", "alice", "--sample"]).await.code(0);
    assert!(journal(&desk, "alice")["spec"].get("expires").is_none());
    desk.run(&["dev", "extend", "alice", "4h"]).await.code(2).says("--ttl 8h");
    desk.run(&["dev", "down", "alice"]).await.code(0);
    desk.write("config/config.toml", "ttl = \"3h\"\n");
    desk.run(&["dev", "up", "alice", "--sample"]).await.code(0);
    desk.run(&["dev", "status", "-o", "json"]).await.code(0).shows("\"expires\"");
    desk.run(&["dev", "down", "alice"]).await.code(0);
}

const NOTHING: [&str; 0] = [];

#[tokio::test(flavor = "multi_thread")]
async fn gc_removes_what_has_expired_or_is_orphaned_here_and_nothing_else() {
    let desk = Desk::new().await;
    desk.repository("mine", &[("README.md", "mine\n")]);
    let before = desk.snapshot();
    desk.run(&["dev", "up", "bob", "--sample"]).await.code(0);
    let with_bob = desk.snapshot();
    desk.run(&["dev", "up", "alice", "--sample", "--ttl", "8h"]).await.code(0);
    desk.run(&["dev", "gc", "--yes"]).await.code(0).says("nothing has expired");
    ended(&desk, "alice");
    let now = desk.snapshot();
    desk.run(&["dev", "gc", "--dry-run"]).await.code(0).shows("environment").shows("alice").shows("expired");
    desk.run(&["dev", "gc"]).await.code(2).says("--yes");
    assert_eq!(changes(&now, &desk.snapshot()), NOTHING);
    let report = desk.run(&["dev", "gc", "--yes", "-o", "json"]).await.code(0).json();
    assert_eq!((&report["found"][0]["name"], &report["found"][0]["outcome"]), (&"alice".into(), &"removed".into()));
    assert_eq!(report["found"].as_array().unwrap().len(), 1);
    assert_eq!(changes(&with_bob, &desk.snapshot()), NOTHING);

    // Bob's journal is lost: his cluster may be another person's, until its end has passed.
    std::fs::remove_dir_all(desk.path("data/environments/bob")).unwrap();
    desk.run(&["dev", "gc", "--yes"]).await.code(0).says("left alone: bob: recorded nowhere here");
    let path = desk.docker.containers().join("k8tre-bob-control-plane.json");
    let mut node: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let later = Timestamp::now() + SignedDuration::from_hours(1);
    node["times"] = json!({"/k8tre/expires": later.as_second().to_string()});
    std::fs::write(&path, node.to_string()).unwrap();
    desk.run(&["dev", "gc", "--yes"]).await.code(0).says("--unrecorded takes it too");
    node["times"] = json!({"/k8tre/expires": "1767225600"});
    std::fs::write(&path, node.to_string()).unwrap();
    desk.run(&["dev", "gc", "--yes"]).await.code(0).shows("cluster").shows("recorded nowhere here").says("bob is gone");
    // Who made Docker's network is told by the journal alone.
    let left = changes(&before, &desk.snapshot());
    assert!(left.iter().all(|what| what.ends_with("/networks/kind.json")), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn gc_removes_a_branch_without_an_environment_unless_it_holds_somebodys_work() {
    let desk = Desk::new().await;
    super::cli_whole::sample_in(&desk, "tre").await;
    let up = ["dev", "up", "alice", "--repo", "../tre"];
    for work in [false, true] {
        desk.run(&up).await.code(0);
        desk.run(&["dev", "down", "alice", "--keep-branch"]).await.code(0);
        if work {
            desk.git("tre", &["switch", "--quiet", "dev/alice"]);
            desk.git("tre", &["commit", "--quiet", "--allow-empty", "-m", "Work"]);
            desk.git("tre", &["switch", "--quiet", "main"]);
        }
        let ended = desk.run_in("tre", &["dev", "gc", "--yes"]).await;
        ended.code(0);
        let there = desk.git("tre", &["branch", "--list", "dev/alice"]);
        assert_eq!(!there.is_empty(), work, "{} {}", ended.stdout, ended.stderr);
    }
}

pub fn on_secret(desk: &Desk, name: &str, patch: Value) {
    desk.clusters.change(HUB, "secrets", &format!("k8tre-cluster-{name}"), &json!({"metadata": patch}));
}

#[tokio::test(flavor = "multi_thread")]
async fn gc_takes_registrations_off_a_shared_argo_cd_from_another_machine() {
    let desk = desk().await;
    let hub = desk.clusters.versions(HUB);
    desk.run(&[&UP[..], &["--ttl", "8h"]].concat()).await.code(0);
    let gc = ["dev", "gc", "--argocd", "team", "--yes"];
    let list = ["shared", "list", "--argocd", "team"];
    desk.run(&gc).await.code(0).says("nothing has expired");
    desk.run(&list).await.code(0).shows("alice").shows("in 7 h").shows("6/6").shows("yes");
    let listed = desk.run(&[&list[..], &["-o", "json"]].concat()).await.code(0).json();
    let one = &listed["environments"][0];
    assert_eq!((&one["developer"], &one["reachable"]), (&"alice".into(), &true.into()));
    assert!(listed["environments"].as_array().unwrap().len() == 1, "the Argo CD's own environment is no guest");

    // From another machine nothing is known but the marks.
    std::fs::rename(desk.path("data/environments/alice"), desk.path("away")).unwrap();
    let answers = desk.run(&gc).await;
    answers.code(0);
    assert!(!remains(&desk, "alice").is_empty(), "it has not expired, and its cluster answers");
    on_secret(&desk, "alice", json!({"annotations": {EXPIRES: "2026-01-01T00:00:00Z"}}));
    let now = desk.clusters.versions(HUB);
    desk.run(&["dev", "gc", "--argocd", "team", "--dry-run"]).await.code(0).shows("registration").shows("expired");
    assert_eq!(desk.clusters.versions(HUB), now);
    desk.run(&gc).await.code(0).says("registration alice is gone");
    assert_eq!(remains(&desk, "alice"), NOTHING);
    assert_eq!(desk.clusters.versions(HUB), hub, "what others have there is as it was");
    std::fs::rename(desk.path("away"), desk.path("data/environments/alice")).unwrap();

    // Its cluster is gone, or its laptop is closed: who knows takes it off.
    desk.run(&UP).await.code(0);
    std::fs::rename(desk.path("data/environments/alice"), desk.path("away")).unwrap();
    std::fs::remove_file(desk.docker.containers().join("k8tre-alice-control-plane.json")).unwrap();
    on_secret(
        &desk,
        "alice",
        json!({"creationTimestamp": Timestamp::now().to_string(), "annotations": {EXPIRES: null}}),
    );
    let silent = [&gc[..], &["--silent"]].concat();
    desk.run(&silent).await.code(0).says("younger than an hour");
    desk.run(&list).await.code(0).shows("no: Could not resolve host");
    on_secret(&desk, "alice", json!({"creationTimestamp": "2026-01-01T00:00:00Z"}));
    let now = desk.clusters.versions(HUB);
    desk.run(&gc).await.code(0).says("left alone: alice: its cluster does not answer").says("--silent takes it too");
    assert_eq!(desk.clusters.versions(HUB), now);
    desk.run(&["dev", "gc", "--silent", "--yes"]).await.code(2).says("--argocd");
    desk.run(&silent).await.code(0).shows("its cluster does not answer at https://k8tre-alice-control-plane:6443");
    assert_eq!(remains(&desk, "alice"), NOTHING);
    assert_eq!(desk.clusters.versions(HUB), hub);
    desk.run(&list).await.code(0).says("no developer's environment");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_repository_is_named_before_the_wait_and_read_by_a_login_for_this_environment_alone() {
    let desk = desk().await;
    let (before, hub) = (desk.snapshot(), desk.clusters.versions(HUB));
    desk.clusters.is_private();
    let up = [&UP[..], &["-vv"]].concat();
    let refused = desk.run(&up).await;
    refused.code(1).says("the Argo CD in team/argocd cannot read https://git.invalid/tre.git");
    refused.says("--repo-credentials git").says("authentication required");

    desk.write("work/login", "username=alice\npassword=wrong\n");
    let with = |from: &'static str| ["dev", "up", "alice", "--repo-credentials", from, "-vvv", "--timeout", "5s"];
    desk.run(&with("nowhere")).await.says("cannot read the login in nowhere");
    desk.write("work/login", "username=alice\npassword=s3cr3t-of-alice\n");
    let ended = desk.run(&with("login")).await;
    ended.code(0);
    let mut texts = vec![ended.stdout.clone() + &ended.stderr];
    for (name, project) in [("k8tre-repo-alice", "dev-alice"), ("k8tre-repo-root-dev-alice", "root-dev-alice")] {
        let secret = desk.clusters.object(HUB, "secrets", name).unwrap();
        assert_eq!(secret["data"]["project"], BASE64_STANDARD.encode(project), "{name}");
        assert_eq!(secret["metadata"]["labels"]["developer"], "alice");
    }
    desk.run(&["dev", "up", "alice"]).await.code(0).says("nothing was to be done");
    desk.clusters.lose(HUB, "secrets", "k8tre-repo-alice");
    desk.run(&["dev", "status", "alice"]).await.code(3).shows("repository-access");
    desk.run(&["dev", "up", "alice"]).await.code(2).says("has to be given again");
    // The user's own credential helper.
    let settings = "[user]\n\tname = Alice\n\temail = alice@example.org\n[credential]\n\thelper = \"!f() { echo username=alice; echo password=s3cr3t-of-alice; }; f\"\n";
    let own = std::fs::read_to_string(desk.path("home/.gitconfig")).unwrap();
    desk.write("home/.gitconfig", settings);
    let ended = desk.run(&with("git")).await;
    desk.write("home/.gitconfig", &own);
    ended.code(0);
    texts.push(ended.stdout.clone() + &ended.stderr);
    std::fs::remove_file(desk.path("work/login")).unwrap();
    texts.extend(desk.snapshot().into_iter().map(|(path, content)| path + &content));
    assert!(texts.iter().all(|text| !text.contains("s3cr3t-of-alice")), "the login is told");

    desk.run(&["dev", "down", "alice"]).await.code(0);
    assert_eq!(remains(&desk, "alice"), NOTHING);
    assert_eq!(desk.clusters.versions(HUB), hub);
    assert_eq!(changes(&before, &desk.snapshot()), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_of_ended_environments_are_found_on_a_remote_and_those_with_work_in_them_stay() {
    let desk = desk().await;
    let push = |name: &str, end: &str, id: &str, own: bool| {
        let message = format!("For {name}\n\nK8tre-Expires: {end}\nK8tre-Environment: {name} {id}\n");
        let branch = format!("dev/{name}");
        desk.git("tre", &["checkout", "--quiet", "--detach", "main"]);
        if own {
            desk.git("tre", &["commit", "--quiet", "--allow-empty", "-m", "Work of mine"]);
        }
        desk.git("tre", &["commit", "--quiet", "--allow-empty", "-m", &message]);
        desk.git("tre", &["push", "--quiet", "origin", &format!("HEAD:refs/heads/{branch}")]);
        desk.git("tre", &["checkout", "--quiet", "main"]);
    };
    let (past, future) = ("2026-01-01T00:00:00Z", "2999-01-01T00:00:00Z");
    push("bob", past, "0123456789ab", false);
    push("carol", future, "1123456789ab", false);
    push("dave", past, "2123456789ab", true);
    desk.git("tre", &["push", "--quiet", "origin", "main:refs/heads/dev/erin"]);
    // One that is registered, and of which the Argo CD says a later end than its branch.
    desk.run(&[&UP[..], &["--ttl", "8h"]].concat()).await.code(0);
    let id = journal(&desk, "alice")["id"].as_str().unwrap().to_owned();
    desk.git("remote.git", &["update-ref", "-d", "refs/heads/dev/alice"]);
    push("alice", past, &id, false);
    let heads = || desk.git("remote.git", &["for-each-ref", "--format=%(refname:short)", "refs/heads/dev"]);
    assert_eq!(heads(), "dev/alice\ndev/bob\ndev/carol\ndev/dave\ndev/erin");

    let gc = ["dev", "gc", "--argocd", "team", "--remote", "origin"];
    desk.run(&["dev", "gc", "--remote", "origin"]).await.code(2).says("--argocd");
    desk.run_in("tre", &[&gc[..], &["--dry-run"]].concat())
        .await
        .code(0)
        .shows("dev/bob")
        .hides("dev/carol")
        .hides("dev/alice");
    let ended = desk.run_in("tre", &[&gc[..], &["--yes"]].concat()).await;
    ended.code(0).says("remote branch dev/bob is gone").says("left alone: dev/dave: it holds a commit of your own");
    assert_eq!(heads(), "dev/alice\ndev/carol\ndev/dave\ndev/erin");

    // Once its end is over on the Argo CD as well, both go, from any machine.
    std::fs::rename(desk.path("data/environments/alice"), desk.path("away")).unwrap();
    std::fs::remove_file(desk.docker.containers().join("k8tre-alice-control-plane.json")).unwrap();
    let over = json!({"metadata": {"annotations": {EXPIRES: past}}});
    desk.clusters.change(HUB, "secrets", "k8tre-cluster-alice", &over);
    let ended = desk.run_in("tre", &[&gc[..], &["--yes"]].concat()).await;
    ended.code(0).says("registration alice is gone").says("remote branch dev/alice is gone");
    assert_eq!(heads(), "dev/carol\ndev/dave\ndev/erin");
}
