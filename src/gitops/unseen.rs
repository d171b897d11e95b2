//! What of the Applications the files in the repository do not tell: what is fetched when it is built, and what only
//! Helm, a plugin or an operator knows.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::kustomize;
use super::predict::{PredictedApplication, Prediction};
use super::tree::Tree;
use super::url;

/// A part of an Application that is not known until it is built.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Unseen {
    /// The Application, or what else names it.
    pub what: String,
    pub why: String,
}

/// Those of all Applications.
pub fn all(tree: &dyn Tree, prediction: &Prediction) -> Vec<Unseen> {
    let mut all: Vec<Unseen> = prediction
        .applications
        .iter()
        .flat_map(|app| of(tree, app).into_iter().map(|why| Unseen { what: app.name.to_string(), why }))
        .collect();
    all.sort();
    all.dedup();
    all
}

fn of(tree: &dyn Tree, app: &PredictedApplication) -> Vec<String> {
    let sources = app.source.value();
    let sources = sources.as_array().cloned().unwrap_or_else(|| vec![sources]);
    sources.iter().flat_map(|source| of_source(tree, app, source)).collect()
}

fn of_source(tree: &dyn Tree, app: &PredictedApplication, source: &Value) -> Vec<String> {
    let text = |field: &str| source[field].as_str().unwrap_or_default();
    if source.get("chart").is_some() {
        return vec![format!("Helm chart {} {} from {}", text("chart"), text("targetRevision"), text("repoURL"))];
    }
    if url::normalized(text("repoURL")) != url::normalized(&app.repo_url) {
        return vec![format!("files from {}", text("repoURL"))];
    }
    // A source that is only referred to has values and no path.
    let Some(path) = source["path"].as_str().and_then(|path| kustomize::resolved("", path)) else { return Vec::new() };
    let is_kustomization = kustomize::kustomization(tree, &path).is_some();
    if !is_kustomization && tree.contains(&format!("{path}/Chart.yaml")) {
        return vec![format!("Helm chart {path} in the repository")];
    }
    let build = match kustomize::deployed(tree, &path, source["directory"]["recurse"] == true) {
        Ok(build) => build,
        Err(error) => return vec![format!("{path} cannot be read: {error}")],
    };
    let mut unseen: Vec<String> = build
        .findings
        .iter()
        .map(|finding| match finding.message.split_once(' ') {
            Some((first, _)) => format!("{first} in {}:{}", finding.file, finding.line),
            None => format!("{}:{}", finding.file, finding.line),
        })
        .collect();
    // A strategic patch may repeat a container by its name alone; its image is then that of the base.
    let objects = build.objects.iter().filter(|object| nameless(&object.document.value));
    unseen.extend(objects.map(|object| format!("a container without an image in {}", object.file)));
    unseen
}

fn nameless(object: &Value) -> bool {
    let pod = ["/spec/template/spec", "/spec/jobTemplate/spec/template/spec"];
    let pods = pod.iter().filter_map(|pointer| object.pointer(pointer));
    let containers =
        pods.flat_map(|pod| [&pod["containers"], &pod["initContainers"]]).filter_map(Value::as_array).flatten();
    containers.into_iter().any(|container| container["image"].as_str().is_none_or(|image| image.contains('$')))
}
