//! What came of an `up`, as data and as text.

use std::path::PathBuf;

use serde::Serialize;

use super::Made;
use crate::commands::App;
use crate::engine::Outcome;
use crate::report::SCHEMA;

#[derive(Serialize)]
pub struct Report<'a> {
    schema: u32,
    environment: &'a str,
    changed: bool,
    seconds: f64,
    steps: Vec<StepReport>,
    applications: &'a [String],
    kubeconfig: PathBuf,
    branch: String,
    commit: Option<String>,
}

#[derive(Serialize)]
struct StepReport {
    id: &'static str,
    outcome: &'static str,
    began: f64,
    seconds: f64,
}

impl Made {
    pub fn report(&self) -> Report<'_> {
        let name = &self.cx.spec.name;
        Report {
            schema: SCHEMA,
            environment: name.as_str(),
            changed: self.walk.changed(),
            seconds: self.took.as_secs_f64(),
            steps: self
                .walk
                .steps
                .iter()
                .map(|done| StepReport {
                    id: done.id,
                    outcome: match done.outcome {
                        Outcome::Applied => "applied",
                        Outcome::Foreign => "foreign",
                        _ => "ready",
                    },
                    began: done.began.as_secs_f64(),
                    seconds: done.took.as_secs_f64(),
                })
                .collect(),
            applications: &self.applications,
            kubeconfig: self.cx.kubeconfig(),
            branch: name.branch(),
            commit: self.cx.facts().published,
        }
    }

    /// One line: how it is, how many Applications, how long it took.
    pub fn headline(&self) -> String {
        let health = match (self.cx.options.no_wait, self.walk.changed()) {
            (true, _) => "is on its way",
            (false, true) => "is healthy",
            (false, false) => "is healthy; nothing was to be done",
        };
        let (name, seconds) = (&self.cx.spec.name, self.took.as_secs_f64());
        format!("{name} {health}: {} Applications, {seconds:.1} s", self.applications.len())
    }

    pub fn say(&self, app: &App) {
        let spec = &self.cx.spec;
        let name = &spec.name;
        app.ui.say("");
        app.ui.say(&format!("{} {}", app.ui.tick(), self.headline()));
        app.ui.say("");
        let lines = [
            ("see it", format!("k8tre dev status {name}")),
            (
                "Argo CD's UI",
                match spec.argocd.shared() {
                    None => {
                        format!("k8tre dev open --name {name}     (user admin, password: k8tre dev password {name})")
                    }
                    Some(shared) => format!("that of {}, project {}", shared.place(), name.project()),
                },
            ),
            ("kubectl", format!("export KUBECONFIG=\"$(k8tre dev kubeconfig {name})\"")),
            ("edit", format!("commit on {} in {}, then: k8tre dev up {name}", name.branch(), spec.repo.display())),
            ("remove it", format!("k8tre dev down {name}")),
        ];
        for (what, how) in lines {
            app.ui.say(&format!("  {what:<13} {how}"));
        }
    }
}
