//! The fault matrices: whatever goes wrong with a command, wherever, the machine must end as it was before.
//! `steps` strikes at each step of `up` and `down`, `changes` at each change that the other commands make.

mod changes;
mod steps;

use std::fmt;
use std::time::Duration;

use futures::{StreamExt, stream};
use rustix::process::Signal;

use super::cli_repository::{REMOTE, demanding, give_remote};
use super::cli_whole::sample_in;
use super::support::desk::{self, Desk, Ended, Running};
use super::support::gate::Rule;
use super::support::{existing, shared, vcluster};

/// Cells at work at once: they wait for fakes and timers more than they compute.
const AT_ONCE: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// A signal, while the first question waits for its answer.
    Asking(Signal),
    /// A signal, when something was changed and the command waits to hear of it.
    Acting(Signal),
    /// The next change is refused.
    Refused,
    /// The next change is done, and its answer lost.
    Unanswered,
    /// The next change is said to be done, and is not.
    Pretended,
}

const FAULTS: [Fault; 9] = [
    Fault::Asking(Signal::INT),
    Fault::Acting(Signal::KILL),
    Fault::Refused,
    Fault::Asking(Signal::TERM),
    Fault::Acting(Signal::INT),
    Fault::Asking(Signal::KILL),
    Fault::Unanswered,
    Fault::Acting(Signal::TERM),
    Fault::Pretended,
];

impl Fault {
    fn rule(self) -> Rule {
        match self {
            Fault::Asking(_) => Rule::HoldAll,
            Fault::Acting(_) => Rule::HoldAfter,
            Fault::Refused => Rule::Fail,
            Fault::Unanswered => Rule::Lose,
            Fault::Pretended => Rule::Lie,
        }
    }

    fn signal(self) -> Option<Signal> {
        match self {
            Fault::Asking(signal) | Fault::Acting(signal) => Some(signal),
            _ => None,
        }
    }
}

type Snapshot = std::collections::BTreeMap<String, String>;

/// What the environment is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repository {
    Sample,
    /// The user's own, in which nothing but the branch may ever change; with secrets and prerequisites.
    Own,
    /// The user's own, published to a remote.
    Remote,
    /// The same, deployed by an Argo CD that others use too.
    Shared,
    /// The same, with a login for the repository, and held to namespaces.
    Guarded,
    /// The user's own, in a cluster that is there already.
    Existing,
    /// The same, with an Argo CD that is there and lacks settings.
    Adjusted,
    /// The same, in a vCluster.
    Vcluster,
}

const REPOSITORIES: [Repository; 8] = [
    Repository::Sample,
    Repository::Own,
    Repository::Remote,
    Repository::Shared,
    Repository::Guarded,
    Repository::Existing,
    Repository::Adjusted,
    Repository::Vcluster,
];

const DOWN: [&str; 4] = ["dev", "down", "alice", "-v"];

