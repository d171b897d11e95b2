//! What a sync did, as people and programs read it.

use owo_colors::Style;
use serde::Serialize;

use crate::causes::Cause;
use crate::commands::App;
use crate::error::{Error, Result};
use crate::names::EnvName;
use crate::report::SCHEMA;
use crate::sync::Change;
use crate::sync::live::{End, Settled};
use crate::text::one_line;

/// Files that are named; the others are counted.
const NAMED: usize = 3;

#[derive(Debug, Serialize)]
pub struct Report {
    schema: u32,
    environment: EnvName,
    at: jiff::Timestamp,
    /// Whether the cluster got something new.
    changed: bool,
    /// Whether another change came before this one was live.
    pub superseded: bool,
    commit: Option<String>,
    /// Whether the branch as it is committed is what is deployed now.
    reset: bool,
    files: Vec<String>,
    left_out: Vec<String>,
    applications: Vec<ApplicationReport>,
    /// From the start to the end, for the work tree's reading, and for the push.
    pub seconds: f64,
    read: f64,
    pub pushed: f64,
}

#[derive(Debug, Serialize)]
struct ApplicationReport {
    name: String,
    result: &'static str,
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<Cause>,
}

impl ApplicationReport {
    fn is_bad(&self) -> bool {
        matches!(self.result, "failed" | "late")
    }

    /// The root of what is wrong.
    fn why(&self) -> String {
        match &self.cause {
            Some(cause) => format!("{}  [{}]", cause.short(300), cause.code),
            None => one_line(&self.reason, 300),
        }
    }
}

impl Report {
    pub fn new(name: &EnvName) -> Report {
        Report {
            schema: SCHEMA,
            environment: name.clone(),
            at: jiff::Timestamp::now(),
            changed: false,
            superseded: false,
            commit: None,
            reset: false,
            files: Vec::new(),
            left_out: Vec::new(),
            applications: Vec::new(),
            seconds: 0.0,
            read: 0.0,
            pushed: 0.0,
        }
    }

    pub fn describe(&mut self, change: &Change) {
        self.changed = true;
        self.commit = Some(change.commit.to_string());
        self.reset = change.is_branch();
        self.files.clone_from(&change.files);
        self.left_out.clone_from(&change.left_out);
        self.read = change.took.as_secs_f64();
        let touched = change.touched.applications.iter().chain(&change.touched.gone);
        let told = |name: &String| ApplicationReport {
            name: name.clone(),
            result: "told",
            seconds: None,
            reason: String::new(),
            cause: None,
        };
        self.applications = touched.map(told).collect();
    }

    pub fn settle(&mut self, settled: Vec<Settled>) {
        let report = |one: Settled| {
            let (result, reason, cause) = match one.end {
                End::Live => ("live", String::new(), None),
                End::NoBetter(reason) => ("unchanged", reason, None),
                End::Gone => ("gone", String::new(), None),
                End::Failed(reason, cause) => ("failed", reason, cause),
                End::Late(reason, cause) => ("late", reason, cause),
            };
            ApplicationReport { name: one.name, result, seconds: Some(one.took.as_secs_f64()), reason, cause }
        };
        self.applications = settled.into_iter().map(report).collect();
    }

    pub fn is_fine(&self) -> bool {
        !self.applications.iter().any(ApplicationReport::is_bad)
    }

    pub fn show(&self, app: &App) -> Result<()> {
        if app.ui.is_json() {
            return app.ui.json(self);
        }
        let ui = &app.ui;
        if !self.changed {
            ui.data(&format!("{} nothing has changed since what is deployed", ui.tick()));
            return Ok(());
        }
        self.warn(app);
        let wide = self.applications.iter().map(|one| one.name.len()).max().unwrap_or(0);
        for one in &self.applications {
            let mark = if one.is_bad() { ui.cross() } else { ui.tick() };
            let seconds = one.seconds.map_or("      ".to_owned(), |seconds| format!("{seconds:>4.1} s"));
            let state = match (one.is_bad(), one.result) {
                (true, _) => one.why(),
                (_, "unchanged") => format!("as before: {}", one_line(&one.reason, 200)),
                (_, result) => result.to_owned(),
            };
            ui.data(&format!("{mark} {:<wide$}  {seconds}  {state}", one.name));
        }
        let files = counted(self.files.len(), "file");
        let end = match (self.reset, self.is_fine()) {
            (_, false) => "not live",
            _ if self.applications.iter().any(|one| one.result == "told") => "pushed; not waited for",
            (true, true) => "the branch as it is committed is live",
            (false, true) if self.applications.is_empty() => "pushed; no Application reads them",
            (false, true) => "live",
        };
        let mark = if self.is_fine() { ui.tick() } else { ui.cross() };
        ui.data(&format!("{mark} {files} ({}): {end}, {:.1} s", self.named(), self.seconds));
        for hint in self.applications.iter().filter_map(|one| one.cause.as_ref()?.hint.as_ref()) {
            ui.say(&format!("{} {hint}", ui.paint("hint:", Style::new().cyan().bold())));
        }
        Ok(())
    }

    /// The same in one line, for `--watch`.
    pub fn show_line(&self, app: &App) {
        if !self.changed {
            return;
        }
        if app.ui.is_json() {
            return app.ui.json_line(self);
        }
        self.warn(app);
        let ui = &app.ui;
        let names: Vec<&str> = self.applications.iter().map(|one| one.name.as_str()).collect();
        let names = if names.is_empty() { "no Application".to_owned() } else { shortened(&names) };
        let (mark, end) = match (self.superseded, self.is_fine()) {
            (true, _) => (ui.paint("…", Style::new().dimmed()), ": another change came before it was live".to_owned()),
            (_, true) => (ui.tick(), String::new()),
            (_, false) => {
                let bad = self.applications.iter().filter(|one| one.is_bad());
                (ui.cross(), format!(": {}", bad.map(|one| one.why()).collect::<Vec<_>>().join("; ")))
            }
        };
        let files = format!("{} ({})", counted(self.files.len(), "file"), self.named());
        ui.data(&format!("{} {mark} {:>4.1} s  {files} -> {names}{end}", clock(), self.seconds));
    }

    fn named(&self) -> String {
        shortened(&self.files.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn warn(&self, app: &App) {
        for path in &self.left_out {
            app.ui.warn(&format!("{path} is a git repository of its own and no submodule: it is left out"));
        }
    }
}

/// A sync that could not be done, in a watch that goes on.
pub fn failed(app: &App, name: &EnvName, error: &Error) {
    match app.ui.is_json() {
        true => app.ui.json_line(&serde_json::json!({
            "schema": SCHEMA, "environment": name, "at": jiff::Timestamp::now(), "changed": false, "error": error.to_string()
        })),
        false => app.ui.error(error),
    }
}

fn clock() -> String {
    jiff::Zoned::now().strftime("%H:%M:%S").to_string()
}

fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn shortened(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(NAMED).map(|name| one_line(name, 80)).collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
