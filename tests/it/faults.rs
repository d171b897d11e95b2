//! The fault matrix: at each step of `up` and of `down`, each fault; then `down`, or `up` and `down`.
//! The machine must end as it was before. Steps are asked of k8tre itself, so that a new one is covered.

use std::fmt;
use std::time::Duration;

use futures::{StreamExt, stream};
use rustix::process::Signal;

use super::cli_repository::{REMOTE, demanding, give_remote};
use super::cli_whole::sample_in;
use super::support::desk::{Desk, Ended, Running, changes};
use super::support::gate::Rule;
use super::support::{existing, shared, vcluster};

/// Cells at work at once: they wait for fakes and timers more than they compute.
const AT_ONCE: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// A signal, while the step's first question waits for its answer.
    Asking(Signal),
    /// A signal, when the step has changed something and waits to hear of it.
    Acting(Signal),
    /// What the step does next is refused.
    Refused,
    /// What the step does next is done, and its answer lost.
    Unanswered,
}

const FAULTS: [Fault; 8] = [
    Fault::Asking(Signal::INT),
    Fault::Acting(Signal::KILL),
    Fault::Refused,
    Fault::Asking(Signal::TERM),
    Fault::Acting(Signal::INT),
    Fault::Asking(Signal::KILL),
    Fault::Unanswered,
    Fault::Acting(Signal::TERM),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Down,
    UpAndDown,
}

/// What the environment is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repository {
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

#[derive(Debug, Clone)]
struct Cell {
    command: &'static str,
    step: String,
    fault: Fault,
    then: Then,
    repository: Repository,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {:?} at {}: {:?}, then {:?}", self.command, self.repository, self.step, self.fault, self.then)
    }
}

const DOWN: [&str; 4] = ["dev", "down", "alice", "-v"];

impl Repository {
    fn up(self) -> Vec<&'static str> {
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

    async fn on_a_desk(self) -> Desk {
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

impl Cell {
    fn up(&self) -> Vec<&'static str> {
        self.repository.up()
    }

    fn args(&self) -> Vec<&'static str> {
        if self.command == "up" { self.up() } else { DOWN.to_vec() }
    }
}

/// Each step with each fault; what follows alternates, so that every step and every fault meets both.
fn cells(command: &'static str, steps: &[(String, Vec<Repository>)]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (row, (step, repositories)) in steps.iter().enumerate() {
        for (column, fault) in FAULTS.into_iter().enumerate() {
            let then = if (row + column) % 2 == 0 { Then::Down } else { Then::UpAndDown };
            let repository = repositories[(row + column / 2) % repositories.len()];
            cells.push(Cell { command, step: step.clone(), fault, then, repository });
        }
    }
    cells
}

/// A line of `-v` that says that the step has begun.
fn begins(step: &str) -> impl Fn(&str) -> bool {
    let start = format!("… {step} ");
    move |line| line.starts_with(&start)
}

async fn fails(cell: &Cell) -> Result<(), String> {
    let desk = cell.repository.on_a_desk().await;
    let before = existing::snapshot(&desk);
    if cell.command == "down" {
        expect(&desk.run(&cell.up()).await, &[0], "the up before")?;
    }
    let running = desk.start(&cell.args());
    if running.says(begins(&cell.step)).await {
        strike(cell, &desk, &running).await;
    }
    let ended = running.ended().await;
    check_end(cell, &ended)?;
    desk.gate.set(Rule::Open);

    if cell.then == Then::UpAndDown {
        expect(&desk.run(&cell.up()).await, &[0], "up afterwards")?;
        expect(&desk.run(&["dev", "status", "alice"]).await, &[0], "status afterwards")?;
    }
    // A `down` that had removed all leaves nothing to remove.
    let gone = if cell.then == Then::Down && cell.command == "down" { 4 } else { 0 };
    expect(&desk.run(&DOWN).await, &[0, gone], "down afterwards")?;
    settled(&desk).await;
    if cell.repository.is_shared()
        && let left = shared::remains(&desk, "alice")
        && !left.is_empty()
    {
        return Err(format!("left on the shared side: {}\n{}", left.join(", "), ended.stderr));
    }
    match changes(&before, &existing::snapshot(&desk)) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("left: {}\n{}", left.join(", "), ended.stderr)),
    }
}

