//! How long each part took. Kept beside the journal on this machine, and sent nowhere.

use std::time::Duration;

use serde::Serialize;

use crate::commands::App;
use crate::error::Result;
use crate::names::EnvName;
use crate::ports::dirs;
use crate::report::SCHEMA;

/// Goes with the environment.
const FILE: &str = "onboard.json";

#[derive(Debug, Default)]
pub struct Phases(Vec<(&'static str, Duration)>);

#[derive(Serialize)]
struct Kept<'a> {
    schema: u32,
    at: jiff::Timestamp,
    questions: u32,
    phases: Vec<Phase<'a>>,
}

#[derive(Serialize)]
struct Phase<'a> {
    phase: &'a str,
    seconds: f64,
}

impl Phases {
    pub fn add(&mut self, phase: &'static str, took: Duration) {
        self.0.push((phase, took));
    }

    /// A phase in which the others so far took place.
    pub fn add_rest(&mut self, phase: &'static str, took: Duration) {
        let inside: Duration = self.0.iter().map(|(_, took)| *took).sum();
        self.add(phase, took.saturating_sub(inside));
    }

    pub fn shown(&self) -> String {
        let parts = self.0.iter().map(|(phase, took)| format!("{phase} {:.1} s", took.as_secs_f64()));
        parts.collect::<Vec<_>>().join(", ")
    }

    pub fn keep(&self, app: &App, name: &EnvName, questions: u32) -> Result<()> {
        let phases = self.0.iter().map(|(phase, took)| Phase { phase, seconds: took.as_secs_f64() }).collect();
        let kept = Kept { schema: SCHEMA, at: jiff::Timestamp::now(), questions, phases };
        let text = serde_json::to_vec_pretty(&kept)?;
        dirs::write_private(&app.dirs.environment(name.as_str()).join(FILE), &text)
    }
}
