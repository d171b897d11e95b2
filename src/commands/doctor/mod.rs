//! `k8tre doctor`: the preflight of `up` on its own, what can be mended, and what there is.

mod look;
mod show;

use serde::Serialize;

use crate::cli::DoctorArgs;
use crate::commands::App;
use crate::error::{Kind, Result};
use crate::preflight::{self, Fact, Finding, Severity};
use crate::report::SCHEMA;

#[derive(Serialize)]
struct Report {
    schema: u32,
    facts: Vec<Fact>,
    findings: Vec<Finding>,
    /// What `--fix` did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fixed: Vec<Fixed>,
}

#[derive(Serialize)]
struct Fixed {
    code: &'static str,
    /// What was done, or would have been.
    did: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub async fn run(app: &App, args: &DoctorArgs) -> Result<u8> {
    let (mut around, mut findings) = look::all(app, args).await;
    let mut fixed = Vec::new();
    if args.fix {
        fixed = fix(app, args, &around, &findings).await?;
        if fixed.iter().any(|one| one.error.is_none()) {
            (around, findings) = look::all(app, args).await;
        }
    }
    let blocked = findings.iter().any(|finding| finding.severity == Severity::Blocker);
    let report = Report { schema: SCHEMA, facts: preflight::facts(&around).await, findings, fixed };
    match app.ui.is_json() {
        true => app.ui.json(&report)?,
        false => show::show(app, &report, args.fix),
    }
    Ok(if blocked { Kind::Preflight.exit_code() } else { 0 })
}

async fn fix(app: &App, args: &DoctorArgs, around: &preflight::Context, findings: &[Finding]) -> Result<Vec<Fixed>> {
    let mut fixed = Vec::new();
    for finding in findings {
        let Some(remedy) = &finding.remedy else { continue };
        let question = format!("{}: {}. Do it?", finding.what, remedy.describe());
        if !args.yes && !app.ui.confirm(&question, "--yes")? {
            continue;
        }
        let done = remedy.apply(&around.fetcher).await;
        let (did, error) = match done {
            Ok(did) => (did, None),
            Err(error) => (remedy.describe(), Some(error.to_string())),
        };
        fixed.push(Fixed { code: finding.code, did, error });
    }
    Ok(fixed)
}