async fn strike(cell: &Cell, desk: &Desk, running: &Running) {
    let rule = match cell.fault {
        Fault::Asking(_) => Rule::HoldAll,
        Fault::Acting(_) => Rule::HoldAfter,
        Fault::Refused => Rule::Fail,
        Fault::Unanswered => Rule::Lose,
    };
    desk.gate.set(rule);
    if let Fault::Asking(signal) | Fault::Acting(signal) = cell.fault {
        let finished = format!(" {} ", cell.step);
        tokio::select! {
            () = desk.gate.wait_until_reached() => {}
            // A step that asks nobody and changes nothing is over before it can be held.
            _ = running.says(|line| !line.starts_with('…') && line.contains(&finished)) => {}
        }
        running.signal(signal);
    }
}

/// A signal ends k8tre with the documented code and the way on; a fault ends it with an error, unless
/// it could be mended at once.
fn check_end(cell: &Cell, ended: &Ended) -> Result<(), String> {
    let way_on = ended.stderr.contains("hint: ") && ended.stderr.contains(&format!("k8tre dev {} alice", cell.command));
    let fine = match (cell.fault, ended.code) {
        (_, Some(0)) => true,
        (Fault::Asking(Signal::KILL) | Fault::Acting(Signal::KILL), None) => true,
        (Fault::Asking(_) | Fault::Acting(_), Some(130)) => way_on,
        (Fault::Refused | Fault::Unanswered, Some(1)) if cell.command == "up" => way_on,
        (Fault::Refused | Fault::Unanswered, Some(1)) => ended.stderr.contains("try again: k8tre dev down alice"),
        _ => false,
    };
    if fine { Ok(()) } else { Err(format!("ended with {:?}:\n{}", ended.code, ended.stderr)) }
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

async fn run(cells: Vec<Cell>) {
    assert!(!cells.is_empty());
    let all = cells.len();
    let attempts = stream::iter(cells).map(|cell| async move {
        let task = tokio::spawn({
            let cell = cell.clone();
            async move { fails(&cell).await }
        });
        let result = task.await.unwrap_or_else(|panic| Err(panic.to_string()));
        result.err().map(|why| format!("{cell}: {why}"))
    });
    let failed: Vec<String> =
        attempts.buffer_unordered(AT_ONCE).filter_map(|failure| async { failure }).collect().await;
    assert!(failed.is_empty(), "{} of {all} cells:\n\n{}", failed.len(), failed.join("\n"));
}

/// The steps that a command says it begins, in its own words.
fn begun(ended: &Ended) -> Vec<String> {
    let lines = ended.stderr.lines().filter_map(|line| line.strip_prefix("… "));
    lines.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

/// Each step with the repositories that need it.
type Steps = Vec<(String, Vec<Repository>)>;

fn note(steps: &mut Steps, step: &str, repository: Repository) {
    match steps.iter_mut().find(|(known, _)| known == step) {
        Some((_, repositories)) if repositories.contains(&repository) => {}
        Some((_, repositories)) => repositories.push(repository),
        None => steps.push((step.to_owned(), vec![repository])),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_during_up_nothing_is_left_and_the_next_up_is_healthy() {
    let mut steps = Steps::new();
    for repository in REPOSITORIES {
        let desk = repository.on_a_desk().await;
        let dry: Vec<&str> = repository.up().into_iter().chain(["--dry-run", "-o", "json"]).collect();
        let plan = desk.run(&dry).await.json();
        for step in plan["steps"].as_array().unwrap() {
            note(&mut steps, step["step"].as_str().unwrap(), repository);
        }
    }
    run(cells("up", &steps)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_during_down_the_next_one_leaves_nothing() {
    let mut steps = Steps::new();
    for repository in REPOSITORIES {
        let desk = repository.on_a_desk().await;
        desk.run(&repository.up()).await.code(0);
        // The steps that live in the cluster go with it, and are never begun.
        let down = desk.run(&DOWN).await;
        down.code(0);
        begun(&down).iter().for_each(|step| note(&mut steps, step, repository));
    }
    run(cells("down", &steps)).await;
}
