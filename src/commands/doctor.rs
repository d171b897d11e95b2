//! `k8tre doctor`: the preflight of `up`, on its own.

use crate::cli::DoctorArgs;
use crate::commands::App;
use crate::error::{Kind, Result};
use crate::preflight::{self, Finding, Severity};
use crate::report::SCHEMA;

pub async fn run(app: &App, args: &DoctorArgs) -> Result<u8> {
    let around = preflight::Context::gather(None, args.offline).await;
    let findings = preflight::run(&around).await;
    let blocked = findings.iter().any(|finding| finding.severity == Severity::Blocker);
    if app.ui.is_json() {
        app.ui.json(&serde_json::json!({"schema": SCHEMA, "findings": findings}))?;
    } else if findings.is_empty() {
        app.ui.data("nothing stands in the way of: k8tre dev up");
    } else {
        findings.iter().for_each(|finding| show(app, finding));
    }
    Ok(if blocked { Kind::Preflight.exit_code() } else { 0 })
}

fn show(app: &App, finding: &Finding) {
    let word = match finding.severity {
        Severity::Blocker => "blocker",
        Severity::Warning => "warning",
        Severity::Info => "info",
    };
    app.ui.data(&format!("{word}: {}  [{}]", finding.what, finding.code));
    for (label, text) in [("why", &finding.why), ("fix", &finding.fix)] {
        if !text.is_empty() {
            app.ui.data(&format!("  {label}: {text}"));
        }
    }
}
