//! The engine against steps in memory that fail, hang or are interrupted at every place.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use k8tre::engine::{Engine, Ledger, Outcome, State, Step, StepId, Steps};
use k8tre::error::{Error, Kind, Result};
use tokio_util::sync::CancellationToken;

/// What exists, and what was done to it in which order.
#[derive(Default)]
struct World {
    there: Mutex<BTreeSet<StepId>>,
    log: Mutex<Vec<String>>,
}

impl World {
    fn log(&self, text: String) {
        self.log.lock().unwrap().push(text);
    }

    fn position(&self, text: &str) -> usize {
        self.log.lock().unwrap().iter().position(|line| line == text).unwrap_or_else(|| panic!("{text} never happened"))
    }
}

#[derive(Default)]
struct Owned(Mutex<BTreeSet<StepId>>);

impl Ledger for Owned {
    fn intend(&self, id: StepId) -> Result<()> {
        self.0.lock().unwrap().insert(id);
        Ok(())
    }
    fn done(&self, _: StepId) -> Result<()> {
        Ok(())
    }
    fn forget(&self, id: StepId) -> Result<()> {
        self.0.lock().unwrap().remove(id);
        Ok(())
    }
    fn owns(&self, id: StepId) -> bool {
        self.0.lock().unwrap().contains(id)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// Fails before it made anything.
    Early,
    /// Made it, then fails: the answer was lost.
    Late,
    Hang,
}

struct Fake {
    id: StepId,
    needs: Vec<StepId>,
    inside: Option<StepId>,
    fault: Fault,
    undo_fails: bool,
    foreign: bool,
}

#[async_trait]
impl Step<World> for Fake {
    fn id(&self) -> StepId {
        self.id
    }
    fn needs(&self) -> &[StepId] {
        &self.needs
    }
    fn inside(&self) -> Option<StepId> {
        self.inside
    }
    fn describe(&self) -> String {
        format!("make {}", self.id)
    }
    fn limit(&self) -> Duration {
        Duration::from_millis(100)
    }
    async fn observe(&self, world: &World) -> Result<State> {
        let there = world.there.lock().unwrap().contains(self.id);
        Ok(match (there, self.foreign) {
            (_, true) => State::Foreign,
            (true, _) => State::Ready,
            (false, _) => State::Absent,
        })
    }
    async fn apply(&self, world: &World) -> Result<()> {
        world.log(format!("apply {}", self.id));
        if self.fault == Fault::Early {
            return Err(Error::failed(format!("{} failed", self.id)));
        }
        tokio::task::yield_now().await;
        world.there.lock().unwrap().insert(self.id);
        match self.fault {
            Fault::Late => return Err(Error::failed(format!("{} failed", self.id))),
            Fault::Hang => std::future::pending().await,
            _ => {}
        }
        world.log(format!("applied {}", self.id));
        Ok(())
    }
    async fn undo(&self, world: &World) -> Result<()> {
        world.log(format!("undo {}", self.id));
        if self.undo_fails {
            return Err(Error::failed("cannot"));
        }
        world.there.lock().unwrap().remove(self.id);
        Ok(())
    }
}

const IDS: [StepId; 5] = ["a", "b", "c", "d", "e"];

/// a, then b and c beside each other, then d, and e on its own.
fn fakes() -> Vec<Fake> {
    let needs: [&[StepId]; 5] = [&[], &["a"], &["a"], &["b", "c"], &[]];
    IDS.iter()
        .zip(needs)
        .map(|(id, needs)| Fake {
            id,
            needs: needs.to_vec(),
            inside: None,
            fault: Fault::None,
            undo_fails: false,
            foreign: false,
        })
        .collect()
}

fn steps(fakes: Vec<Fake>) -> Steps<World> {
    fakes.into_iter().map(|fake| Box::new(fake) as Box<dyn Step<World>>).collect()
}

fn engine<'a>(steps: &'a Steps<World>, ledger: &'a Owned) -> Engine<'a, World> {
    Engine { steps, ledger, events: &(), cancel: CancellationToken::new() }
}

#[tokio::test]
async fn steps_wait_for_their_needs_and_independent_ones_overlap() {
    let (world, ledger, steps) = (World::default(), Owned::default(), steps(fakes()));
    let walk = engine(&steps, &ledger).up(&world).await.unwrap();
    assert_eq!(walk.steps.len(), 5);
    assert!(walk.changed());
    assert!(world.position("applied a") < world.position("apply b"));
    assert!(world.position("applied b") < world.position("apply d"));
    assert!(world.position("applied c") < world.position("apply d"));
    assert!(world.position("apply c") < world.position("applied b"), "b and c run at the same time");
    assert!(world.position("apply e") < world.position("applied a"), "e waits for nobody");
}

#[tokio::test]
async fn a_second_up_does_nothing() {
    let (world, ledger, steps) = (World::default(), Owned::default(), steps(fakes()));
    engine(&steps, &ledger).up(&world).await.unwrap();
    world.log.lock().unwrap().clear();
    let walk = engine(&steps, &ledger).up(&world).await.unwrap();
    assert!(!walk.changed());
    assert!(walk.steps.iter().all(|done| done.outcome == Outcome::Ready));
    assert!(world.log.lock().unwrap().is_empty());
}

#[tokio::test]
async fn whatever_fails_wherever_down_leaves_nothing_and_up_converges() {
    for fault in [Fault::Early, Fault::Late, Fault::Hang] {
        for failing in 0..IDS.len() {
            for then_down in [true, false] {
                let (world, ledger) = (World::default(), Owned::default());
                let mut broken = fakes();
                broken[failing].fault = fault;
                let broken = steps(broken);
                let error = engine(&broken, &ledger).up(&world).await.unwrap_err();
                let said = error.to_string();
                assert!(said.contains("failed") || said.contains("gave up after"), "{said}");

                let mended = steps(fakes());
                if then_down {
                    assert!(engine(&mended, &ledger).down(&world).await.unwrap().is_empty());
                    assert!(world.there.lock().unwrap().is_empty(), "{fault:?} at {failing} leaves something");
                    assert!(ledger.0.lock().unwrap().is_empty());
                } else {
                    engine(&mended, &ledger).up(&world).await.unwrap();
                    assert_eq!(world.there.lock().unwrap().len(), IDS.len());
                }
            }
        }
    }
}

#[tokio::test]
async fn an_interruption_at_any_step_is_mended_by_down() {
    for hanging in 0..IDS.len() {
        let (world, ledger) = (World::default(), Owned::default());
        let mut broken = fakes();
        broken[hanging].fault = Fault::Hang;
        let broken = steps(broken);
        let cancel = CancellationToken::new();
        let running = Engine { steps: &broken, ledger: &ledger, events: &(), cancel: cancel.clone() };
        let (result, ()) = tokio::join!(running.up(&world), async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            cancel.cancel();
        });
        assert_eq!(result.unwrap_err().kind(), Kind::Interrupted);
        let mended = steps(fakes());
        engine(&mended, &ledger).down(&world).await.unwrap();
        assert!(world.there.lock().unwrap().is_empty(), "an interruption at {hanging} leaves something");
    }
}

