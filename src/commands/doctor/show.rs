//! `doctor` on a screen: what there is, what was mended, what is left for a person.

use owo_colors::Style;

use super::Report;
use crate::commands::App;
use crate::preflight::{Finding, Severity};
use crate::text::wrapped;

/// Wider lines are hard to read.
const WIDEST: usize = 100;

pub fn show(app: &App, report: &Report, fixing: bool) {
    let ui = &app.ui;
    let width = ui.width().min(WIDEST);
    let topic = report.facts.iter().map(|fact| fact.topic.len()).max().unwrap_or_default();
    for fact in &report.facts {
        ui.data(&wrapped(&format!("{:<topic$}  {}", fact.topic, fact.what), width, topic + 2));
    }
    for one in &report.fixed {
        ui.data("");
        match &one.error {
            None => ui.data(&wrapped(&format!("{} mended [{}]: {}", ui.tick(), one.code, one.did), width, 2)),
            Some(error) => {
                ui.data(&wrapped(&format!("{} not mended [{}]: {}: {error}", ui.cross(), one.code, one.did), width, 2))
            }
        }
    }
    for finding in &report.findings {
        ui.data("");
        one(app, finding, width);
    }
    ui.data("");
    ui.data(&verdict(report, fixing));
}

fn one(app: &App, finding: &Finding, width: usize) {
    let (word, style) = match finding.severity {
        Severity::Blocker => ("blocker", Style::new().red().bold()),
        Severity::Warning => ("warning", Style::new().yellow().bold()),
        Severity::Info => ("info", Style::new().cyan().bold()),
    };
    let text = wrapped(&format!("{word}: {} [{}]", finding.what, finding.code), width, 2);
    let rest = text.strip_prefix(word).unwrap_or(&text);
    app.ui.data(&format!("{}{rest}", app.ui.paint_data(word, style)));
    if !finding.why.is_empty() {
        app.ui.data(&wrapped(&format!("  why: {}", finding.why), width, 7));
    }
    if !finding.fix.is_empty() {
        // Whole, however long it is: it is there to be pasted.
        app.ui.data(&format!("  fix: {}", finding.fix));
    }
}

fn verdict(report: &Report, fixing: bool) -> String {
    let count = |severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
    let (blockers, warnings) = (count(Severity::Blocker), count(Severity::Warning));
    let mendable = report.findings.iter().filter(|finding| finding.remedy.is_some()).count();
    let state = match (blockers, warnings) {
        (0, 0) => "nothing stands in the way of: k8tre dev up".to_owned(),
        (0, 1) => "1 warning; nothing stands in the way of: k8tre dev up".to_owned(),
        (0, some) => format!("{some} warnings; nothing stands in the way of: k8tre dev up"),
        (some, _) => format!("{some} of these stand in the way of: k8tre dev up"),
    };
    match (fixing, mendable) {
        (_, 0) => state,
        (false, some) => format!("{state}\n{some} can be mended by: k8tre doctor --fix"),
        (true, some) => format!("{state}\n{some} were left as they are"),
    }
}
