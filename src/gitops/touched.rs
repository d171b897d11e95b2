//! Which Applications a change of the repository's files reaches, by the paths that each of them reads.
//!
//! kustomize, Helm and plugins read more than a folder's own files. What a kustomization names, at any depth of its
//! text, counts as read, whether it is there or not: an Application looked at in vain costs little, one that is missed
//! shows an old state.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::appset::{Generator, Kind};
use super::kustomize::{kustomization, resolved};
use super::overlay::any;
use super::predict::{PredictedApplication, Prediction};
use super::repository::Repository;
use super::tree::Tree;
use super::world::World;
use super::{glob, url, yaml};

/// A state of the repository, and what Argo CD makes of it.
pub struct Side<'a> {
    pub tree: &'a dyn Tree,
    pub repository: &'a Repository,
    pub prediction: &'a Prediction,
}

/// What has to look again after a change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touched {
    /// What deploys the ApplicationSets.
    pub root: bool,
    /// Applications that read what changed, and those that are new.
    pub applications: BTreeSet<String>,
    /// Those among them that were there before, and whose own definition changes.
    pub redefined: BTreeSet<String>,
    pub gone: BTreeSet<String>,
    /// ApplicationSets whose generators see something else.
    pub application_sets: BTreeSet<String>,
}

/// What a change from one state to the other touches.
pub fn touched(old: &Side, new: &Side, changed: &[String]) -> Touched {
    let ours = url::normalized(&new.repository.root.repo_url);
    let mut reader = Reader { tree: new.tree, folders: BTreeMap::new() };
    let root = Value::String(new.repository.root.path.clone());
    let mut result = Touched {
        root: hits(&reader.reach(&serde_json::json!([{"path": root, "repoURL": ours}]), &ours), changed),
        ..Touched::default()
    };
    let before: BTreeMap<&str, &PredictedApplication> =
        old.prediction.applications.iter().map(|app| (&*app.name, app)).collect();
    for app in &new.prediction.applications {
        let known = before.get(&*app.name);
        let same = known.is_some_and(|before| *before == app);
        if !same {
            if known.is_some() {
                result.redefined.insert(app.name.to_string());
            }
            result.application_sets.insert(app.application_set.to_string());
        }
        if !same || hits(&reader.reach(&app.source.value(), &ours), changed) {
            result.applications.insert(app.name.to_string());
        }
    }
    let now: BTreeSet<&str> = new.prediction.applications.iter().map(|app| &*app.name).collect();
    for app in old.prediction.applications.iter().filter(|app| !now.contains(&*app.name)) {
        result.gone.insert(app.name.to_string());
        result.application_sets.insert(app.application_set.to_string());
    }
    result.application_sets.extend(sets(old, new, changed));
    result
}

/// ApplicationSets whose git generators see other folders or files, also where that makes no difference yet.
fn sets(old: &Side, new: &Side, changed: &[String]) -> BTreeSet<String> {
    let (before, after) = (world(old), world(new));
    let sees = |generator: &Generator| {
        let Kind::Git(git) = &generator.kind else { return false };
        let prefixed = |path: &str| changed.iter().any(|file| file.starts_with(glob::literal_prefix(path)));
        let templated = |path: &str| path.contains("{{");
        git.directories.iter().chain(&git.files).any(|pattern| templated(&pattern.path) && prefixed(&pattern.path))
            || before.folders(&git.directories) != after.folders(&git.directories)
            || changed.iter().any(|file| git.files.iter().any(|p| glob::file(&p.path, file) == Some(true)))
    };
    let sets = new.repository.application_sets.iter().filter(|set| any(&set.spec.generators, &sees));
    sets.map(|set| set.name.clone()).collect()
}

fn world<'a>(side: &'a Side) -> World<'a> {
    World::new(side.tree, &side.repository.root.repo_url, &[])
}

/// Whether one of the changed files, or a folder that it is in, is read.
fn hits(reach: &BTreeSet<String>, changed: &[String]) -> bool {
    let above = |path: &str| path.match_indices('/').any(|(end, _)| reach.contains(&path[..end]));
    reach.contains("") || changed.iter().any(|path| reach.contains(path) || above(path))
}

