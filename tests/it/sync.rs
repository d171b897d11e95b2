//! `k8tre dev sync` on a developer's machine of fakes: what is deployed, who is asked, what is recorded, what stays.

use std::time::Duration;

use k8tre::journal::Lock;
use k8tre::ports::dirs::Dirs;
use rustix::process::Signal;

use super::cli_whole::{UP, sample_in};
use super::support::desk::{Desk, SAMPLE, changes};

const TRE: &str = "data/sample-tre";
const PROFILES: &str = "apps/workspaces/base/profiles.yaml";
const KEPT: &str = "refs/k8tre/alice";

async fn up() -> Desk {
    let desk = Desk::new().await;
    desk.run(&UP).await.code(0);
    desk.clusters.asked("k8tre-alice");
    desk
}

/// Replaces a part of a file in the sample.
fn edit(desk: &Desk, path: &str, from: &str, to: &str) {
    let path = format!("{TRE}/{path}");
    let text = std::fs::read_to_string(desk.path(&path)).unwrap();
    assert!(text.contains(from), "{path} holds no {from}");
    desk.write(&path, &text.replace(from, to));
}

fn served(desk: &Desk) -> String {
    desk.clusters.published("k8tre-alice", "dev/alice").unwrap()
}

fn served_file(desk: &Desk, path: &str) -> String {
    desk.git(TRE, &["show", &format!("{}:{path}", served(desk))])
}

