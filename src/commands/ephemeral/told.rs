//! What a CI is told: the summary that people read, the outputs that later steps read, the document on stdout.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::markdown::{code, table, text};
use crate::audit::Audit;
use crate::commands::App;
use crate::commands::status::gather;
use crate::commands::up::Report;
use crate::error::{Error, Result, ResultExt};
use crate::names::EnvName;
use crate::ports::process::Attached;
use crate::report::SCHEMA;

/// Rows and lines beyond this are read with `k8tre dev status`.
const ROWS: usize = 200;

#[derive(Debug, Serialize)]
pub struct Failure {
    pub message: String,
    pub causes: Vec<String>,
    pub hints: Vec<String>,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Failure {
        Failure { message: error.message().into(), causes: error.causes().into(), hints: error.hints().into() }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandReport {
    pub exit_code: u8,
    pub seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<&'static str>,
}

impl CommandReport {
    pub fn new(ended: Attached, seconds: f64) -> CommandReport {
        let (exit_code, stopped) = match ended {
            Attached::Ended(code) => (code, None),
            Attached::Interrupted => (130, Some("interrupted")),
            Attached::Late => (1, Some("the environment's time was over")),
        };
        CommandReport { exit_code, seconds, stopped }
    }
}

/// Where the environment is, for the steps that come after.
#[derive(Debug, Serialize)]
pub struct Place {
    pub kubeconfig: PathBuf,
    pub context: String,
    pub server: Option<String>,
    /// Where the TRE says that it is; whether a name server knows it is not ours to say.
    pub url: String,
    pub expires: Option<jiff::Timestamp>,
}

/// The document of `-o json`.
#[derive(Serialize)]
pub struct Document<'a> {
    pub schema: u32,
    pub environment: &'a EnvName,
    pub healthy: bool,
    #[serde(flatten)]
    pub place: Option<&'a Place>,
    pub up: Option<Report<'a>>,
    pub applications: &'a [gather::ApplicationReport],
    pub command: Option<&'a CommandReport>,
    /// Whether it is gone again; null while it is meant to be there.
    pub removed: Option<bool>,
    pub left: Vec<&'a crate::audit::Leftover>,
    pub error: Option<&'a Failure>,
}

impl Document<'_> {
    pub const SCHEMA: u32 = SCHEMA;
}

/// The summary and the outputs. What cannot be written there is a warning: the environment counts more.
pub struct Told<'a> {
    pub app: &'a App,
    pub summary: Option<PathBuf>,
    pub outputs: Option<PathBuf>,
}

impl Told<'_> {
    pub fn output(&self, name: &str, value: &str) {
        // A second line would be another output.
        if let (Some(file), false) = (&self.outputs, value.chars().any(char::is_control)) {
            self.append(file, &format!("{name}={value}\n"));
        }
    }

    pub fn place(&self, place: &Place) {
        self.output("kubeconfig", &place.kubeconfig.display().to_string());
        self.output("context", &place.context);
        self.output("server", place.server.as_deref().unwrap_or_default());
        self.output("url", &place.url);
    }

    /// What came of `up`: written before anything else is begun.
    pub fn came_up(&self, headline: &str, look: Option<&gather::Report>, failure: Option<&Failure>) {
        let mark = if failure.is_some() { "❌" } else { "✅" };
        let mut out = format!("## {mark} k8tre: {}\n\n", text(headline));
        if let Some(failure) = failure {
            for line in std::iter::once(&failure.message).chain(&failure.causes).take(ROWS) {
                out.push_str(&format!("{}\n\n", text(line)));
            }
            out.extend(failure.hints.iter().map(|hint| format!("- {}\n", text(hint))));
            out.push('\n');
        }
        out.push_str(&look.map(applications).unwrap_or_default());
        self.summarise(&out);
    }

    pub fn command(&self, shown: &str, report: &CommandReport, look: Option<&gather::Report>) {
        let mark = if report.exit_code == 0 { "✅" } else { "❌" };
        let how = report.stopped.map(|why| format!(", stopped: {why}")).unwrap_or_default();
        let mut out =
            format!("{mark} {} ended with {} after {:.1} s{how}\n\n", code(shown), report.exit_code, report.seconds);
        out.push_str(&look.map(applications).unwrap_or_default());
        self.summarise(&out);
    }

    pub fn removed(&self, name: &EnvName, audit: &Result<Audit>) {
        let out = match audit {
            Ok(audit) if audit.left.is_empty() => format!("{name} is gone, and nothing of it is left.\n\n"),
            Ok(audit) => {
                let left = audit.left.iter().take(ROWS);
                let lines: String =
                    left.map(|left| format!("- {}: {}\n", text(&left.what), code(&left.remove))).collect();
                format!("❌ {name} is not gone:\n\n{lines}\n")
            }
            Err(error) => format!("❌ {name} is not gone: {}\n\n", text(&error.to_string())),
        };
        self.summarise(&out);
    }

    fn summarise(&self, markdown: &str) {
        if let Some(file) = &self.summary {
            self.append(file, markdown);
        }
    }

    fn append(&self, file: &Path, text: &str) {
        let written = OpenOptions::new().append(true).create(true).open(file);
        let written = written.and_then(|mut file| file.write_all(text.as_bytes()));
        if let Err(error) = written.with_context(|| format!("cannot write {}", file.display())) {
            self.app.ui.warn(&error.to_string());
        }
    }
}

/// The Applications with what ails them, and the commands that look closer.
fn applications(look: &gather::Report) -> String {
    let state = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    let rows = look.applications.iter().take(ROWS).map(|app| {
        let cause = app.cause.as_ref().map(|cause| format!("{} {}", text(&cause.to_string()), code(cause.code)));
        vec![
            text(&app.name),
            text(&state(&app.sync)),
            text(&state(&app.health)),
            cause.unwrap_or_else(|| text(&app.why)),
        ]
    });
    let mut out = format!("{}\n", table(&["Application", "Sync", "Health", "Cause"], rows));
    let hints = crate::steps::explain::hints(look.applications.iter().filter_map(|app| app.cause.as_ref()));
    out.extend(hints.iter().map(|hint| format!("- {}\n", code(hint))));
    out.push('\n');
    out
}
