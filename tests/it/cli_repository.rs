//! The user's own repository: its secrets, what it needs beforehand, its remote, and a base that goes on.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::cli_whole::sample_in;
use super::support::desk::{Desk, changes};

const NOTHING: [&str; 0] = [];
const CLUSTER: &str = "k8tre-alice";

/// The sample as the user's own repository in `tre`, and these files more in it.
async fn repository(desk: &Desk, files: &[(&str, &str)]) {
    sample_in(desk, "tre").await;
    for (path, content) in files {
        desk.write(&format!("tre/{path}"), content);
    }
    desk.git("tre", &["add", "."]);
    desk.git("tre", &["commit", "--quiet", "--allow-empty", "-m", "More"]);
}

/// A repository that asks for all that a repository can ask for.
pub async fn demanding(desk: &Desk) {
    let files = [
        ("k8tre.toml", PREREQUISITES),
        ("cluster/types.yaml", CRD),
        ("cluster/routes.yaml", ROUTE),
        ("ci/ci-secrets.yaml", LIST),
    ];
    repository(desk, &files).await;
}

/// Gives the repository a remote, which Argo CD can read.
pub fn give_remote(desk: &Desk) {
    fs::create_dir(desk.path("remote.git")).unwrap();
    desk.git("remote.git", &["init", "--quiet", "--bare"]);
    desk.git("tre", &["remote", "add", "origin", &desk.path("remote.git").display().to_string()]);
    desk.git("tre", &["push", "--quiet", "origin", "main"]);
    desk.clusters.remote(desk.path("remote.git"));
}

pub const REMOTE: [&str; 4] = ["--source", "remote", "--repo-url", "https://git.invalid/tre.git"];

async fn with(files: &[(&str, &str)]) -> (Desk, [String; 5]) {
    let desk = Desk::new().await;
    repository(&desk, files).await;
    let repo = desk.path("tre").display().to_string();
    let up = ["dev", "up", "alice", "--repo", &repo].map(str::to_owned);
    (desk, up)
}

async fn run(desk: &Desk, up: &[String], more: &[&str]) -> super::support::desk::Ended {
    let args: Vec<&str> = up.iter().map(String::as_str).chain(more.iter().copied()).collect();
    desk.run(&args).await
}

const LIST: &str = "namespace: secret-store\nsecrets:\n- name: db\n  type: generic\n  data:\n  - {key: user, value: admin}\n  \
                    - {key: password, value: '{{ generate_password(32) }}'}\n";

