//! A gate in front of the fakes: a test can make the next request wait, fail, or be done without an
//! answer, whichever fake it arrives at.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    Open,
    /// Nothing is answered.
    HoldAll,
    /// Whatever changes something is done, and its answer waits.
    HoldAfter,
    /// The next change is refused.
    Fail,
    /// The next change is done, and its answer lost.
    Lose,
    /// The next change is said to be done, and is not.
    Lie,
}

impl Rule {
    fn word(self) -> &'static str {
        match self {
            Rule::Open => "open",
            Rule::HoldAll => "hold-all",
            Rule::HoldAfter => "hold-after",
            Rule::Fail => "fail",
            Rule::Lose => "lose",
            Rule::Lie => "lie",
        }
    }
}

/// What a fake is to do with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    Go,
    Drop,
    Fail,
    GoThenDrop,
    GoThenHold,
    Lie,
}

/// The changes that were asked for, and the rule that one of them is to meet.
#[derive(Default)]
struct Changes {
    met: usize,
    armed: Option<(usize, Rule)>,
}

#[derive(Clone)]
pub struct Gate {
    rule: Arc<watch::Sender<Rule>>,
    reached: Arc<watch::Sender<bool>>,
    changes: Arc<Mutex<Changes>>,
    /// Where the fake kind, being a shell script, reads the rule and says that it met it.
    folder: Option<PathBuf>,
}

impl Gate {
    pub fn open_always() -> Gate {
        Gate {
            rule: Arc::new(watch::channel(Rule::Open).0),
            reached: Arc::new(watch::channel(false).0),
            changes: Arc::default(),
            folder: None,
        }
    }

    pub fn with_folder(&self, folder: &Path) -> Gate {
        Gate { folder: Some(folder.to_owned()), ..self.clone() }
    }

    pub fn set(&self, rule: Rule) {
        if let Some(folder) = &self.folder {
            std::fs::remove_file(folder.join("held")).ok();
            // As a whole: the script must never read half a word.
            std::fs::write(folder.join("gate.new"), rule.word()).unwrap();
            std::fs::rename(folder.join("gate.new"), folder.join("gate")).unwrap();
        }
        self.reached.send_replace(false);
        self.rule.send_replace(rule);
    }

    /// Counts changes from now on.
    pub fn count(&self) {
        *self.changes.lock().unwrap() = Changes::default();
    }

    /// How many there were since.
    pub fn counted(&self) -> usize {
        self.changes.lock().unwrap().met
    }

    /// The rule is set when the change of this number comes, counted from now on.
    pub fn set_at(&self, number: usize, rule: Rule) {
        *self.changes.lock().unwrap() = Changes { met: 0, armed: Some((number, rule)) };
    }

    fn meet(&self) {
        let mut changes = self.changes.lock().unwrap();
        changes.met += 1;
        if let Some((number, rule)) = changes.armed
            && changes.met == number
        {
            changes.armed = None;
            self.set(rule);
        }
    }

    /// Whether a request has met the rule.
    pub fn reached(&self) -> bool {
        *self.reached.borrow() || self.folder.as_ref().is_some_and(|folder| folder.join("held").exists())
    }

    pub async fn wait_until_reached(&self) {
        while !self.reached() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn wait_until_open(&self) {
        let mut rule = self.rule.subscribe();
        rule.wait_for(|rule| *rule == Rule::Open).await.ok();
    }

    pub async fn enter(&self, effect: bool) -> Pass {
        if effect {
            self.meet();
        }
        let rule = *self.rule.borrow();
        if rule == Rule::Open || (rule != Rule::HoldAll && !effect) {
            return Pass::Go;
        }
        let first = !self.reached.send_replace(true);
        match rule {
            Rule::HoldAll => {
                self.wait_until_open().await;
                Pass::Drop
            }
            Rule::HoldAfter => Pass::GoThenHold,
            Rule::Fail if first => Pass::Fail,
            Rule::Lose if first => Pass::GoThenDrop,
            Rule::Lie if first => Pass::Lie,
            _ => Pass::Go,
        }
    }
}
