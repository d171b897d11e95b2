//! Bad input: a clear message, the documented exit code, and nothing made.

use std::time::{Duration, Instant};

use super::cli_whole::sample_in;
use super::support::desk::{Desk, Ended, changes};
use super::support::http::FileServer;
use super::support::tools;

const NOTHING: [&str; 0] = [];

/// Runs what has to be refused, and proves that nothing came of it.
async fn refused(desk: &Desk, args: &[&str], code: i32, words: &[&str]) -> Ended {
    let before = desk.snapshot();
    let ended = desk.run(args).await;
    ended.code(code);
    for words in words {
        ended.says(words);
    }
    assert_eq!(changes(&before, &desk.snapshot()), NOTHING, "{}", ended.stderr);
    ended
}

/// A machine with the sample as the user's own repository in `tre`; returns its path too.
async fn with_repository() -> (Desk, String) {
    let desk = Desk::new().await;
    sample_in(&desk, "tre").await;
    let repo = desk.path("tre").display().to_string();
    (desk, repo)
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_cannot_be_used() {
    let desk = Desk::new().await;
    let long = "a".repeat(80);
    for name in ["a/b", "a.b", "Alice", &long, "😀", "", "..", "../../etc", "a b", "-", "a\nb", "a\u{202e}b", "ä"] {
        for command in ["up", "down", "status"] {
            refused(&desk, &["dev", command, &format!("--name={name}")], 2, &["hint: ", "--name"]).await;
        }
    }
    refused(&desk, &["dev", "up", "Alice", "--sample"], 2, &["alice"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repositories_that_cannot_be_used() {
    let desk = Desk::new().await;
    desk.write("folder/file", "");
    desk.repository("bare", &[("README.md", "nothing else")]);
    std::fs::create_dir(desk.path("unborn")).unwrap();
    desk.git("unborn", &["init", "--quiet"]);
    let at = |name: &str| desk.path(name).display().to_string();
    refused(&desk, &["dev", "up", "alice", "--repo", &at("folder")], 2, &["is not in a git repository", "hint: "])
        .await;
    refused(&desk, &["dev", "up", "alice", "--repo", &at("nowhere")], 2, &["nowhere", "hint: "]).await;
    refused(&desk, &["dev", "up", "alice"], 2, &["k8tre dev up --sample"]).await;
    refused(&desk, &["dev", "up", "alice", "--repo", &at("unborn")], 2, &["commit"]).await;
    refused(&desk, &["dev", "up", "alice", "--repo", &at("bare")], 1, &["app_of_apps", "hint: "]).await;
    refused(&desk, &["dev", "up", "alice", "--repo", &at("bare"), "--sample"], 2, &["cannot be used with"]).await;
    refused(&desk, &["dev", "up", "alice", &format!("--sample={}", at("folder"))], 2, &["is not empty"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_application_set_is_named_with_file_and_line() {
    let (desk, repo) = with_repository().await;
    for (broken, place) in [
        ("apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: [\n", "appsets/portal/portal.yaml:"),
        (
            "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: portal}\nspec:\n  generators: 7\n",
            "appsets/portal/portal.yaml:5",
        ),
    ] {
        desk.write("tre/appsets/portal/portal.yaml", broken);
        desk.git("tre", &["commit", "--quiet", "--all", "-m", "Break"]);
        refused(&desk, &["dev", "up", "alice", "--repo", &repo], 1, &[place]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_labels_and_choices_that_cannot_be_used() {
    let (desk, repo) = with_repository().await;
    let up = |more: &[&str]| -> Vec<String> {
        ["dev", "up", "alice", "--repo", &repo].iter().chain(more).map(|word| (*word).to_owned()).collect()
    };
    let long = format!("a={}", "x".repeat(64));
    for (more, words) in [
        (["--base", "nowhere"], "nowhere"),
        (["--base", "--upload-pack=touch x"], "--upload-pack"),
        (["--label", "novalue"], "KEY=VALUE"),
        (["--label", "=x"], "KEY=VALUE"),
        (["--label", "tier=not a value"], "label"),
        (["--label", "not a key=x"], "label"),
        (["--label", &long], "label"),
        (["--label", "a/b/c=x"], "label"),
        (["--vendor", "not a value"], "label"),
        (["--domain", "not a domain"], "label"),
        (["--only", "nothing-of-this-name"], "there are: guardrails, identity"),
        (["--kind-config", "nothing"], "neither a kind configuration"),
        (["--timeout", "soon"], "90s"),
    ] {
        let args = up(&more);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        refused(&desk, &args, 2, &[words]).await;
    }
    for more in [["--only", "nothing-of-this-name"], ["--label", "tier=not a value"]] {
        let fresh: Vec<&str> = ["dev", "up", "alice", "--sample"].into_iter().chain(more).collect();
        refused(&desk, &fresh, 2, &["hint: "]).await;
    }
    let labels = [
        "dev",
        "up",
        "alice",
        "--sample",
        "--skip",
        "guardrails,identity,metrics,portal,retention,storage-class,workspaces",
    ];
    refused(&desk, &labels, 2, &["make no Application"]).await;
    desk.git("tre", &["branch", "dev"]);
    let args = ["dev", "up", "alice", "--repo", &repo];
    refused(&desk, &args, 5, &["dev/alice", "git branch -m dev"]).await;
    desk.git("tre", &["branch", "-D", "dev"]);
    desk.git("tre", &["branch", "dev/alice"]);
    refused(&desk, &args, 5, &["dev/alice", "hint: "]).await;
    desk.git("tre", &["branch", "-D", "dev/alice"]);
    // git would else guess from the machine's name.
    desk.write("home/.gitconfig", "[user]\n\tuseConfigOnly = true\n");
    refused(&desk, &args, 5, &["git config", "user.name"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_files_with_mistakes() {
    let (desk, repo) = with_repository().await;
    for (text, words) in [("vendr = \"k3s\"\n", "vendr"), ("labels = 7\n", "labels"), ("vendor = \n", "line 1")] {
        desk.write("tre/k8tre.toml", text);
        refused(&desk, &["dev", "up", "alice", "--repo", &repo], 2, &["k8tre.toml", words]).await;
    }
    std::fs::remove_file(desk.path("tre/k8tre.toml")).unwrap();
    desk.write("config/config.toml", "argocd = { verson = 1 }\n");
    refused(&desk, &["dev", "up", "alice", "--repo", &repo], 2, &["config.toml", "verson"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_stopped_or_hanging() {
    let desk = Desk::new().await.with("DOCKER_HOST", Some("unix:///nowhere/docker.sock"));
    refused(&desk, &["dev", "up", "alice", "--sample"], 5, &["/nowhere/docker.sock", "hint: "]).await;
    let desk = Desk::new().await;
    desk.docker.change(|world| world.hang_on = Some(String::new()));
    let start = Instant::now();
    refused(&desk, &["dev", "up", "alice", "--sample"], 5, &["within 10 s", "hint: "]).await;
    assert!(start.elapsed() < Duration::from_secs(25), "{:?}", start.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn kind_missing_or_not_the_right_one() {
    let desk = Desk::new().await;
    std::fs::remove_file(desk.kind.folder().join("kind")).unwrap();
    refused(&desk, &["dev", "up", "alice", "--sample", "--offline"], 5, &["kind is not on PATH", "go install"]).await;
    let server = FileServer::start().await;
    let name = "kind-linux-amd64";
    server.put(&format!("/v0.33.0/{name}"), "#!/bin/sh\necho not the right one\n");
    let desk = desk.with("K8TRE_KIND_URL", Some(&server.url));
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        refused(&desk, &["dev", "up", "alice", "--sample"], 5, &["its SHA-256 is"]).await;
    }
    tools::write(desk.kind.folder(), "kind", "#!/bin/sh\necho 'kind v0.11.0 go1.16 linux/amd64'\n");
    refused(&desk, &["dev", "up", "alice", "--sample", "--offline"], 5, &["0.11.0", "is older than"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn argo_cds_manifest_missing_or_wrong() {
    let desk = Desk::new().await;
    let up = ["dev", "up", "alice", "--sample"];
    desk.write("page.html", "<html>: [");
    desk.write("pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n");
    for (file, code, words) in
        [("nowhere", 1, "nowhere"), ("page.html", 1, "manifest"), ("pod.yaml", 2, "custom resource definition")]
    {
        let path = desk.path(file).display().to_string();
        refused(&desk, &["dev", "up", "alice", "--sample", "--argocd-manifest", &path], code, &[words]).await;
    }
    let desk = desk.with("K8TRE_ARGOCD_MANIFEST", None);
    refused(&desk, &["dev", "up", "alice", "--sample", "--offline"], 5, &["--argocd-manifest FILE"]).await;
    let server = FileServer::start().await;
    server.put("/v3.6.1/manifests/install.yaml", "kind: List\n");
    let desk = desk.with("K8TRE_ARGOCD_URL", Some(&server.url));
    refused(&desk, &up, 1, &["its SHA-256 is", "--argocd-manifest FILE"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_cannot_be_written_means_that_nothing_is_made() {
    let desk = Desk::new().await;
    let up = ["dev", "up", "alice", "--sample"];
    desk.write("in-the-way", "a file where the folder should be");
    let file = desk.path("in-the-way").display().to_string();
    let desk = desk.with("K8TRE_DATA_DIR", Some(&file));
    refused(&desk, &up, 1, &["in-the-way"]).await;
    let data = desk.path("data").display().to_string();
    let desk = desk.with("K8TRE_DATA_DIR", Some(&data));
    // A disk on which no byte has room.
    let before = desk.snapshot();
    let full = desk.run_without_space(&up).await;
    full.code(1).says("cannot write").says("alice");
    assert_eq!(changes(&before, &desk.snapshot()), NOTHING, "{}", full.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_and_names_that_somebody_else_has() {
    let desk = Desk::new().await;
    let taken = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let config = format!(
        "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes:\n- role: control-plane\n  extraPortMappings: [{{containerPort: 80, hostPort: {port}}}]\n"
    );
    desk.write("kind.yaml", &config);
    let file = desk.path("kind.yaml").display().to_string();
    let words = format!("port {port} is taken");
    refused(&desk, &["dev", "up", "alice", "--sample", "--kind-config", &file], 5, &[&words, "hint: "]).await;
    for mark in [None, Some("/k8tre/owner/alice/0123456789ab")] {
        desk.docker.add_node("k8tre-alice", "control-plane", mark, "running", true);
        refused(&desk, &["dev", "up", "alice", "--sample"], 5, &["k8tre-alice", "not", "hint: "]).await;
        if mark.is_none() {
            refused(&desk, &["dev", "down", "alice"], 4, &["there is no environment"]).await;
        }
    }
}
