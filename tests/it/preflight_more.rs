//! The findings about what is meant to be, the checkout, certificates, names and clocks, each produced on purpose; and
//! what mends them, tried.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use k8tre::ports::fetch::Fetcher;
use k8tre::ports::git::Checkout;
use k8tre::preflight::{Context, Meant, Remedy, Severity, run};
use k8tre::requests::{Asked, ByApp};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::preflight::{context, find, healthy_proc, must};
use super::support::desk::Desk;
use super::support::fake_docker::FakeDocker;

const MI: u64 = 1 << 20;

fn meant() -> Meant {
    Meant {
        branch: "dev/alice".into(),
        base: "main".into(),
        domain: "alice.k8tre.internal".into(),
        contexts: Vec::new(),
        requests: ByApp::new(),
    }
}

async fn healthy() -> (FakeDocker, tempfile::TempDir, Context) {
    let (docker, proc) = (FakeDocker::start().await, healthy_proc());
    let cx = Context { meant: Some(meant()), ..context(&docker, proc.path()).await };
    (docker, proc, cx)
}

#[tokio::test]
async fn what_the_applications_ask_for_is_held_against_the_machine() {
    let (docker, _proc, mut cx) = healthy().await;
    let apps = [("hub", 2000, 700), ("db", 500, 600), ("web", 100, 100)];
    let asked = |(app, cpu, memory): (&str, u64, u64)| {
        (app.to_owned(), Asked { millicores: cpu, memory: memory * MI, disk: 0 })
    };
    cx.meant.as_mut().unwrap().requests = apps.map(asked).into();
    assert!(find(&run(&cx).await, "requests").is_none());

    // 4 CPUs less what the node itself asks for.
    cx.meant.as_mut().unwrap().requests.get_mut("hub").unwrap().millicores = 2600;
    let findings = run(&cx).await;
    let finding = must(&findings, "requests", Severity::Warning);
    assert!(finding.what.contains("3200m CPU of 3000m"), "{finding:?}");
    assert_eq!(finding.fix, "k8tre dev up --skip hub");

    docker.change(|world| {
        world.info["OperatingSystem"] = json!("Docker Desktop");
        world.info["MemTotal"] = json!(2u64 << 30);
        world.info["NCPU"] = json!(16);
    });
    cx.docker = reconnect(&docker).await;
    let findings = run(&cx).await;
    let finding = must(&findings, "requests", Severity::Warning);
    assert!(finding.what.contains("1.4 GiB of memory, with 0.5 GiB left"), "{finding:?}");
    assert_eq!(finding.fix, "k8tre dev up --skip hub,db");
}

async fn reconnect(
    docker: &FakeDocker,
) -> k8tre::error::Result<(k8tre::ports::docker::Docker, k8tre::ports::docker::EngineInfo)> {
    let connected = docker.connect().await;
    let info = connected.info().await?;
    Ok((connected, info))
}

#[tokio::test]
async fn podman_is_called_by_its_name() {
    let (docker, _proc, mut cx) = healthy().await;
    docker.change(|world| {
        world.info["ServerVersion"] = json!("5.4.2");
        world.version = json!({"Version": "5.4.2", "Components": [{"Name": "Podman Engine", "Version": "5.4.2"}]});
    });
    cx.docker = reconnect(&docker).await;
    let findings = run(&cx).await;
    assert!(must(&findings, "podman", Severity::Blocker).what.contains("Podman Engine 5.4.2"));
    assert!(find(&findings, "docker-too-old").is_none());
}

