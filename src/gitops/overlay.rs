//! A developer's branch: what it adds to the repository so that its ApplicationSets serve one environment and leave
//! every other alone.
//!
//! Each ApplicationSet is taken as it is and patched: its cluster generators want the developer's label, its sources
//! point at the branch, its project is the developer's. Env folders `envs/dev-<name>` beside the base's decide which
//! applications exist and hold the developer's own changes.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};

use super::appset::{ApplicationSet, Generator, Kind};
use super::finding::Finding;
use super::generate::Event;
use super::predict::{Cluster, Prediction, predict, selections};
use super::preset::{self, Preset};
use super::repository::Repository;
use super::selector::Miss;
use super::tree::{MemoryTree, Tree};
use super::windows::Holds;
use super::world::World;
use super::{environment, patches, templates};
use crate::error::{Error, Result, ResultExt};
use crate::names::EnvName;
use crate::ports::kube::OWNER;

/// What decides about a developer's branch.
#[derive(Debug, Clone)]
pub struct OverlaySpec {
    pub name: EnvName,
    /// The env folders that the environment's own are made from, `dev` for instance.
    pub base_env: String,
    /// Where Argo CD reads the branch.
    pub repo_url: String,
    pub revision: String,
    /// Address of the environment's cluster as Argo CD knows it, and its name there.
    pub server: String,
    pub cluster: String,
    /// Labels of the cluster's Secret, without those that follow from the name.
    pub labels: BTreeMap<String, String>,
    /// Applications that are switched on; empty means all.
    pub only: Vec<String>,
    /// Applications that are switched off, in addition to `skip-*` labels.
    pub skip: Vec<String>,
    /// What is known about the repository beyond its layout.
    pub preset: Option<Preset>,
    /// Applications that are not synced by themselves for a time.
    pub holds: Holds,
    /// Namespace of Argo CD.
    pub namespace: String,
    /// Argo CD serves others too: the AppProjects are not in the branch, and the root Application has one of its own.
    pub fenced: bool,
    /// The only namespaces that may be deployed to; empty means all, and what is in none.
    pub namespaces: BTreeSet<String>,
}

impl OverlaySpec {
    /// An environment in the cluster that Argo CD runs in, on the branch of its name.
    pub fn new(name: EnvName, repo_url: &str) -> Self {
        OverlaySpec {
            base_env: "dev".into(),
            repo_url: repo_url.into(),
            revision: name.branch(),
            server: super::world::IN_CLUSTER.into(),
            cluster: "in-cluster".into(),
            labels: BTreeMap::new(),
            only: Vec::new(),
            skip: Vec::new(),
            preset: None,
            holds: Holds::new(),
            namespace: crate::argocd::NAMESPACE.into(),
            fenced: false,
            namespaces: BTreeSet::new(),
            name,
        }
    }

    /// The labels of the cluster's Secret; an unusable one is an error that names it.
    pub fn labels(&self) -> Result<BTreeMap<String, String>> {
        let mut labels = self.labels.clone();
        labels.insert("developer".into(), self.name.to_string());
        labels.insert("environment".into(), self.name.environment());
        for (key, value) in &labels {
            if let Some(problem) = super::labels::key_problem(key) {
                return Err(Error::usage(format!("\"{key}\" cannot be the key of a label: {problem}"))
                    .hint("labels are given as --label KEY=VALUE"));
            }
            if let Some(problem) = super::labels::value_problem(value) {
                return Err(Error::usage(format!("\"{value}\" cannot be the value of the label {key}: {problem}"))
                    .hint("at most 63 letters, digits, '-', '_' and '.', a letter or digit at both ends"));
            }
        }
        Ok(labels)
    }

    /// The folder of the overlay in the branch.
    pub fn folder(&self) -> String {
        format!("overlays/developers/{}", self.name)
    }

    /// The environment's cluster as Argo CD will know it.
    pub fn cluster(&self) -> Result<Cluster> {
        // The Secret carries the owner's mark. Its value is not known before it is made, but that it has annotations is.
        let annotations = BTreeMap::from([(OWNER.to_owned(), String::new())]);
        Ok(Cluster { name: self.cluster.clone(), server: self.server.clone(), labels: self.labels()?, annotations })
    }
}

/// What the branch adds, and what has to be applied to Argo CD for it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Overlay {
    /// Files of the branch, by path.
    pub files: BTreeMap<String, String>,
    pub root_application: Value,
    pub app_project: Value,
    /// The AppProject of the root Application, where it has one of its own.
    pub root_project: Option<Value>,
    pub warnings: Vec<Finding>,
}