/// Follows what folders read; each is looked at once for all Applications.
struct Reader<'a> {
    tree: &'a dyn Tree,
    folders: BTreeMap<String, BTreeSet<String>>,
}

impl Reader<'_> {
    /// Files and folders that an Application's source reads, or its sources.
    fn reach(&mut self, source: &Value, ours: &str) -> BTreeSet<String> {
        let sources = match source {
            Value::Array(sources) => sources.iter().collect(),
            source => vec![source],
        };
        let mut reach = BTreeSet::new();
        for source in sources {
            let text = |field: &str| source.get(field).and_then(Value::as_str);
            let is_ours = text("repoURL").is_some_and(|address| url::normalized(address) == ours);
            let path = text("path").and_then(|path| resolved("", path)).unwrap_or_default();
            if is_ours && text("path").is_some() {
                self.folder(&path, &mut reach);
                if source.get("plugin").is_some() && kustomization(self.tree, &path).is_none() {
                    // Nobody but its plugin knows what it reads.
                    reach.insert(String::new());
                }
            }
            // Value files can be another source's: `$values/…` is from this repository's top.
            for found in strings(source).into_iter().filter(|found| found.contains('/') || is_ours) {
                let whole = found.strip_prefix('$').and_then(|rest| rest.split_once('/')).map(|(_, rest)| rest);
                match whole.or(found.strip_prefix('/')) {
                    Some(inside) => reach.extend(resolved("", inside).filter(|inside| !inside.is_empty())),
                    None if is_ours && !found.contains("://") => self.named(&path, found, &mut reach),
                    None => {}
                }
            }
        }
        reach
    }

    fn folder(&mut self, folder: &str, reach: &mut BTreeSet<String>) {
        if !reach.insert(folder.to_owned()) {
            return;
        }
        let names = match self.folders.get(folder) {
            Some(names) => names.clone(),
            None => {
                let names = self.names(folder);
                self.folders.insert(folder.to_owned(), names.clone());
                names
            }
        };
        for name in &names {
            self.named(folder, name, reach);
        }
    }

    /// What a text means as a path, if it is one.
    fn named(&mut self, folder: &str, text: &str, reach: &mut BTreeSet<String>) {
        // `key=path`, as the files of a generator are written; `file://` of a chart's dependencies.
        let text = text.rsplit_once('=').map_or(text, |(_, path)| path).trim_start_matches("file://");
        let plain = text.len() < 500 && !text.contains("://") && !text.contains(['\n', '{', ' ']);
        let Some(path) = resolved(folder, text).filter(|path| plain && !path.is_empty() && !text.is_empty()) else {
            return;
        };
        match self.tree.contains(&path) {
            true => drop(reach.insert(path)),
            false => self.folder(&path, reach),
        }
    }

    /// All texts in what decides about a folder: its kustomization or chart, and the plugins' files that they name.
    fn names(&self, folder: &str) -> BTreeSet<String> {
        let chart = if folder.is_empty() { "Chart.yaml".to_owned() } else { format!("{folder}/Chart.yaml") };
        let file = kustomization(self.tree, folder).or_else(|| self.tree.contains(&chart).then_some(chart));
        let Some(value) = file.and_then(|file| self.document(&file)) else { return BTreeSet::new() };
        let mut names: BTreeSet<String> = strings(&value).into_iter().map(str::to_owned).collect();
        for field in ["generators", "transformers", "validators", "configurations", "replacements"] {
            for name in value.get(field).map(strings).unwrap_or_default() {
                if let Some(document) = resolved(folder, name).and_then(|path| self.document(&path)) {
                    names.extend(strings(&document).into_iter().map(str::to_owned));
                }
            }
        }
        names
    }

    fn document(&self, path: &str) -> Option<Value> {
        if !self.tree.contains(path) {
            return None;
        }
        yaml::document(path, &self.tree.read(path).ok()?).ok().map(|document| document.value)
    }
}

/// Every text in a value.
fn strings(value: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) => found.push(text.as_str()),
            Value::Array(items) => left.extend(items),
            Value::Object(fields) => left.extend(fields.values()),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
#[path = "touched_tests.rs"]
mod tests;
