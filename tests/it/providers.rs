//! What every provider must do, written once: each test runs for each of them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;
use serde_json::json;

use super::faults::settled;
use super::support::desk::{Desk, changes};
use super::support::existing::{self, snapshot};
use super::support::gate::Rule;
use super::support::vcluster;

const NOTHING: [&str; 0] = [];
const DOWN: [&str; 3] = ["dev", "down", "alice"];
const LIST: [&str; 4] = ["dev", "list", "-o", "json"];

/// One provider, on a desk that has what it needs.
struct Row {
    name: &'static str,
    /// Flags of `up` besides the environment's name and what to deploy.
    flags: &'static [&'static str],
    /// Whether its clusters can be stopped and started again.
    pauses: bool,
    desk: fn() -> futures::future::BoxFuture<'static, Desk>,
    /// Puts something there that is not ours, where the cluster would be; what it is called in the refusal.
    foreign: fn(&Desk) -> &'static str,
}

const ROWS: [Row; 3] = [
    Row {
        name: "kind",
        flags: &[],
        pauses: true,
        desk: || Box::pin(Desk::new()),
        foreign: |desk| {
            desk.docker.add_node("k8tre-alice", "control-plane", None, "running", false);
            "k8tre-alice"
        },
    },
    Row {
        name: "existing",
        flags: &["--provider", "existing", "--context", existing::LAB, "--yes"],
        pauses: false,
        desk: || Box::pin(existing::desk()),
        foreign: |desk| {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}});
            desk.clusters.plant(existing::LAB, "namespaces", &namespace);
            "Namespace argocd"
        },
    },
    Row {
        name: "vcluster",
        flags: &vcluster::FLAGS,
        pauses: true,
        desk: || Box::pin(vcluster::desk()),
        foreign: |desk| {
            vcluster::take_namespace(desk, None);
            "namespace k8tre-alice"
        },
    },
];

impl Row {
    fn up(&self) -> Vec<&'static str> {
        ["dev", "up", "alice", "-v", "--sample"].into_iter().chain(self.flags.iter().copied()).collect()
    }
}

async fn listed(desk: &Desk) -> serde_json::Value {
    desk.run(&LIST).await.code(0).json()["environments"][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_comes_stops_starts_and_goes_without_a_trace() {
    for row in &ROWS {
        let desk = (row.desk)().await;
        let before = snapshot(&desk);
        desk.run(&row.up()).await.code(0).says("alice is healthy");
        let found = listed(&desk).await;
        assert_eq!((&found["provider"], &found["state"]), (&row.name.into(), &"running".into()));
        let status = desk.run(&["dev", "status", "alice", "-o", "json"]).await.code(0).json();
        assert_eq!(status["cluster"]["provider"], row.name);

        let kubeconfig = desk.path("data/environments/alice/kubeconfig");
        assert_eq!(fs::metadata(&kubeconfig).unwrap().permissions().mode() & 0o777, 0o600, "{}", row.name);
        fs::remove_file(&kubeconfig).unwrap();
        desk.run(&row.up()).await.code(0).says("alice is healthy");
        assert!(kubeconfig.exists(), "{}: a lost kubeconfig is written again", row.name);

        if row.pauses {
            desk.run(&["dev", "pause", "alice"]).await.code(0);
            assert_eq!(listed(&desk).await["state"], "paused");
            desk.run(&["dev", "resume", "alice"]).await.code(0).says("alice is healthy");
        } else {
            desk.run(&["dev", "pause", "alice"]).await.code(2).says("cannot be paused").says("hint: ");
            assert_eq!(listed(&desk).await["state"], "running");
        }

        desk.run(&DOWN).await.code(0).says("nothing left");
        assert_eq!(changes(&before, &snapshot(&desk)), NOTHING, "{}", row.name);
        desk.run(&DOWN).await.code(4);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_ours_is_refused_and_never_touched() {
    for row in &ROWS {
        let desk = (row.desk)().await;
        let called = (row.foreign)(&desk);
        let before = snapshot(&desk);
        desk.run(&row.up()).await.code(5).says(called).says("hint: ");
        assert_eq!(changes(&before, &snapshot(&desk)), NOTHING, "{}", row.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_creation_that_is_cut_short_is_mended_or_cleared_away() {
    for row in &ROWS {
        for mended in [true, false] {
            let desk = (row.desk)().await;
            let before = snapshot(&desk);
            let running = desk.start(&row.up());
            assert!(running.says(|line| line.starts_with("… cluster ")).await);
            desk.gate.set(Rule::HoldAfter);
            tokio::select! {
                () = desk.gate.wait_until_reached() => {}
                _ = running.says(|line| !line.starts_with('…') && line.contains(" cluster ")) => {}
            }
            running.signal(Signal::KILL);
            assert_eq!(running.ended().await.code, None, "{}", row.name);
            desk.gate.set(Rule::Open);
            settled(&desk).await;
            if mended {
                desk.run(&row.up()).await.code(0).says("alice is healthy");
            }
            desk.run(&DOWN).await.code(0);
            assert_eq!(changes(&before, &snapshot(&desk)), NOTHING, "{}, mended: {mended}", row.name);
        }
    }
}