impl Overlay {
    /// The branch: the tree with the overlay's files.
    pub fn tree<'a>(&self, base: &'a dyn Tree) -> MemoryTree<'a> {
        MemoryTree::over(base, self.files.iter().map(|(path, text)| (path.as_str(), text.as_str())))
    }

    /// The branch as the environment's root Application deploys it, read by the reader of every repository.
    pub fn read(&self, branch: &dyn Tree) -> Result<Repository> {
        let path = self.root_application.pointer("/spec/source/path").and_then(Value::as_str).unwrap_or_default();
        Repository::read_with(branch, &format!("{path}/kustomization.yaml"), &self.root_application)
    }
}

/// Makes the overlay. Files below `envs/dev-<name>` that the tree already has are the developer's and stay.
pub fn overlay(repository: &Repository, tree: &dyn Tree, spec: &OverlaySpec) -> Result<Overlay> {
    let mut warnings = Vec::new();
    let mut files = env_folders(repository, tree, spec, &mut warnings)?;
    if let Some(preset) = &spec.preset {
        preset::adapt(preset, spec, &mut files);
    }
    let mut entries = Vec::new();
    for set in &repository.application_sets {
        let mut operations = patches::operations(set, repository, spec, &mut warnings);
        if let Some(preset) = &spec.preset {
            operations.extend(preset::operations(preset, set));
        }
        // Applied here as well: a patch that does not fit must not reach the cluster.
        let patch: json_patch::Patch = serde_json::from_value(Value::Array(operations.clone()))?;
        let mut patched = set.value.clone();
        json_patch::patch(&mut patched, &patch)
            .with_context(|| format!("{}: the overlay does not fit ApplicationSet {}", set.file, set.name))?;
        set.with_value(patched)?;
        entries.push((set.name.clone(), operations));
    }
    let app_project = environment::app_project(repository, spec);
    let folder = spec.folder();
    files.insert(format!("{folder}/kustomization.yaml"), environment::kustomization(repository, tree, spec, &entries)?);
    if !spec.fenced {
        let unsuffixed = environment::unsuffixed(&app_project, spec);
        files.insert(format!("{folder}/appproject.yaml"), environment::yaml(&unsuffixed)?);
    }
    let root_application = environment::root_application(repository, spec);
    let root_project = spec.fenced.then(|| environment::root_project(spec));
    Ok(Overlay { files, root_application, app_project, root_project, warnings })
}

/// What Argo CD will make of the branch.
pub fn predict_environment(repository: &Repository, tree: &dyn Tree, spec: &OverlaySpec) -> Result<Prediction> {
    let overlay = overlay(repository, tree, spec)?;
    let branch = overlay.tree(tree);
    let mut prediction = predict(&overlay.read(&branch)?, &branch, &[spec.cluster()?]);
    prediction.findings.extend(overlay.warnings);
    Ok(prediction)
}

/// Name of the application that an env folder belongs to: what follows `apps` or `agnostics`.
pub fn app_of(path: &str) -> &str {
    let mut segments = path.split('/');
    match (segments.next(), segments.next()) {
        (Some("apps" | "agnostics"), Some(app)) => app,
        (Some(first), _) => first,
        (None, _) => path,
    }
}

/// Whether `--only` and `--skip` leave an application on.
fn is_on(spec: &OverlaySpec, names: &[&str]) -> bool {
    let among = |list: &[String]| list.iter().any(|wanted| names.contains(&wanted.as_str()));
    (spec.only.is_empty() || among(&spec.only)) && !among(&spec.skip)
}

