//! The prediction beside what a live Argo CD holds. Reads only.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::argocd::NAMESPACE;
use crate::error::{Result, ResultExt};
use crate::gitops::predict::Prediction;
use crate::names::EnvName;
use crate::ports::kube::Kube;
use crate::ports::kubeconfig;
use crate::steps::look::application_type;
use crate::ui::Ui;

#[derive(Debug, Serialize)]
pub struct Comparison {
    pub context: String,
    pub server: String,
    /// Not there yet.
    pub new: Vec<String>,
    /// There, in this environment's project.
    pub same: Vec<String>,
    /// There under the same name, and somebody else's: both could not exist.
    pub clashing: Vec<Clash>,
    /// In this environment's project there, and no longer predicted.
    pub gone: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct Clash {
    pub name: String,
    pub project: String,
    pub path: String,
}

pub async fn compare(context: &str, prediction: &Prediction, name: &EnvName) -> Result<Comparison> {
    let kube = Kube::open(&kubeconfig::users()?, Some(context)).await?;
    let live = kube
        .list(&application_type(), NAMESPACE, "")
        .await
        .with_context(|| format!("cannot read the Applications of the context {context}"))?;
    let text = |application: &Value, pointer: &str| {
        application.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let mut live: BTreeMap<String, Value> =
        live.into_iter().map(|application| (text(&application, "/metadata/name"), application)).collect();
    let mut comparison = Comparison {
        context: context.to_owned(),
        server: kube.server().to_owned(),
        new: Vec::new(),
        same: Vec::new(),
        clashing: Vec::new(),
        gone: Vec::new(),
    };
    let project = name.project();
    for predicted in &prediction.applications {
        match live.remove(&*predicted.name) {
            None => comparison.new.push(predicted.name.to_string()),
            Some(application) if text(&application, "/spec/project") == project => {
                comparison.same.push(predicted.name.to_string());
            }
            Some(application) => comparison.clashing.push(Clash {
                name: predicted.name.to_string(),
                project: text(&application, "/spec/project"),
                path: text(&application, "/spec/source/path"),
            }),
        }
    }
    comparison.gone =
        live.iter().filter(|(_, app)| text(app, "/spec/project") == project).map(|(name, _)| name.clone()).collect();
    Ok(comparison)
}

impl Comparison {
    pub fn show(&self, ui: &Ui) {
        ui.data(&format!("beside Argo CD in {} ({}):", self.context, self.server));
        let lists = [("new", &self.new), ("there already", &self.same), ("would go", &self.gone)];
        for (word, names) in lists.into_iter().filter(|(_, names)| !names.is_empty()) {
            ui.data(&format!("  {word}: {}", names.join(", ")));
        }
        for clash in &self.clashing {
            ui.data(&format!("  clash: {} is there in the project {}, from {}", clash.name, clash.project, clash.path));
        }
    }
}
