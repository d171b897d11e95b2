//! At each change that `sync`, `pause`, `resume` and `gc` make of the world, each fault. How many there are, a run without
//! faults tells, so that a new one is covered.

use super::super::expiry;
use super::*;

const EDITED: &str = "apps/workspaces/base/profiles.yaml";
const EDIT: &str = "two days";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Sync,
    Pause,
    Resume,
    /// What has expired on this machine.
    Gc,
    /// What has expired and another machine registered.
    Registrations,
}

const WORKS: [(Work, &[Repository]); 5] = [
    (Work::Sync, &[Repository::Own, Repository::Existing, Repository::Vcluster]),
    (Work::Pause, &[Repository::Sample, Repository::Vcluster]),
    (Work::Resume, &[Repository::Sample, Repository::Vcluster]),
    (Work::Gc, &[Repository::Own, Repository::Shared, Repository::Existing, Repository::Vcluster]),
    (Work::Registrations, &[Repository::Shared]),
];

#[derive(Debug, Clone)]
struct Cell {
    work: Work,
    /// Which change is struck.
    number: usize,
    fault: Fault,
    repository: Repository,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?} at change {}: {:?}", self.work, self.repository, self.number, self.fault)
    }
}

impl Work {
    fn args(self) -> &'static [&'static str] {
        match self {
            // Bounded, because what is not done is waited for.
            Work::Sync => &["dev", "sync", "alice", "--timeout", "8s"],
            Work::Pause => &["dev", "pause", "alice"],
            Work::Resume => &["dev", "resume", "alice", "--timeout", "8s"],
            Work::Gc => &["dev", "gc", "--yes"],
            Work::Registrations => &["dev", "gc", "--argocd", "team", "--yes"],
        }
    }

    /// What an end without success has to say.
    fn way_on(self) -> &'static [&'static str] {
        match self {
            Work::Sync => &["hint: ", "k8tre dev sync alice"],
            Work::Pause => &["hint: ", "k8tre dev pause alice"],
            Work::Resume => &["hint: ", "k8tre dev up alice"],
            // By its own environment's `down`.
            Work::Gc => &["k8tre dev down alice"],
            Work::Registrations => &["hint: ", "k8tre dev gc"],
        }
    }
}

/// Where the objects of an environment are, by the fakes' names.
fn cluster(repository: Repository) -> &'static str {
    if repository == Repository::Existing { existing::LAB } else { "k8tre-alice" }
}

fn edit(desk: &Desk, from: &str, to: &str) {
    let path = format!("tre/{EDITED}");
    let text = std::fs::read_to_string(desk.path(&path)).unwrap();
    assert!(text.contains(from));
    desk.write(&path, &text.replace(from, to));
}

/// Whether Argo CD is given the edit.
fn is_live(desk: &Desk, repository: Repository) -> bool {
    desk.clusters.published_file(cluster(repository), "dev/alice", EDITED).unwrap().contains(EDIT)
}

/// Brings everything to where the work begins; returns how the machine was before.
async fn prepare(work: Work, repository: Repository) -> Result<(Desk, Snapshot), String> {
    let desk = repository.on_a_desk().await;
    let before = existing::snapshot(&desk);
    let up: Vec<&str> = match work {
        Work::Gc | Work::Registrations if !repository.up().contains(&"--ttl") => {
            [&repository.up()[..], &["--ttl", "8h"]].concat()
        }
        _ => repository.up(),
    };
    expect(&desk.run(&up).await, &[0], "the up before")?;
    match work {
        Work::Sync => edit(&desk, "a day", EDIT),
        Work::Pause => {}
        Work::Resume => expect(&desk.run(Work::Pause.args()).await, &[0], "the pause before")?,
        Work::Gc => expiry::ended(&desk, "alice"),
        Work::Registrations => {
            expiry::on_secret(
                &desk,
                "alice",
                serde_json::json!({"annotations": {expiry::EXPIRES: "2026-01-01T00:00:00Z"}}),
            );
            std::fs::rename(desk.path("data/environments/alice"), desk.path("away")).unwrap();
        }
    }
    Ok((desk, before))
}

