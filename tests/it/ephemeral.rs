//! An environment for one job of a CI: a name of its own, told to the CI, and gone whatever happens.

use rustix::process::Signal;

use super::cli_whole::sample_in;
use super::support::desk::{Desk, changes};

const NOTHING: [&str; 0] = [];

/// A runner of GitHub's that looks at a pull request.
async fn runner() -> Desk {
    let desk = Desk::new().await;
    let file = |name: &str| desk.path(name).display().to_string();
    let (summary, output) = (file("work/summary"), file("work/output"));
    let desk = desk.with("GITHUB_ACTIONS", Some("true")).with("GITHUB_REF", Some("refs/pull/7/merge"));
    let desk = desk.with("GITHUB_RUN_ID", Some("123")).with("GITHUB_RUN_ATTEMPT", Some("1"));
    desk.with("GITHUB_STEP_SUMMARY", Some(&summary)).with("GITHUB_OUTPUT", Some(&output))
}

fn read(desk: &Desk, name: &str) -> String {
    std::fs::read_to_string(desk.path(name)).unwrap_or_default()
}

fn output(desk: &Desk, name: &str) -> String {
    let all = read(desk, "work/output");
    let line = all.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=').map(str::to_owned));
    line.unwrap_or_else(|| panic!("no {name} in {all}"))
}

/// What is left besides that which the CI was told.
fn left(before: &std::collections::BTreeMap<String, String>, desk: &Desk) -> Vec<String> {
    let mut left = changes(before, &desk.snapshot());
    left.retain(|what| !what.ends_with("work/summary") && !what.ends_with("work/output"));
    left
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_has_the_environment_and_nothing_is_left_after_it() {
    let desk = runner().await;
    let before = desk.snapshot();
    let up = ["dev", "up", "--sample", "--ephemeral", "--", "/bin/sh", "-c", "echo $K8TRE_NAME; test -s $KUBECONFIG"];
    let ended = desk.run(&up).await;
    ended.code(0).says("is healthy").says("nothing left");
    let name = output(&desk, "name");
    assert!(name.starts_with("pr-7-123-1-"), "{name}");
    assert_eq!(ended.stdout, format!("{name}\n"), "stdout is the command's");
    assert_eq!(output(&desk, "context"), format!("kind-k8tre-{name}"));
    assert_eq!(output(&desk, "url"), format!("https://{name}.k8tre.internal"));
    let summary = read(&desk, "work/summary");
    assert!(summary.contains(&format!("| portal-{name} | Synced | Healthy |")), "{summary}");
    assert!(summary.contains("ended with 0") && summary.contains("nothing of it is left"), "{summary}");
    assert_eq!(left(&before, &desk), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exit_code_is_the_commands_and_the_document_tells_the_rest() {
    let desk = runner().await;
    let before = desk.snapshot();
    let up = ["dev", "up", "--sample", "--ephemeral", "-o", "json", "--", "/bin/sh", "-c", "echo said; exit 42"];
    let ended = desk.run(&up).await;
    let told = ended.code(42).says("said").json();
    assert_eq!((&told["command"]["exitCode"], &told["removed"]), (&42.into(), &true.into()), "{told}");
    assert_eq!((&told["healthy"], &told["schema"]), (&true.into(), &1.into()));
    assert_eq!(
        told["applications"].as_array().unwrap().len(),
        told["up"]["applications"].as_array().unwrap().len() + 1
    );
    let missing = ["dev", "up", "--sample", "--ephemeral", "--", "/there/is/none"];
    desk.run(&missing).await.code(127).says("was not found").says("nothing left");
    assert_eq!(left(&before, &desk), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_end_the_command_and_nothing_ends_the_removal() {
    let desk = runner().await;
    let before = desk.snapshot();
    let running = desk.start(&["dev", "up", "--sample", "--ephemeral", "--", "/bin/sh", "-c", "echo up >&2; sleep 60"]);
    assert!(running.says(|line| line == "up").await);
    // As GitHub does it: one signal, soon another.
    running.signal(Signal::INT);
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    running.signal(Signal::TERM);
    running.ended().await.code(130).says("nothing left");
    assert!(read(&desk, "work/summary").contains("interrupted"));
    assert_eq!(left(&before, &desk), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_command_it_stays_for_the_next_steps_and_has_an_end() {
    let desk = runner().await;
    let before = desk.snapshot();
    let told = desk.run(&["dev", "up", "--sample", "--ephemeral", "-o", "json"]).await.code(0).json();
    let name = output(&desk, "name");
    assert_eq!((&told["environment"], &told["removed"]), (&name.as_str().into(), &serde_json::Value::Null));
    assert_eq!(output(&desk, "kubeconfig"), told["kubeconfig"].as_str().unwrap());
    let status = desk.run(&["dev", "status", &name, "-o", "json"]).await.code(0).json();
    assert!(status["expires"].is_string() && status["expires"] == told["expires"], "{status}");
    // Another job has another one; this one is never taken for it.
    desk.run(&["dev", "up", &name, "--sample", "--ephemeral"]).await.code(2).says("is there already");
    desk.run(&["dev", "status", &name]).await.code(0);
    desk.run(&["dev", "down", &name, "--yes"]).await.code(0);
    assert_eq!(left(&before, &desk), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_does_not_come_up_is_told_with_its_cause_and_taken_away() {
    let desk = runner().await;
    let before = desk.snapshot();
    desk.clusters.health("portal", "Degraded");
    let up = ["dev", "up", "--sample", "--ephemeral", "--timeout", "1s", "--", "/bin/sh", "-c", "echo never"];
    let ended = desk.run(&up).await;
    ended.code(3).says("nothing left").hides("never");
    let summary = read(&desk, "work/summary");
    assert!(summary.contains("did not come up") && summary.contains("nothing of it is left"), "{summary}");
    assert!(summary.contains("| Degraded | portal-"), "{summary}");
    assert_eq!(left(&before, &desk), NOTHING);

    let kept = desk.run(&["dev", "up", "--sample", "--ephemeral", "--timeout", "1s", "--keep-on-failure"]).await;
    kept.code(3);
    let name = read(&desk, "work/output")
        .lines()
        .filter_map(|line| line.strip_prefix("name="))
        .next_back()
        .unwrap()
        .to_owned();
    desk.run(&["dev", "status", &name]).await.code(3);
    desk.run(&["dev", "down", &name, "--yes"]).await.code(0);
    assert_eq!(left(&before, &desk), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_machine_refuses_is_told_too() {
    let desk = runner().await;
    desk.docker.change(|world| world.info["MemTotal"] = 1.into());
    let ended = desk.run(&["dev", "up", "--sample", "--ephemeral", "-o", "json"]).await;
    let told = ended.code(5).json();
    assert_eq!((&told["healthy"], &told["removed"]), (&false.into(), &true.into()));
    assert!(!told["error"]["message"].as_str().unwrap().is_empty(), "{told}");
    assert!(read(&desk, "work/summary").contains("did not come up"));
}

/// As `actions/checkout` leaves it: a commit and no branch, and git knows nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_detached_checkout_of_nobodys_is_enough() {
    let desk = runner().await;
    sample_in(&desk, "tre").await;
    desk.git("tre", &["checkout", "--quiet", "--detach"]);
    desk.write("home/.gitconfig", "[user]\n\tuseConfigOnly = true\n");
    let before = desk.snapshot();
    let ended = desk.run_in("tre", &["dev", "up", "--ephemeral", "--", "/bin/sh", "-c", "exit 0"]).await;
    ended.code(0).says("nothing left");
    assert_eq!(left(&before, &desk), NOTHING);
}