#[tokio::test(flavor = "multi_thread")]
async fn listed_secrets_are_made_once_and_shown_only_when_asked() {
    let (desk, up) = with(&[("ci/ci-secrets.yaml", LIST)]).await;
    let before = desk.snapshot();
    let first = run(&desk, &up, &["-vv"]).await;
    first.code(0);
    let password = desk.run(&["dev", "secrets", "--reveal=db/password"]).await.code(0).stdout.trim().to_owned();
    assert_eq!(password.len(), 32);
    assert_eq!(desk.run(&["dev", "secrets", "--reveal=db/user"]).await.code(0).stdout, "admin\n");
    desk.run(&["dev", "secrets"]).await.code(0).shows("db").hides(&password);
    desk.run(&["dev", "secrets", "--reveal=nothing"]).await.code(4).says("there are: db");
    let shown = desk.run(&["dev", "secrets", "-o", "json"]).await.code(0).json();
    assert_eq!(shown["secrets"][0]["keys"], json!(["password", "user"]));
    assert!(shown["secrets"][0]["values"].is_null());
    first.hides(&password);
    for (path, content) in desk.snapshot() {
        assert!(!content.contains(&password), "{path}");
    }

    let versions = desk.clusters.versions(CLUSTER);
    run(&desk, &up, &[]).await.code(0).says("nothing was to be done");
    assert_eq!(desk.clusters.versions(CLUSTER), versions);

    desk.clusters.change(CLUSTER, "secrets", "db", &json!({"data": {"user": null}}));
    desk.run(&["dev", "status"]).await.code(3).shows("secrets");
    run(&desk, &up, &[]).await.code(0);
    assert_eq!(desk.run(&["dev", "secrets", "--reveal=db/password"]).await.stdout.trim(), password);
    assert_eq!(desk.run(&["dev", "secrets", "--reveal=db/user"]).await.stdout, "admin\n");

    run(&desk, &up, &["--secrets", "overwrite"]).await.code(0);
    assert_ne!(desk.run(&["dev", "secrets", "--reveal=db/password"]).await.stdout.trim(), password);
    desk.run(&["dev", "status"]).await.code(0);
    desk.run(&["dev", "down"]).await.code(0);
    assert_eq!(changes(&before, &desk.snapshot()), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_secrets_that_cannot_be_used_stops_before_anything_is_made() {
    for (list, words) in [
        ("secrets:\n- name: db\n  data:\n  - {key: a, value: '{{ generate_passwort }}'}\n", "ci/ci-secrets.yaml:4"),
        ("secrets:\n- name: db\n  data:\n  - {key: a, value: '{{ lookup_env(TRE_TOKEN) }}'}\n", "export TRE_TOKEN=…"),
    ] {
        let (desk, up) = with(&[("ci/ci-secrets.yaml", list)]).await;
        let before = desk.snapshot();
        run(&desk, &up, &[]).await.code(2).says(words);
        assert_eq!(changes(&before, &desk.snapshot()), NOTHING);
        let desk = desk.with("TRE_TOKEN", Some("token"));
        if words.contains("TOKEN") {
            run(&desk, &up, &[]).await.code(0);
            assert_eq!(desk.run(&["dev", "secrets", "--reveal=db/a"]).await.stdout, "token\n");
        }
    }
}

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: routes.example.org}\n\
                   spec:\n  group: example.org\n  scope: Namespaced\n  names: {kind: Route, plural: routes}\n  versions: [{name: v1, served: true, storage: true}]\n";
const ROUTE: &str = "apiVersion: example.org/v1\nkind: Route\nmetadata: {name: way}\nspec: {to: there}\n";
const PREREQUISITES: &str = "[[prerequisites]]\nname = \"types\"\nmanifest = \"cluster/types.yaml\"\n\n[[prerequisites]]\n\
                             name = \"routes\"\nmanifest = \"cluster/routes.yaml\"\nnamespace = \"routing\"\n";

#[tokio::test(flavor = "multi_thread")]
async fn prerequisites_are_applied_in_order_before_argo_cd_and_repaired() {
    let files = [("k8tre.toml", PREREQUISITES), ("cluster/types.yaml", CRD), ("cluster/routes.yaml", ROUTE)];
    let (desk, up) = with(&files).await;
    run(&desk, &up, &[]).await.code(0);
    let object = |plural, name| desk.clusters.object(CLUSTER, plural, name);
    assert_eq!(object("routes", "way").unwrap()["metadata"]["namespace"], "routing");
    let made =
        |plural, name| object(plural, name).unwrap()["metadata"]["uid"].as_str().unwrap()[4..].parse::<u32>().unwrap();
    assert!(made("customresourcedefinitions", "routes.example.org") < made("routes", "way"));
    assert!(made("routes", "way") < made("namespaces", "argocd"));

    let versions = desk.clusters.versions(CLUSTER);
    run(&desk, &up, &[]).await.code(0).says("nothing was to be done");
    assert_eq!(desk.clusters.versions(CLUSTER), versions);

    desk.clusters.lose(CLUSTER, "routes", "way");
    desk.run(&["dev", "status"]).await.code(3).shows("routes: Route way is missing");
    run(&desk, &up, &[]).await.code(0);
    assert!(object("routes", "way").is_some());
    desk.write("tre/cluster/routes.yaml", &ROUTE.replace("there", "elsewhere"));
    run(&desk, &up, &[]).await.code(0);
    assert_eq!(object("routes", "way").unwrap()["spec"]["to"], "elsewhere");
}

#[tokio::test(flavor = "multi_thread")]
async fn prerequisites_that_cannot_be_used_stop_before_anything_is_made() {
    let unpinned = "[[prerequisites]]\nname = \"a\"\nmanifest = \"https://example.org/a.yaml\"\n";
    let missing = "[[prerequisites]]\nname = \"a\"\nmanifest = \"nowhere.yaml\"\n";
    let unknown = "[[prerequisites]]\nname = \"a\"\nmanifst = \"a.yaml\"\n";
    let chart = "[[prerequisites]]\nname = \"a\"\nchart = \"chart.tgz\"\n";
    for (settings, code, words) in [
        (unpinned, 2, "sha256sum"),
        (missing, 1, "nowhere.yaml"),
        (unknown, 2, "did you mean `manifest`?"),
        (chart, 5, "helm is not on PATH"),
    ] {
        let (desk, up) = with(&[("k8tre.toml", settings)]).await;
        let before = desk.snapshot();
        run(&desk, &up, &[]).await.code(code).says(words);
        assert_eq!(changes(&before, &desk.snapshot()), NOTHING);
    }
}

/// The same machine with a remote of the repository.
async fn with_remote() -> (Desk, Vec<String>) {
    let (desk, up) = with(&[]).await;
    give_remote(&desk);
    (desk, up.into_iter().chain(REMOTE.map(str::to_owned)).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_gets_the_branch_and_loses_it_again() {
    let (desk, up) = with_remote().await;
    let before = desk.snapshot();
    let tip = || desk.git("remote.git", &["for-each-ref", "--format=%(objectname)", "refs/heads/dev/alice"]);
    run(&desk, &up, &[]).await.code(0);
    assert_eq!(tip(), desk.git("tre", &["rev-parse", "dev/alice"]));
    assert_eq!(desk.clusters.published(CLUSTER, "dev/alice"), None);
    assert!(desk.clusters.object(CLUSTER, "deployments", "k8tre-git").is_none(), "no git server is needed");
    desk.run(&["dev", "status"]).await.code(0);
    run(&desk, &up, &[]).await.code(0).says("nothing was to be done");
    desk.run(&["dev", "up", "--source", "cluster"]).await.code(2).says("was published to another place");

    desk.git("remote.git", &["update-ref", "-d", "refs/heads/dev/alice"]);
    desk.run(&["dev", "status"]).await.code(3).shows("publish");
    run(&desk, &up, &[]).await.code(0);

    fs::rename(desk.path("remote.git"), desk.path("away.git")).unwrap();
    desk.run(&["dev", "down"]).await.code(1).says("push origin --delete dev/alice");
    fs::rename(desk.path("away.git"), desk.path("remote.git")).unwrap();
    desk.run(&["dev", "down"]).await.code(0);
    assert_eq!(tip(), "");
    assert_eq!(changes(&before, &desk.snapshot()), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn remotes_that_cannot_be_used_stop_before_anything_is_made() {
    let (desk, up) = with_remote().await;
    let refused = async |args: &[&str], code: i32, words: &str| {
        let before = desk.snapshot();
        desk.run(args).await.code(code).says(words);
        assert_eq!(changes(&before, &desk.snapshot()), NOTHING);
    };
    let plain: Vec<&str> = up.iter().map(String::as_str).collect();
    let repo = plain[4];
    refused(&["dev", "up", "alice", "--repo", repo, "--source", "remote"], 2, "--repo-url https://").await;
    refused(&[&plain[..], &["--remote", "fork"]].concat(), 2, "it has: origin").await;
    refused(&[&plain[..], &["--remote=--upload-pack=x"]].concat(), 2, "cannot be the name of a git remote").await;
    refused(&["dev", "up", "alice", "--sample", "--source", "remote"], 2, "the sample has no remote").await;

    desk.git("remote.git", &["branch", "dev", "main"]);
    refused(&plain, 5, "there is a branch dev there").await;
    desk.git("remote.git", &["branch", "-m", "dev", "dev/alice"]);
    refused(&plain, 5, "is not this environment's").await;
}

/// What the remote's server does with a push before it is taken.
fn hook(desk: &Desk, script: &str) {
    desk.write("remote.git/hooks/pre-receive", &format!("#!/bin/sh\n{script}"));
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(desk.path("remote.git/hooks/pre-receive"), executable).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_rejects_the_branch_is_quoted() {
    let (desk, up) = with_remote().await;
    hook(&desk, "echo 'no branches without a ticket' >&2\nexit 1\n");
    run(&desk, &up, &[]).await.code(1).says("no branches without a ticket").says("k8tre dev up alice");
    fs::remove_file(desk.path("remote.git/hooks/pre-receive")).unwrap();
    run(&desk, &up, &[]).await.code(0);
    desk.run(&["dev", "down"]).await.code(0);
}

/// A server does not stop when the one who pushes does: the branch appears after `down` looked for it first.
#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_a_server_completes_after_its_interruption_is_removed_too() {
    for signal in [Signal::INT, Signal::KILL] {
        let (desk, up) = with_remote().await;
        let before = desk.snapshot();
        hook(&desk, ": > ../reached\nwhile [ ! -e ../on ]; do /bin/sleep 0.02; done\n/bin/sleep 0.7\n");
        let args: Vec<&str> = up.iter().map(String::as_str).collect();
        let running = desk.start(&args);
        let reached = async {
            while !desk.path("reached").exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), reached).await.expect("up pushes");
        running.signal(signal);
        running.ended().await;
        desk.write("on", "");
        desk.run(&["dev", "down"]).await.code(0);
        tokio::time::sleep(Duration::from_millis(1500)).await;
        for file in ["reached", "on", "remote.git/hooks/pre-receive"] {
            fs::remove_file(desk.path(file)).unwrap();
        }
        assert_eq!(changes(&before, &desk.snapshot()), NOTHING, "{signal:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_base_that_goes_on_is_offered_and_a_conflict_changes_nothing() {
    let (desk, up) = with(&[]).await;
    run(&desk, &up, &[]).await.code(0);
    desk.write("tre/notes.txt", "news");
    desk.git("tre", &["add", "."]);
    desk.git("tre", &["commit", "--quiet", "-m", "News"]);
    let tip = || desk.git("tre", &["rev-parse", "dev/alice"]);
    let old = tip();
    run(&desk, &up, &[]).await.code(0).says("main has 1 commit that dev/alice lacks").says("--rebase");
    assert_eq!(tip(), old);
    run(&desk, &up, &["--rebase"]).await.code(0).says("dev/alice now starts at");
    assert_eq!(desk.git("tre", &["show", "dev/alice:notes.txt"]), "news");
    assert_eq!(desk.clusters.published(CLUSTER, "dev/alice"), Some(tip()));
    assert_eq!(desk.git("tre", &["rev-parse", "--abbrev-ref", "HEAD"]), "main");

    // The developer and the base change the same file.
    desk.git("tre", &["switch", "--quiet", "dev/alice"]);
    desk.write("tre/notes.txt", "mine");
    desk.git("tre", &["commit", "--quiet", "--all", "-m", "Mine"]);
    desk.git("tre", &["switch", "--quiet", "main"]);
    desk.write("tre/notes.txt", "theirs");
    desk.git("tre", &["commit", "--quiet", "--all", "-m", "Theirs"]);
    let old = tip();
    run(&desk, &up, &["--rebase"]).await.code(5).says("notes.txt").says("git rebase");
    assert_eq!(tip(), old);
}