/// The env folders of the branch: beside each of the base that a generator would take for this cluster's labels,
/// were its environment that of the base. Labels that switch off do not count, so that the reason stays visible.
fn env_folders(
    repository: &Repository,
    tree: &dyn Tree,
    spec: &OverlaySpec,
    warnings: &mut Vec<Finding>,
) -> Result<BTreeMap<String, String>> {
    let mut as_base = spec.cluster()?;
    as_base.labels.insert("environment".into(), spec.base_env.clone());
    let world = World::new(tree, &repository.root.repo_url, &[as_base]);
    let mut files = BTreeMap::new();
    let mut known = BTreeSet::new();
    for set in &repository.application_sets {
        known.insert(set.name.clone());
        known.extend(apps(&set.spec.generators));
        if !any(&set.spec.generators, &|generator| matches!(generator.kind, Kind::Clusters(_))) {
            warnings.push(
                Finding::warning("no-cluster-generator", &set.file, set.line("/spec/generators"))
                    .message(format!(
                        "ApplicationSet {} has no cluster generator: it would deploy the same from every branch",
                        set.name
                    ))
                    .fix("add a cluster generator to it"),
            );
        }
        for folder in folders_of_cluster(set, &world) {
            let app = app_of(&folder);
            known.insert(app.to_owned());
            let Some((parent, env)) = folder.rsplit_once('/') else { continue };
            if env == spec.base_env && is_on(spec, &[app, &set.name]) {
                env_folder(set, tree, spec, parent, &mut files)?;
            }
        }
    }
    let unknown = spec.only.iter().chain(&spec.skip).find(|app| !known.contains(*app));
    match unknown {
        None => Ok(files),
        Some(app) => {
            let known: Vec<&str> = known.iter().map(String::as_str).filter(|app| !app.contains('*')).collect();
            Err(Error::usage(format!("there is no application \"{app}\" in this repository"))
                .hint(format!("there are: {}", known.join(", "))))
        }
    }
}

/// The folders that an ApplicationSet would take for the only cluster of this world.
fn folders_of_cluster(set: &ApplicationSet, world: &World) -> BTreeSet<String> {
    let mut folders = BTreeSet::new();
    for event in selections(set, world) {
        match event {
            Event::Selection { path: Some(path), wanted, .. } => {
                let switched_off = |miss: &Miss| matches!(miss, Miss::Expression { .. });
                if world.misses(&wanted).iter().any(|(_, misses)| misses.iter().all(switched_off)) {
                    folders.insert(path);
                }
            }
            Event::Folders(found) => folders.extend(found),
            _ => {}
        }
    }
    folders
}

/// Adds `parent/dev-<name>`, unless the developer has it already. Files that a generator reads are copied along.
fn env_folder(
    set: &ApplicationSet,
    tree: &dyn Tree,
    spec: &OverlaySpec,
    parent: &str,
    files: &mut BTreeMap<String, String>,
) -> Result<()> {
    let (base, folder) = (format!("{parent}/{}", spec.base_env), format!("{parent}/{}", spec.name.environment()));
    if !tree.below(&folder).is_empty() {
        return Ok(());
    }
    for path in tree.below(&base) {
        let read = |generator: &Generator| match &generator.kind {
            Kind::Git(git) => git.files.iter().any(|f| !f.exclude && super::glob::file(&f.path, path) == Some(true)),
            _ => false,
        };
        if any(&set.spec.generators, &read) {
            let text = String::from_utf8(tree.read(path)?).with_context(|| format!("{path} is not text"))?;
            files.insert(format!("{folder}{}", &path[base.len()..]), text);
        }
    }
    if super::kustomize::kustomization(tree, &base).is_some() {
        files.insert(
            format!("{folder}/kustomization.yaml"),
            templates::env_kustomization(&format!("../{}", spec.base_env)),
        );
    }
    Ok(())
}

/// Whether a generator, at any depth, fulfils the condition.
pub(super) fn any(generators: &[Generator], condition: &dyn Fn(&Generator) -> bool) -> bool {
    generators.iter().any(|generator| {
        condition(generator)
            || match &generator.kind {
                Kind::Matrix(children) | Kind::Merge { generators: children, .. } => any(children, condition),
                _ => false,
            }
    })
}

/// Whether an ApplicationSet belongs to an application, by its name or by the folders it reads.
pub(super) fn belongs_to(set: &ApplicationSet, app: &str) -> bool {
    set.name == app || apps(&set.spec.generators).contains(app)
}

/// The applications whose folders generators name.
fn apps(generators: &[Generator]) -> BTreeSet<String> {
    let of = |generator: &Generator| match &generator.kind {
        Kind::Git(git) => {
            git.directories.iter().chain(&git.files).map(|pattern| app_of(&pattern.path).into()).collect()
        }
        Kind::Matrix(children) | Kind::Merge { generators: children, .. } => apps(children),
        _ => BTreeSet::new(),
    };
    generators.iter().flat_map(of).collect()
}

/// One JSON patch operation.
pub(super) fn operation(op: &str, path: &str, value: impl Into<Value>) -> Value {
    json!({"op": op, "path": path, "value": value.into()})
}

#[cfg(test)]
#[path = "overlay_tests.rs"]
mod tests;