#[tokio::test]
async fn a_clock_that_is_off_is_told_whose_it_is() {
    let (docker, _proc, mut cx) = healthy().await;
    docker.change(|world| world.info["SystemTime"] = json!("2020-01-01T00:00:00.123456789Z"));
    cx.docker = reconnect(&docker).await;
    assert!(must(&run(&cx).await, "clock-docker", Severity::Warning).what.contains("behind"));
    docker.change(|world| world.info["SystemTime"] = json!(jiff::Timestamp::now().to_string()));
    cx.docker = reconnect(&docker).await;

    cx.clock = Some(time_server("Wed, 01 Jan 2020 00:00:00 GMT".into()).await);
    let findings = run(&cx).await;
    let finding = must(&findings, "clock", Severity::Warning);
    assert!(finding.what.contains("behind this machine's clock"), "{finding:?}");
    assert!(find(&findings, "clock-docker").is_none());

    let now = jiff::Timestamp::now().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    cx.clock = Some(time_server(now).await);
    assert!(find(&run(&cx).await, "clock").is_none());
    // Nobody answers: nothing is known, and nothing is claimed.
    cx.clock = Some("http://127.0.0.1:1".into());
    assert!(find(&run(&cx).await, "clock").is_none());
}

/// A server with a date of its own, for any number of questions.
async fn time_server(date: String) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 1024]).await;
            let answer =
                format!("HTTP/1.1 404 Not Found\r\nDate: {date}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    url
}

#[tokio::test]
async fn a_domain_that_leads_elsewhere_is_warned_of() {
    let (_docker, _proc, mut cx) = healthy().await;
    for (domain, code, severity) in
        [("192.0.2.7", "domain-elsewhere", Severity::Warning), ("tre.invalid", "domain-unknown", Severity::Info)]
    {
        cx.meant.as_mut().unwrap().domain = domain.into();
        assert!(must(&run(&cx).await, code, severity).what.contains(domain));
    }
    cx.meant.as_mut().unwrap().domain = "localhost".into();
    assert!(!run(&cx).await.iter().any(|finding| finding.code.starts_with("domain")));
}

#[tokio::test]
async fn certificates_of_ones_own_are_looked_into() {
    let (_docker, proc, mut cx) = healthy().await;
    let good = proc.path().join("good.pem");
    let key = rcgen::generate_simple_self_signed(vec!["x".into()]).unwrap();
    fs::write(&good, key.cert.pem()).unwrap();
    let bad = proc.path().join("bad.pem");
    fs::write(&bad, "no certificate").unwrap();

    cx.authorities = BTreeMap::from([("SSL_CERT_FILE", good.clone())]);
    let findings = run(&cx).await;
    let fix = &must(&findings, "ca-bundle-unset", Severity::Info).fix;
    assert_eq!(*fix, format!("export K8TRE_CA_BUNDLE={}", good.display()));
    cx.ca_bundle = Some(good);
    assert!(!run(&cx).await.iter().any(|finding| finding.code.starts_with("ca-")));
    cx.ca_bundle = Some(bad.clone());
    must(&run(&cx).await, "ca-bundle", Severity::Blocker);
    cx.authorities = BTreeMap::from([("GIT_SSL_CAINFO", bad)]);
    assert_eq!(must(&run(&cx).await, "ca-file", Severity::Warning).fix, "unset GIT_SSL_CAINFO");
}

#[tokio::test]
async fn contexts_that_are_named_and_not_there_block() {
    let (_docker, _proc, mut cx) = healthy().await;
    cx.contexts = Ok(vec!["lab".into(), "team".into()]);
    cx.meant.as_mut().unwrap().contexts = vec!["team".into(), "taem".into()];
    let findings = run(&cx).await;
    let finding = must(&findings, "context-missing", Severity::Blocker);
    assert!(finding.what.contains("taem") && finding.fix.contains("lab, team"), "{finding:?}");
    cx.contexts = Err(k8tre::error::Error::failed("it is no YAML"));
    must(&run(&cx).await, "kubeconfig", Severity::Warning);
}

