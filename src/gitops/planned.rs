//! Objects that Applications will deploy, told from the files in the repository: what a chart, a plugin or a remote
//! resource makes is not seen.

use serde_json::{Value, json};

use super::kinds;
use super::kustomize::{self, transform};
use super::overlay::app_of;
use super::predict::{PredictedApplication, Prediction};
use super::tree::Tree;
use super::url;
use super::yaml::Lines;
use crate::error::Error;

/// An object that an Application will deploy.
pub struct Planned {
    pub application: String,
    /// The app that it belongs to, as `--skip` names it.
    pub app: String,
    pub object: Value,
}

/// Those of all Applications.
pub fn all(tree: &dyn Tree, prediction: &Prediction) -> Vec<Planned> {
    let of_each = prediction.applications.iter().flat_map(|app| {
        let (application, called) = (app.name.to_string(), app_of(&app.path).to_owned());
        let planned = move |object| Planned { application: application.clone(), app: called.clone(), object };
        of(tree, app).into_iter().map(planned)
    });
    of_each.collect()
}

/// Those of one Application, each with the namespace that it will be in. What is broken is told by `lint`, and by Argo CD.
pub fn of(tree: &dyn Tree, app: &PredictedApplication) -> Vec<Value> {
    let sources = app.source.value();
    let sources = sources.as_array().cloned().unwrap_or_else(|| vec![sources]);
    let ours = url::normalized(&app.repo_url);
    let is_ours = |source: &&Value| source["repoURL"].as_str().is_some_and(|from| url::normalized(from) == ours);
    let mut objects = Vec::new();
    for source in sources.iter().filter(is_ours) {
        let Some(path) = source["path"].as_str().and_then(|path| kustomize::resolved("", path)) else { continue };
        let recurse = source["directory"]["recurse"] == true;
        let Ok(mut build) = kustomize::deployed(tree, &path, recurse) else { continue };
        let unread = |path: &str| Err(Error::failed(format!("an Application's patch cannot be a file ({path})")));
        let own = source.get("kustomize").filter(|own| own.is_object());
        if own.is_some_and(|own| transform(own, &Lines::default(), &path, &mut build.objects, &unread).is_err()) {
            continue;
        }
        objects.extend(build.objects.into_iter().map(|object| object.document.value).filter(Value::is_object));
    }
    for object in &mut objects {
        let of_cluster = object["kind"].as_str().is_some_and(kinds::is_of_cluster);
        let mut metadata = object["metadata"].as_object().cloned().unwrap_or_default();
        if of_cluster {
            metadata.remove("namespace");
        } else if metadata.get("namespace").and_then(Value::as_str).is_none_or(str::is_empty) {
            metadata.insert("namespace".into(), json!(app.namespace));
        }
        object["metadata"] = metadata.into();
    }
    objects
}