#[tokio::test]
async fn down_goes_in_reverse_past_failures_and_keeps_what_it_could_not_remove() {
    let (world, ledger) = (World::default(), Owned::default());
    let mut stubborn = fakes();
    stubborn[1].undo_fails = true;
    let stubborn = steps(stubborn);
    engine(&stubborn, &ledger).up(&world).await.unwrap();
    let failures = engine(&stubborn, &ledger).down(&world).await.unwrap();
    assert_eq!(failures.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ["b"]);
    assert!(world.position("undo d") < world.position("undo b"));
    assert!(world.position("undo b") < world.position("undo a"));
    assert_eq!(*ledger.0.lock().unwrap(), BTreeSet::from(["b"]), "only what is left stays recorded");
}

#[tokio::test]
async fn what_was_there_before_us_is_used_and_stays() {
    let (world, ledger) = (World::default(), Owned::default());
    let mut attached = fakes();
    attached[0].foreign = true;
    let attached = steps(attached);
    let walk = engine(&attached, &ledger).up(&world).await.unwrap();
    assert!(walk.steps.iter().any(|done| done.id == "a" && done.outcome == Outcome::Foreign));
    engine(&attached, &ledger).down(&world).await.unwrap();
    let log = world.log.lock().unwrap();
    assert!(!log.iter().any(|line| line.ends_with(" a")), "{log:?}");
}

#[tokio::test]
async fn what_lives_in_a_removed_step_goes_with_it() {
    let (world, ledger) = (World::default(), Owned::default());
    let mut nested = fakes();
    nested[1].inside = Some("a");
    nested[3].inside = Some("a");
    let nested = steps(nested);
    engine(&nested, &ledger).up(&world).await.unwrap();
    engine(&nested, &ledger).down(&world).await.unwrap();
    let log = world.log.lock().unwrap().clone();
    assert!(log.contains(&"undo a".to_owned()) && log.contains(&"undo c".to_owned()));
    assert!(!log.contains(&"undo b".to_owned()) && !log.contains(&"undo d".to_owned()));
    assert!(ledger.0.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_plan_whose_needs_cannot_be_met_is_an_error_not_a_wait() {
    let mut circular = fakes();
    circular[0].needs = vec!["d"];
    let circular = steps(circular);
    let error = engine(&circular, &Owned::default()).down(&World::default()).await.unwrap_err();
    assert!(error.to_string().contains("needs"), "{error}");
}
