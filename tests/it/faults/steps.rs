//! At each step of `up` and of `down`, each fault; then `down`, or `up` and `down`. Steps are asked of k8tre itself, so that
//! a new one is covered.

use super::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Down,
    UpAndDown,
}

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
        for (column, fault) in FAULTS.into_iter().filter(|fault| *fault != Fault::Pretended).enumerate() {
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

async fn fails(cell: Cell) -> Result<(), String> {
    let desk = cell.repository.on_a_desk().await;
    let before = existing::snapshot(&desk);
    if cell.command == "down" {
        expect(&desk.run(&cell.up()).await, &[0], "the up before")?;
    }
    let running = desk.start(&cell.args());
    if running.says(begins(&cell.step)).await {
        strike(&cell, &desk, &running).await;
    }
    let ended = running.ended().await;
    let way_on: &[&str] = match (cell.command, cell.fault.signal()) {
        ("down", None) => &["try again: k8tre dev down alice"],
        ("down", _) => &["hint: ", "k8tre dev down alice"],
        _ => &["hint: ", "k8tre dev up alice"],
    };
    check_end(cell.fault, &ended, &[1], way_on)?;
    desk.gate.set(Rule::Open);

    if cell.then == Then::UpAndDown {
        expect(&desk.run(&cell.up()).await, &[0], "up afterwards")?;
        expect(&desk.run(&["dev", "status", "alice"]).await, &[0], "status afterwards")?;
    }
    // A `down` that had removed all leaves nothing to remove.
    let code_of_nothing = if cell.then == Then::Down && cell.command == "down" { 4 } else { 0 };
    expect(&desk.run(&DOWN).await, &[0, code_of_nothing], "down afterwards")?;
    gone(cell.repository, &desk, &before, &ended).await
}

async fn strike(cell: &Cell, desk: &Desk, running: &Running) {
    desk.gate.set(cell.fault.rule());
    if let Some(signal) = cell.fault.signal() {
        let finished = format!(" {} ", cell.step);
        tokio::select! {
            () = desk.gate.wait_until_reached() => {}
            // A step that asks nobody and changes nothing is over before it can be held.
            _ = running.says(|line| !line.starts_with('…') && line.contains(&finished)) => {}
        }
        running.signal(signal);
    }
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
    run(cells("up", &steps), fails).await;
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
    run(cells("down", &steps), fails).await;
}