async fn fails(cell: Cell) -> Result<(), String> {
    let Cell { work, repository, fault, .. } = cell;
    let (desk, before) = prepare(work, repository).await?;
    desk.gate.set_at(cell.number, fault.rule());
    let running = desk.start(work.args());
    if let Some(signal) = fault.signal() {
        tokio::select! {
            () = desk.gate.wait_until_reached() => {}
            // It may make fewer changes this time.
            _ = running.says(|_| false) => {}
        }
        running.signal(signal);
    }
    let ended = running.ended().await;
    desk.gate.set(Rule::Open);
    desk.gate.count();
    check_end(fault, &ended, &[1, 3], work.way_on())?;
    // Who says that all is well has to be right.
    if ended.code == Some(0) {
        match work {
            Work::Gc => gone(repository, &desk, &before, &ended).await?,
            _ => done(work, repository, &desk, &ended).await?,
        }
    }
    // The same command once more completes it.
    let second = desk.run(work.args()).await;
    expect(&second, &[0], &format!("the second try, after {}{},", ended.stdout, ended.stderr))?;
    done(work, repository, &desk, &second).await?;
    end(work, repository, &desk, &before, &ended).await
}

/// Whether a success is one; what `gc` leaves is looked at as a whole, at the end.
async fn done(work: Work, repository: Repository, desk: &Desk, ended: &Ended) -> Result<(), String> {
    let fine = match work {
        Work::Sync => is_live(desk, repository),
        Work::Pause => desk.clusters.versions("k8tre-alice").is_empty(),
        Work::Resume => desk.run(&["dev", "status", "alice"]).await.code == Some(0),
        Work::Registrations => shared::remains(desk, "alice").is_empty(),
        Work::Gc => true,
    };
    if fine { Ok(()) } else { Err(format!("a success that is none:\n{}\n{}", ended.stdout, ended.stderr)) }
}

async fn end(work: Work, repository: Repository, desk: &Desk, before: &Snapshot, ended: &Ended) -> Result<(), String> {
    match work {
        Work::Gc => {}
        Work::Registrations => {
            std::fs::rename(desk.path("away"), desk.path("data/environments/alice")).unwrap();
            expect(&desk.run(&DOWN).await, &[0], "down afterwards")?;
        }
        Work::Sync | Work::Pause | Work::Resume => expect(&desk.run(&DOWN).await, &[0], "down afterwards")?,
    }
    if work == Work::Sync {
        edit(desk, EDIT, "a day");
    }
    gone(repository, desk, before, ended).await
}

#[tokio::test(flavor = "multi_thread")]
// Open where a change was only said to be made: a second `sync` takes the git server's word for it, `down` forgets what it
// was told is gone, and `gc` takes a registration without its Secret for one that sleeps.
#[ignore = "five minutes, and five kinds of cells fail for these reasons"]
async fn whatever_happens_during_sync_pause_resume_and_gc_the_next_one_completes_it() {
    let mut cells = Vec::new();
    for (work, repositories) in WORKS {
        for (place, repository) in repositories.iter().copied().enumerate() {
            let (desk, _) = prepare(work, repository).await.unwrap();
            desk.gate.count();
            desk.run(work.args()).await.code(0);
            let changes = desk.gate.counted();
            assert!(changes > 0, "{work:?} of {repository:?} changes nothing");
            for number in 1..=changes {
                for (column, fault) in FAULTS.into_iter().enumerate() {
                    // Where several kinds of environments are changed alike, they share the faults.
                    if (number + column) % repositories.len() == place {
                        cells.push(Cell { work, number, fault, repository });
                    }
                }
            }
        }
    }
    assert!(cells.len() > 200, "{}", cells.len());
    run(cells, fails).await;
}