/// git in a repository of the test's own.
fn git(folder: &Path, args: &[&str]) {
    let identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"];
    let mut git = std::process::Command::new("git");
    let output = git.current_dir(folder).args(identity).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn a_checkout_is_held_against_its_remotes() {
    let (_docker, proc, mut cx) = healthy().await;
    let (theirs, ours) = (proc.path().join("theirs"), proc.path().join("ours"));
    fs::create_dir(&theirs).unwrap();
    git(&theirs, &["init", "--quiet"]);
    git(&theirs, &["commit", "--quiet", "--allow-empty", "-m", "one"]);
    git(proc.path(), &["clone", "--quiet", "theirs", "ours"]);
    cx.checkout = Some(Checkout::open(&ours).unwrap());
    assert!(find(&run(&cx).await, "base-behind").is_none());

    // The remote goes on: asked only where the network may be asked, and mended by a fetch, which moves no branch.
    git(&theirs, &["commit", "--quiet", "--allow-empty", "-m", "two"]);
    assert!(find(&run(&cx).await, "base-unfetched").is_none());
    cx.clock = Some("http://127.0.0.1:1".into());
    let findings = run(&cx).await;
    let remedy = must(&findings, "base-unfetched", Severity::Info).remedy.clone().unwrap();
    assert!(matches!(remedy, Remedy::GitFetch { .. }));
    remedy.apply(&Fetcher::new(proc.path())).await.unwrap();
    let findings = run(&cx).await;
    assert!(find(&findings, "base-unfetched").is_none());
    let fix = must(&findings, "base-behind", Severity::Warning).fix.clone();
    let words: Vec<&str> = fix.split(' ').skip(1).collect();
    git(proc.path(), &words);
    assert!(find(&run(&cx).await, "base-behind").is_none());

    // A branch `dev` leaves no room for `dev/alice`; the fix is done as it stands.
    git(&ours, &["branch", "dev"]);
    let findings = run(&cx).await;
    let fix = must(&findings, "branch-clash", Severity::Blocker).fix.clone();
    let command = fix.split_once("git ").unwrap().1.to_owned();
    git(&ours, &command.split(' ').collect::<Vec<_>>());
    assert!(find(&run(&cx).await, "branch-clash").is_none());

    git(&ours, &["remote", "remove", "origin"]);
    must(&run(&cx).await, "no-remote", Severity::Info);
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_shows_what_there_is_and_what_is_wrong_and_mends_what_it_may() {
    let desk = Desk::new().await;
    let doctor = ["doctor", "--sample", "--offline"];
    let shown = desk.run(&doctor).await;
    shown.code(0).shows("Docker").shows("28.1.1").shows("Applications ask").shows("contexts");
    assert!(shown.stdout.lines().filter(|line| !line.contains("fix: ")).all(|line| line.chars().count() <= 100));
    assert!(!shown.stdout.contains('\u{1b}'), "{}", shown.stdout);

    desk.docker.change(|world| world.info["ServerVersion"] = json!("19.03.1"));
    desk.run(&doctor).await.code(5).shows("blocker: ").shows("[docker-too-old]").shows("fix: ");
    let report = desk.run(&["doctor", "--sample", "--offline", "-o", "json"]).await.code(5).json();
    assert_eq!(report["findings"][0]["code"], "docker-too-old");
    assert!(report["facts"].as_array().unwrap().iter().any(|fact| fact["topic"] == "git"), "{report}");
    // The same stops `up`.
    desk.run(&["dev", "up", "alice", "--sample"]).await.code(5).says("19.03.1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fix_is_asked_about_done_and_told() {
    let desk = Desk::new().await;
    desk.run(&["dev", "up", "alice", &format!("--sample={}", desk.path("tre").display())]).await.code(0);
    desk.run(&["dev", "down", "alice", "--keep-branch"]).await.code(0);
    desk.git("work", &["clone", "--quiet", "../tre", "mine"]);
    desk.git("tre", &["commit", "--quiet", "--allow-empty", "-m", "Go on"]);
    let clone = desk.path("work/mine").display().to_string();
    // Without a terminal nobody can be asked.
    let asked = ["doctor", "carol", "--repo", &clone, "--fix"];
    let desk = desk.with("K8TRE_KIND_URL", Some("http://127.0.0.1:1"));
    desk.run(&asked).await.code(2).says("--yes");
    let mended = desk.run(&["doctor", "carol", "--repo", &clone, "--fix", "--yes"]).await;
    mended.code(0).shows("mended [base-unfetched]: fetched from origin").shows("[base-behind]");
    assert!(!mended.stdout.contains("has a newer"), "{}", mended.stdout);
}
