//! `k8tre lint`: what is wrong in a TRE repository, without a cluster.

use std::path::PathBuf;

use crate::cli::LintArgs;
use crate::commands::App;
use crate::error::{Result, ResultExt};
use crate::gitops::finding::{Finding, Severity};
use crate::gitops::lint::lint;
use crate::gitops::repository::Repository;
use crate::gitops::tree::FolderTree;
use crate::ports::environment;
use crate::ports::git::Checkout;
use crate::report::SCHEMA;

pub fn run(app: &App, args: &LintArgs) -> Result<u8> {
    let folder = folder(args)?;
    let tree = FolderTree::open(&folder)?;
    let findings = lint(&Repository::read(&tree)?, &tree);
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    if app.ui.is_json() {
        app.ui.json(&serde_json::json!({"schema": SCHEMA, "findings": findings}))?;
    } else {
        let annotate = environment::var("GITHUB_ACTIONS").as_deref() == Some("true");
        for finding in &findings {
            app.ui.data(&if annotate { annotation(finding) } else { text(finding) });
        }
        app.ui.say(&format!("{errors} errors, {warnings} warnings, {} notes", count(Severity::Note)));
    }
    Ok(u8::from(errors > 0 || (args.strict && warnings > 0)))
}

/// The folder given, else the top of the repository around the current one.
fn folder(args: &LintArgs) -> Result<PathBuf> {
    if let Some(path) = &args.path {
        return Ok(path.clone());
    }
    let here = std::env::current_dir().context("cannot tell the current folder")?;
    Ok(Checkout::open(&here).hint("name the folder: k8tre lint PATH")?.root().to_owned())
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn text(finding: &Finding) -> String {
    let place = if finding.line > 0 { format!("{}:{}", finding.file, finding.line) } else { finding.file.clone() };
    let fix = if finding.fix.is_empty() { String::new() } else { format!("\n  fix: {}", finding.fix) };
    format!("{place}: {}: {} [{}]{fix}", word(finding.severity), finding.message, finding.code)
}

/// A workflow command that GitHub shows beside the line. Its text has rules of its own for escaping.
fn annotation(finding: &Finding) -> String {
    let escaped = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| escaped(text).replace(':', "%3A").replace(',', "%2C");
    let word = if finding.severity == Severity::Note { "notice" } else { word(finding.severity) };
    format!(
        "::{word} file={},line={},title={}::{}",
        property(&finding.file),
        finding.line.max(1),
        property(finding.code),
        escaped(&format!("{}\nfix: {}", finding.message, finding.fix))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_escaped_as_github_wants_it() {
        let finding = Finding::note("a-code", "a,b.yaml", 0).message("50%\nof it").fix("mend");
        assert_eq!(annotation(&finding), "::notice file=a%2Cb.yaml,line=1,title=a-code::50%25%0Aof it%0Afix: mend");
    }
}