impl Repository {
    pub fn up(self) -> Vec<&'static str> {
        const OWN: [&str; 2] = ["--repo", "../tre"];
        const MERGED: [&str; 1] = ["--merge-kubeconfig"];
        const SHARED: [&str; 5] = [REMOTE[2], REMOTE[3], "--argocd", "team", "--yes"];
        let flags: &[&[&str]] = match self {
            Repository::Sample => &[&MERGED, &["--sample"]],
            Repository::Own => &[&MERGED, &OWN, &["--ttl", "8h"]],
            Repository::Remote => &[&MERGED, &OWN, &REMOTE],
            Repository::Shared => &[&MERGED, &OWN, &SHARED],
            Repository::Guarded => &[
                &MERGED,
                &OWN,
                &SHARED,
                &["--repo-credentials", "login", "--namespaced", "identity,metrics,portal,workspaces"],
                &["--skip", "guardrails,storage-class"],
            ],
            // Its context is in the user's kubeconfig already.
            Repository::Existing => &[&OWN, &["--provider", "existing", "--context", existing::LAB, "--yes"]],
            Repository::Adjusted => {
                &[&OWN, &["--provider", "existing", "--context", existing::LAB, "--adjust-argocd", "--yes"]]
            }
            Repository::Vcluster => &[&MERGED, &OWN, &vcluster::FLAGS],
        };
        [&["dev", "up", "alice", "-v"][..], &flags.concat()].concat()
    }

    fn is_shared(self) -> bool {
        matches!(self, Repository::Shared | Repository::Guarded)
    }

    pub async fn on_a_desk(self) -> Desk {
        let desk = match self {
            Repository::Shared => return shared::desk().await,
            Repository::Guarded => {
                let desk = shared::desk().await;
                desk.clusters.is_private();
                desk.write("work/login", "username=alice\npassword=s3cr3t-of-alice\n");
                return desk;
            }
            Repository::Vcluster => vcluster::desk().await,
            _ => Desk::new().await,
        };
        match self {
            Repository::Sample | Repository::Shared | Repository::Guarded => {}
            Repository::Vcluster => demanding(&desk).await,
            Repository::Own => demanding(&desk).await,
            Repository::Remote => {
                sample_in(&desk, "tre").await;
                give_remote(&desk);
            }
            Repository::Existing => {
                demanding(&desk).await;
                existing::add(&desk);
            }
            Repository::Adjusted => {
                sample_in(&desk, "tre").await;
                existing::add(&desk);
                existing::give_argocd(&desk);
            }
        }
        desk
    }
}

/// A signal ends k8tre with the documented code and the way on; a fault ends it with an error that has it, unless it could
/// be mended at once.
fn check_end(fault: Fault, ended: &Ended, codes: &[i32], way_on: &[&str]) -> Result<(), String> {
    let has_way_on = way_on.iter().all(|words| ended.stderr.contains(words));
    let fine = match (fault.signal(), ended.code) {
        (_, Some(0)) => true,
        (Some(Signal::KILL), None) => true,
        (Some(_), Some(130)) => has_way_on,
        (None, Some(code)) => codes.contains(&code) && has_way_on,
        _ => false,
    };
    if fine { Ok(()) } else { Err(format!("ended with {:?}:\n{}\n{}", ended.code, ended.stdout, ended.stderr)) }
}

fn expect(ended: &Ended, codes: &[i32], what: &str) -> Result<(), String> {
    match ended.code {
        Some(code) if codes.contains(&code) => Ok(()),
        code => Err(format!("{what} ended with {code:?}:\n{}", ended.stderr)),
    }
}

/// Children of a k8tre that was killed end by themselves once nobody holds them back.
pub async fn settled(desk: &Desk) {
    for _ in 0..100 {
        if desk.processes().is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Whether nothing is left of the environment, on the machine and on the shared side.
async fn gone(repository: Repository, desk: &Desk, before: &Snapshot, ended: &Ended) -> Result<(), String> {
    settled(desk).await;
    if repository.is_shared()
        && let left = shared::remains(desk, "alice")
        && !left.is_empty()
    {
        return Err(format!("left on the shared side: {}\n{}", left.join(", "), ended.stderr));
    }
    match desk::changes(before, &existing::snapshot(desk)) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("left: {}\n{}", left.join(", "), ended.stderr)),
    }
}

/// Tries every cell, and says which failed and how.
pub async fn run<C, F>(cells: Vec<C>, attempt: fn(C) -> F)
where
    C: Clone + fmt::Display + Send + 'static,
    F: Future<Output = Result<(), String>> + Send + 'static,
{
    assert!(!cells.is_empty());
    let all = cells.len();
    let attempts = stream::iter(cells).map(|cell| async move {
        let result = tokio::spawn(attempt(cell.clone())).await.unwrap_or_else(|panic| Err(panic.to_string()));
        result.err().map(|why| format!("{cell}: {why}"))
    });
    let failed: Vec<String> =
        attempts.buffer_unordered(AT_ONCE).filter_map(|failure| async { failure }).collect().await;
    assert!(failed.is_empty(), "{} of {all} cells:\n\n{}", failed.len(), failed.join("\n"));
}