fn names(report: &serde_json::Value) -> Vec<String> {
    let name = |app: &serde_json::Value| app["name"].as_str().unwrap().to_owned();
    report["applications"].as_array().unwrap().iter().map(name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_deployed_without_a_commit_and_stays_deployed() {
    let desk = up().await;
    let tip = served(&desk);
    desk.run(&["dev", "sync"]).await.code(0);
    assert_eq!(served(&desk), tip, "nothing was edited");

    edit(&desk, PROFILES, "a day", "two days");
    let git = |args: &[&str]| desk.git(TRE, args);
    let (status, index) =
        (git(&["status", "--porcelain=v2"]), std::fs::read(desk.path("data/sample-tre/.git/index")).unwrap());
    let report = desk.run(&["dev", "sync", "-o", "json"]).await.code(0).json();
    assert_eq!((&report["changed"], &report["files"]), (&true.into(), &serde_json::json!([PROFILES])));
    assert_eq!(names(&report), ["workspaces-alice"]);
    assert_eq!(report["applications"][0]["result"], "live");
    assert_eq!(desk.clusters.asked("k8tre-alice"), ["workspaces-alice"], "nobody else reads that file");
    assert!(served_file(&desk, PROFILES).contains("two days"));
    assert!(served_file(&desk, "overlays/developers/alice/kustomization.yaml").contains("alice"));
    assert_eq!(git(&["rev-parse", "dev/alice"]), tip, "the branch does not move");
    assert_eq!(git(&["rev-parse", KEPT]), served(&desk));
    assert_eq!(git(&["rev-parse", &format!("{KEPT}^")]), tip);
    assert_eq!(index, std::fs::read(desk.path("data/sample-tre/.git/index")).unwrap());
    assert_eq!(git(&["status", "--porcelain=v2"]), status);

    let before = desk.snapshot();
    let again = desk.run(&["dev", "sync"]).await;
    assert!(again.code(0).stdout.contains("nothing has changed"), "{}", again.stdout);
    let written = changes(&before, &desk.snapshot());
    assert!(written.iter().all(|what| what.contains("/alice/lock: ")), "{written:?}");
    assert_eq!(desk.clusters.asked("k8tre-alice"), [] as [&str; 0]);

    let status = desk.run(&["dev", "status", "-o", "json"]).await.code(0).json();
    assert_eq!(status["branch"]["synced"]["commit"], served(&desk).as_str());
    assert!(
        desk.run(&["dev", "status"]).await.code(0).stdout.contains("your work tree of 0 s ago is deployed")
            || desk.run(&["dev", "status"]).await.stdout.contains("your work tree of")
    );
    let up = desk.run(&["dev", "up", "-o", "json"]).await.code(0).json();
    assert_eq!((&up["changed"], &up["commit"]), (&false.into(), &served(&desk).into()));
    desk.clusters.lose("k8tre-alice", "applications", "portal-alice");
    desk.run(&["dev", "up"]).await.code(0);
    assert!(served_file(&desk, PROFILES).contains("two days"), "a repair keeps it");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_branch_is_back_with_reset_and_with_a_commit_of_its_own() {
    let desk = up().await;
    let tip = served(&desk);
    edit(&desk, PROFILES, "a day", "two days");
    desk.run(&["dev", "sync"]).await.code(0);
    edit(&desk, PROFILES, "two days", "three days");
    let told = desk.run(&["dev", "sync", "--no-wait"]).await;
    assert!(told.code(0).stdout.contains("pushed; not waited for"), "{}", told.stdout);
    edit(&desk, PROFILES, "three days", "two days");
    let reset = desk.run(&["dev", "sync", "--reset"]).await;
    assert!(reset.code(0).stdout.contains("the branch as it is committed is live"), "{}", reset.stdout);
    assert_eq!(served(&desk), tip);
    assert_eq!(desk.git(TRE, &["for-each-ref", "refs/k8tre"]), "");
    assert!(std::fs::read_to_string(desk.path(TRE).join(PROFILES)).unwrap().contains("two days"), "the file stays");
    let status = desk.run(&["dev", "status", "-o", "json"]).await.code(0).json();
    assert_eq!(status["branch"]["synced"], serde_json::Value::Null);

    desk.run(&["dev", "sync"]).await.code(0);
    assert_ne!(served(&desk), tip);
    desk.git(TRE, &["stash", "--quiet"]);
    desk.git(TRE, &["switch", "--quiet", "dev/alice"]);
    desk.git(TRE, &["commit", "--quiet", "--allow-empty", "-m", "Mine"]);
    let mine = desk.git(TRE, &["rev-parse", "HEAD"]);
    desk.run(&["dev", "status"]).await.code(3);
    desk.run(&["dev", "up"]).await.code(0);
    assert_eq!(served(&desk), mine, "the branch went on, so it counts");
    assert_eq!(desk.git(TRE, &["for-each-ref", "refs/k8tre"]), "");
    // On the branch itself, the work tree is what is deployed.
    edit(&desk, "apps/portal/base/index.html", "<", "<!-- mine --><");
    desk.run(&["dev", "sync"]).await.code(0);
    assert!(served_file(&desk, "apps/portal/base/index.html").contains("mine"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_app_gets_its_folder_and_its_application() {
    let desk = up().await;
    let read = |path: &str| std::fs::read_to_string(desk.path(TRE).join(path)).unwrap();
    desk.write(
        &format!("{TRE}/appsets/extra/extra.yaml"),
        &read("appsets/identity/identity.yaml").replace("identity", "extra"),
    );
    edit(&desk, "appsets/kustomization.yaml", "resources:\n", "resources:\n  - extra/extra.yaml\n");
    for path in
        ["envs/dev/kustomization.yaml", "base/kustomization.yaml", "base/store.yaml", "base/network-policy.yaml"]
    {
        desk.write(
            &format!("{TRE}/apps/extra/{path}"),
            &read(&format!("apps/identity/{path}")).replace("identity", "extra"),
        );
    }
    let with: Vec<&str> = SAMPLE.iter().copied().chain(["extra"]).collect();
    desk.clusters.applications(&with);
    let report = desk.run(&["dev", "sync", "-o", "json"]).await.code(0).json();
    assert_eq!(names(&report), ["extra-alice", "root-app-of-apps-alice"]);
    let begun = desk.clusters.begun("k8tre-alice");
    let [(root, operation)] = &begun[..] else { panic!("{begun:?}") };
    assert_eq!((root.as_str(), &operation["sync"]["revision"]), ("root-app-of-apps-alice", &served(&desk).into()));
    assert!(served_file(&desk, "apps/extra/envs/dev-alice/kustomization.yaml").contains("../dev"));
    assert!(served_file(&desk, "overlays/developers/alice/kustomization.yaml").contains("^extra$"));
    desk.run(&["dev", "status"]).await.code(0);
    assert_eq!(desk.run(&["dev", "up", "-o", "json"]).await.code(0).json()["changed"], false);

    // And away again, with the folder that only k8tre made.
    std::fs::remove_dir_all(desk.path(TRE).join("apps/extra")).unwrap();
    std::fs::remove_dir_all(desk.path(TRE).join("appsets/extra")).unwrap();
    desk.git(TRE, &["checkout", "--quiet", "appsets/kustomization.yaml"]);
    desk.clusters.applications(&SAMPLE);
    desk.clusters.lose("k8tre-alice", "applications", "extra-alice");
    let report = desk.run(&["dev", "sync", "-o", "json"]).await.code(0).json();
    assert_eq!(names(&report), ["extra-alice", "root-app-of-apps-alice"]);
    assert_eq!(report["applications"][0]["result"], "gone");
    assert_eq!(report["reset"], true, "the work tree is the branch again");
}

/// Found by the soak: what was asked while Argo CD looked at an older commit was never answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_argo_cd_forgets_is_asked_again() {
    let desk = up().await;
    desk.clusters.forgets("k8tre-alice", 2);
    edit(&desk, PROFILES, "a day", "two days");
    let report = desk.run(&["dev", "sync", "-o", "json"]).await.code(0).json();
    assert_eq!(report["applications"][0]["result"], "live");
    assert!(report["seconds"].as_f64().unwrap() > 1.0, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_live_in_time_is_said_with_exit_code_3() {
    let desk = up().await;
    desk.clusters.health("workspaces", "Progressing");
    edit(&desk, PROFILES, "a day", "two days");
    let sync = desk.run(&["dev", "sync", "--timeout", "20s"]).await;
    assert!(sync.code(0).stdout.contains("as before: Progressing"), "no worse than it was: {}", sync.stdout);
    edit(&desk, PROFILES, "two days", "three days");
    let sync = desk.run(&["dev", "sync", "--timeout", "1s"]).await;
    assert!(sync.code(3).stdout.contains("workspaces-alice"), "{}", sync.stdout);
    assert!(sync.stdout.contains("not live"), "{}", sync.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_deployed_is_refused_before_anything_is_pushed() {
    let desk = up().await;
    let before = served(&desk);
    desk.write(&format!("{TRE}/big.bin"), &"x".repeat(3000));
    desk.run(&["dev", "sync", "--max-file-size", "2K"]).await.code(5).says("big.bin (3 KiB)");
    desk.write(&format!("{TRE}/k8tre.toml"), "max-file-size = \"1K\"\n");
    desk.run(&["dev", "sync"]).await.code(5).says("big.bin (3 KiB)");
    desk.write(&format!("{TRE}/k8tre.toml"), "max-file-size = \"large\"\n");
    desk.run(&["dev", "sync"]).await.code(2).says("max-file-size");
    std::fs::remove_file(desk.path(TRE).join("k8tre.toml")).unwrap();
    std::fs::remove_file(desk.path(TRE).join("big.bin")).unwrap();
    edit(&desk, "app_of_apps/root-app-of-apps.yaml", "kind: Application", "kind: [");
    desk.run(&["dev", "sync"]).await.code(1).says("app_of_apps/root-app-of-apps.yaml");
    assert_eq!(served(&desk), before);

    let dirs = ["data", "cache", "config"].map(|name| desk.path(name));
    let [data, cache, config] = dirs;
    let lock = Lock::take(&Dirs { data, cache, config }, &"alice".parse().unwrap(), "dev up").unwrap();
    desk.run(&["dev", "sync"]).await.code(1).says("is working on the environment alice");
    drop(lock);
    desk.run(&["dev", "sync", "bob"]).await.code(4).says("there is no environment bob");
}

#[tokio::test(flavor = "multi_thread")]
async fn down_leaves_nothing_of_a_sync() {
    let desk = Desk::new().await;
    sample_in(&desk, "tre").await;
    desk.write(&format!("tre/{PROFILES}"), "kind: ConfigMap\nmetadata: {name: mine}\n");
    let before = desk.snapshot();
    desk.run_in("tre", &["dev", "up", "alice"]).await.code(0);
    desk.run_in("tre", &["dev", "sync"]).await.code(0);
    assert_ne!(desk.git("tre", &["for-each-ref", "refs/k8tre"]), "");
    desk.run_in("tre", &["dev", "down"]).await.code(0).says("nothing left");
    assert_eq!(changes(&before, &desk.snapshot()), [] as [&str; 0]);
}

/// Waits until the server has something else, or nothing else for a while.
async fn next(desk: &Desk, before: &str, patience: Duration) -> Option<String> {
    let deadline = std::time::Instant::now() + patience;
    while std::time::Instant::now() < deadline {
        let now = served(desk);
        if now != before {
            return Some(now);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    None
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_takes_each_change_once_and_no_ignored_one() {
    const LONG: Duration = Duration::from_secs(30);
    let desk = up().await;
    desk.write(&format!("{TRE}/.gitignore"), "*.swp\n");
    desk.run(&["dev", "sync"]).await.code(0);
    let watch = desk.start(&["dev", "sync", "--watch", "-o", "json"]);
    assert!(watch.says(|line| line.starts_with("watching ")).await);
    let mut at = served(&desk);
    // Before the first look of the watch is over nothing is missed either.
    edit(&desk, PROFILES, "a day", "two days");
    at = next(&desk, &at, LONG).await.expect("an edit is taken");

    desk.write(&format!("{TRE}/apps/workspaces/base/.profiles.yaml.swp"), "x");
    assert_eq!(next(&desk, &at, Duration::from_millis(800)).await, None, "an ignored file is no change");

    // As editors write: another file, renamed over the old one.
    desk.write(&format!("{TRE}/{PROFILES}.new.swp"), "kind: ConfigMap\nmetadata: {name: renamed}\n");
    std::fs::rename(desk.path(TRE).join(format!("{PROFILES}.new.swp")), desk.path(TRE).join(PROFILES)).unwrap();
    at = next(&desk, &at, LONG).await.expect("a rename is taken");
    assert!(served_file(&desk, PROFILES).contains("renamed"));

    for number in 0..300 {
        desk.write(&format!("{TRE}/docs/{number}.md"), "x");
    }
    at = next(&desk, &at, LONG).await.expect("many changes are taken");
    // What is refused is told, and the watch goes on.
    desk.write(&format!("{TRE}/big.bin"), &"x".repeat(6 << 20));
    assert!(watch.says(|_| true).await);
    assert_eq!(next(&desk, &at, Duration::from_millis(1500)).await, None);
    std::fs::remove_file(desk.path(TRE).join("big.bin")).unwrap();
    desk.git(TRE, &["stash", "--quiet", "--include-untracked"]);
    desk.git(TRE, &["switch", "--quiet", "dev/alice"]);
    next(&desk, &at, LONG).await.expect("another branch is another work tree");
    tokio::time::sleep(Duration::from_millis(1500)).await;
    watch.signal(Signal::INT);
    let ended = watch.ended().await;
    ended.code(0);
    let lines: Vec<serde_json::Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(
        lines.iter().any(|line| line["files"].as_array().is_some_and(|files| files.len() >= 200)),
        "{}",
        ended.stdout
    );
    assert!(
        lines.iter().any(|line| line["error"].as_str().is_some_and(|why| why.contains("big.bin"))),
        "{}",
        ended.stdout
    );
    assert!(lines.len() <= 12, "changes become few syncs: {}", ended.stdout);
}
