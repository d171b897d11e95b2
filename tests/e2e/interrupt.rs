//! `up` is ended at real points, by Ctrl-C and by force: `down` leaves nothing, `up` goes on to healthy.

use std::time::Duration;

use rustix::process::Signal;

use crate::support::{Running, Snapshot, World};

/// A stop that was asked for is quick; the rest is for a machine that is busy.
const STOP_LIMIT: Duration = Duration::from_secs(60);
const POINT_LIMIT: Duration = Duration::from_secs(400);

struct Stage {
    world: World,
    name: String,
    before: Snapshot,
}

impl Stage {
    fn new() -> Stage {
        let world = World::new();
        let name = world.name("alice");
        let before = world.snapshot(&[]);
        Stage { world, name, before }
    }

    /// `up`, running, at the moment when it says that a step does this.
    fn up_until(&self, said: &str) -> Running {
        let mut running = self.world.start_up(&self.name, &["--sample", "--verbose"]);
        running.wait_for(&format!("… {said}"), POINT_LIMIT);
        running
    }

    fn interrupted(&self, running: Running) {
        let ran = running.wait(POINT_LIMIT + STOP_LIMIT).expect(130);
        for way in ["dev up", "dev down"] {
            assert!(ran.stderr.contains(&format!("k8tre {way} {}", self.name)), "how to go on is not said: {ran}");
        }
    }

    fn killed(&self, running: Running) {
        running.signal(Signal::KILL);
        let ran = running.wait(POINT_LIMIT + STOP_LIMIT);
        assert_eq!(ran.signal, Some(9), "{ran}");
    }

    fn goes_on(&self) {
        self.world.status(&self.name).expect(3);
        let up = self.world.up_healthy(&self.name, &[]);
        self.world.assert_deployed(&self.name, &self.world.sample(), &up);
        self.world.assert_status_healthy(&self.name);
    }

    fn goes(&self, point: &str) {
        let down = self.world.k8tre(&["dev", "down", &self.name]);
        assert_eq!(down.code, Some(0), "{point}: {down}");
        self.world.assert_nothing_left(&self.before, &[]);
    }
}

#[test]
fn ctrl_c_stops_cleanly_wherever_it_comes_and_down_leaves_nothing() {
    let stage = Stage::new();

    let running = stage.world.up_until_kind_creates(&stage.name);
    running.signal_group(Signal::INT);
    stage.interrupted(running);
    stage.goes("Ctrl-C while kind creates");

    let running = stage.up_until("images");
    running.signal(Signal::TERM);
    stage.interrupted(running);
    stage.goes("SIGTERM while images are copied");

    let running = stage.up_until("argocd        waiting for");
    running.signal_group(Signal::INT);
    stage.interrupted(running);
    stage.goes("Ctrl-C while Argo CD starts");
}

#[test]
fn a_kill_while_kind_creates_is_survived_by_down_and_by_up() {
    let stage = Stage::new();
    stage.killed(stage.up_until("branch"));
    stage.goes("killed while the branch is written");

    stage.killed(stage.world.up_until_kind_creates(&stage.name));
    stage.goes("killed while kind creates");

    stage.killed(stage.world.up_until_kind_creates(&stage.name));
    stage.goes_on();
    stage.goes("killed while kind creates, then brought up");
}

#[test]
fn a_kill_while_argo_cd_works_is_survived_by_down_and_by_up() {
    let stage = Stage::new();
    stage.killed(stage.up_until("images"));
    // The record may be lost with the program: then the marks have to do.
    let journal = stage.world.data.join("environments").join(&stage.name).join("journal.json");
    std::fs::remove_file(journal).expect("a journal is kept from the start");
    stage.goes("killed while images are copied, and the journal lost");

    stage.killed(stage.up_until("applications"));
    stage.goes_on();
    stage.killed(stage.up_until("cluster"));
    stage.goes("killed while looking at what is healthy");
}
