//! Causes for the Applications that are not healthy, looked for in the cluster.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use crate::argocd::application::Verdict;
use crate::argocd::side::Sides;
use crate::causes::{Cause, causes};
use crate::names::EnvName;
use crate::steps::applications::Judged;

/// How often the causes are looked for while waiting.
const LOOK: Duration = Duration::from_secs(4);
/// What only takes its time is not asked why before this.
const PATIENCE: Duration = Duration::from_secs(20);
/// Commands that are shown at once.
const HINTS: usize = 8;

/// Looks in the cluster for the cause of each Application that is not healthy; bounded.
pub async fn explain_all(sides: &Sides, judged: &mut [Judged]) {
    let unhealthy = |one: &&Judged| !one.verdict.is_healthy();
    let subjects: Vec<Value> = judged.iter().filter(unhealthy).map(Judged::subject).collect();
    let mut found = causes(sides, &subjects.iter().collect::<Vec<_>>()).await;
    for one in judged.iter_mut() {
        one.cause = found.remove(&one.name);
    }
}

/// The search for causes beside the wait, which must not stand still for it.
pub struct Look {
    began: Instant,
    last: Option<Instant>,
    task: Option<AbortOnDropHandle<Vec<Judged>>>,
    found: BTreeMap<String, Cause>,
}

impl Look {
    pub fn begin() -> Look {
        Look { began: Instant::now(), last: None, task: None, found: BTreeMap::new() }
    }

    /// Adds the causes that were found last, and looks again when it is time.
    pub async fn follow(&mut self, sides: &Sides, judged: &mut [Judged]) {
        if let Some(task) = self.task.take_if(|task| task.is_finished()) {
            let explained = task.await.unwrap_or_default();
            self.found = explained.into_iter().filter_map(|one| Some((one.name, one.cause?))).collect();
        }
        let patient = self.began.elapsed() < PATIENCE;
        let asked = |one: &&Judged| match one.verdict {
            Verdict::Failing(_) => true,
            Verdict::Waiting(_) => !patient,
            _ => false,
        };
        let of_interest: Vec<Judged> = judged.iter().filter(asked).cloned().collect();
        for one in judged.iter_mut().filter(|one| asked(&&**one)) {
            one.cause = self.found.get(&one.name).cloned();
        }
        let due = self.last.is_none_or(|last| last.elapsed() >= LOOK);
        if self.task.is_none() && due && !of_interest.is_empty() {
            self.last = Some(Instant::now());
            let sides = sides.clone();
            self.task = Some(AbortOnDropHandle::new(tokio::spawn(async move {
                let mut judged = of_interest;
                explain_all(&sides, &mut judged).await;
                judged
            })));
        }
    }
}

/// The commands that look closer at what is wrong, each once.
pub fn hints(causes: impl IntoIterator<Item = impl Borrow<Cause>>) -> Vec<String> {
    let mut hints: Vec<String> = Vec::new();
    for hint in causes.into_iter().filter_map(|cause| cause.borrow().hint.clone()) {
        if !hints.contains(&hint) && hints.len() < HINTS {
            hints.push(hint);
        }
    }
    hints
}

/// `kubectl` in the hints reads the user's current cluster unless told otherwise.
pub fn kubeconfig_hint(name: &EnvName) -> String {
    format!("export KUBECONFIG=\"$(k8tre dev kubeconfig {name})\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(hint: &str) -> Cause {
        Cause { code: "x", chain: vec!["app Degraded".into(), "no Secret".into()], hint: Some(hint.into()) }
    }

    #[test]
    fn a_command_that_several_causes_share_is_shown_once() {
        assert_eq!(hints([&cause("a"), &cause("b"), &cause("a")]), ["a", "b"]);
    }

    #[test]
    fn the_table_shows_the_root_and_argo_cds_words_only_without_one() {
        let verdict = Verdict::Failing("Degraded".into());
        let mut judged = Judged { name: "app".into(), namespace: "argocd".into(), verdict, actual: None, cause: None };
        assert_eq!(judged.why(80), "Degraded");
        judged.cause = Some(cause("a"));
        assert_eq!(judged.why(80), "no Secret");
    }
}
