//! `k8tre dev preview`: which Applications the ApplicationSets would make here, and why not the
//! others. Offline, and before anything exists.

mod against;
mod render;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cli::PreviewArgs;
use crate::commands::{App, up};
use crate::error::Result;
use crate::gitops::finding::Severity;
use crate::gitops::predict::Prediction;
use crate::gitops::preset::Preset;
use crate::gitops::scope::Misfit;
use crate::overlay::EnvironmentOverlay;
use crate::report::{SCHEMA, table};
use crate::sample;

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    environment: &'a str,
    labels: &'a BTreeMap<String, String>,
    #[serde(flatten)]
    prediction: &'a Prediction,
    #[serde(skip_serializing_if = "Option::is_none")]
    preset: Option<&'a Preset>,
    /// What does not fit into the only namespaces that Argo CD may manage.
    #[serde(skip_serializing_if = "<[Misfit]>::is_empty")]
    misfits: &'a [Misfit],
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<against::Comparison>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rendered: Option<Vec<render::Rendered>>,
}

pub async fn run(app: &App, args: &PreviewArgs) -> Result<u8> {
    let (name, mut spec) = up::settle(app, &args.up).await?;
    // The sample need not be there yet to be previewed.
    let scratch = tempfile::tempdir()?;
    if spec.sample && !sample::is_sample(&spec.repo).await? {
        spec.repo = scratch.path().join("sample-tre");
        sample::write_sample(&spec.repo).await?;
    }
    let overlay = EnvironmentOverlay::of(&spec, name.as_str(), None, None)?;
    let against = match &args.against {
        Some(context) => Some(against::compare(context, &overlay.prediction, &name).await?),
        None => None,
    };
    let rendered = match args.render {
        true => Some(render::render(&spec, &overlay).await?),
        false => None,
    };
    let report = Report {
        schema: SCHEMA,
        environment: name.as_str(),
        labels: &overlay.labels,
        prediction: &overlay.prediction,
        preset: overlay.preset.as_ref(),
        misfits: &overlay.misfits,
        against,
        rendered,
    };
    match app.ui.is_json() {
        true => app.ui.json(&report)?,
        false => show(app, &report),
    }
    let wrong = overlay.prediction.findings.iter().any(|finding| finding.severity == Severity::Error);
    Ok(u8::from(wrong || !overlay.misfits.is_empty()))
}

fn show(app: &App, report: &Report) {
    let ui = &app.ui;
    let labels: Vec<String> = report.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    ui.say(&format!("cluster labels: {}", labels.join(" ")));
    ui.say("");
    let rows = report.prediction.applications.iter().map(|app| {
        vec![
            app.name.to_string(),
            app.path.to_string(),
            app.namespace.to_string(),
            app.plugin.as_deref().unwrap_or("-").to_owned(),
        ]
    });
    ui.data(&table(&["APPLICATION", "PATH", "NAMESPACE", "PLUGIN"], rows));
    if !report.prediction.excluded.is_empty() {
        ui.data("");
        let rows = report.prediction.excluded.iter().map(|set| vec![set.application_set.clone(), set.reason.clone()]);
        ui.data(&table(&["NOT HERE", "BECAUSE"], rows));
    }
    if let Some(preset) = report.preset {
        ui.data("");
        ui.data(&format!("preset {}, recognised by its layout and plugin:", preset.name));
        for explanation in &preset.explanations {
            ui.data(&format!("  {}: {} (change it: {})", explanation.choice, explanation.reason, explanation.setting));
        }
        for skip in preset.skips.iter().filter(|skip| report.labels.contains_key(&format!("skip-{}", skip.app))) {
            ui.data(&format!("  without {}: {} (change it: --with {})", skip.app, skip.reason, skip.app));
        }
    }
    for finding in &report.prediction.findings {
        let place = if finding.line > 0 { format!("{}:{}", finding.file, finding.line) } else { finding.file.clone() };
        let fix = if finding.fix.is_empty() { String::new() } else { format!("; {}", finding.fix) };
        ui.warn(&format!("{place}: {}{fix}", finding.message));
    }
    for misfit in report.misfits {
        ui.warn(&format!("{}: {}, which Argo CD may not manage (--namespaced)", misfit.application, misfit.why));
    }
    if let Some(against) = &report.against {
        ui.data("");
        against.show(ui);
    }
    for rendered in report.rendered.iter().flatten() {
        ui.data("");
        ui.data(&rendered.text());
    }
}
