//! A TRE repository as its root Application deploys it: the ApplicationSets, after all patches.

use serde_json::Value;

use super::appset::ApplicationSet;
use super::finding::Finding;
use super::kustomize::{self, Build, Object};
use super::tree::Tree;
use super::yaml::{self, Document, Lines};
use crate::error::{Error, Result, ResultExt};

/// Where K8TRE's layout keeps the root Application.
pub const ROOT: &str = "app_of_apps/root-app-of-apps.yaml";

/// The root Application: what deploys the ApplicationSets.
#[derive(Debug, Clone)]
pub struct Root {
    pub file: String,
    /// The whole object.
    pub value: Value,
    pub repo_url: String,
    pub revision: String,
    /// Folder that it deploys.
    pub path: String,
    lines: Lines,
}

/// A TRE repository.
#[derive(Debug, Clone)]
pub struct Repository {
    pub root: Root,
    pub application_sets: Vec<ApplicationSet>,
    /// What could not be followed on the way.
    pub findings: Vec<Finding>,
}

impl Repository {
    /// Reads the repository from its root Application. Errors name file and line.
    pub fn read(tree: &dyn Tree) -> Result<Self> {
        Self::of(tree, Root::find(tree)?)
    }

    /// Reads what another root Application of the same tree deploys.
    pub fn read_with(tree: &dyn Tree, file: &str, application: &Value) -> Result<Self> {
        Self::of(tree, Root::new(file, Document { value: application.clone(), lines: Lines::default() })?)
    }

    fn of(tree: &dyn Tree, root: Root) -> Result<Self> {
        let mut build = root.build(tree)?;
        if let Some(kustomize) = root.value.pointer("/spec/source/kustomize") {
            let lines = root.lines.below("/spec/source/kustomize");
            let read = |path: &str| Err(Error::failed(format!("an Application's patch cannot be a file ({path})")));
            let more = kustomize::transform(kustomize, &lines, &root.file, &mut build.objects, &read)?;
            build.findings.extend(more);
        }
        let is_set = |object: &Object| {
            let text = |field: &str| object.document.value.get(field).and_then(Value::as_str).unwrap_or_default();
            text("kind") == "ApplicationSet" && text("apiVersion").starts_with("argoproj.io/")
        };
        let sets = build.objects.into_iter().filter(is_set);
        let application_sets: Vec<ApplicationSet> =
            sets.map(|object| ApplicationSet::read(&object.file, object.document)).collect::<Result<_>>()?;
        if application_sets.is_empty() {
            return Err(Error::failed(format!("{} deploys {}, where no ApplicationSet is", root.file, root.path))
                .hint("ApplicationSets go below appsets/ and into the resources of appsets/kustomization.yaml"));
        }
        for (index, set) in application_sets.iter().enumerate() {
            if let Some(other) = application_sets[..index].iter().find(|other| other.name == set.name) {
                let line = set.line("/metadata/name");
                return Err(Error::failed(format!(
                    "{}:{line}: ApplicationSet {} is already in {}",
                    set.file, set.name, other.file
                )));
            }
        }
        Ok(Repository { root, application_sets, findings: build.findings })
    }
}

impl Root {
    fn find(tree: &dyn Tree) -> Result<Self> {
        if !tree.contains(ROOT) {
            return Err(Error::failed(format!("this is no TRE repository: it has no {ROOT}"))
                .hint("give the folder of a K8TRE repository: --repo PATH; or try the sample: k8tre dev up --sample"));
        }
        let documents = yaml::documents(ROOT, &tree.read(ROOT)?)?;
        let is_root = |document: &Document| document.value.get("kind").and_then(Value::as_str) == Some("Application");
        match documents.into_iter().find(is_root) {
            Some(document) => Self::new(ROOT, document),
            None => Err(Error::failed(format!("{ROOT} holds no object of kind Application"))),
        }
    }

    fn new(file: &str, document: Document) -> Result<Self> {
        let Document { value, lines } = document;
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        let missing = |pointer: &str| {
            let (line, field) = (lines.at(pointer), pointer.trim_start_matches('/').replace('/', "."));
            Error::failed(format!("{file}:{line}: the root Application has no {field}"))
        };
        let repo_url = text("/spec/source/repoURL").ok_or_else(|| missing("/spec/source/repoURL"))?.to_owned();
        let path = text("/spec/source/path").ok_or_else(|| missing("/spec/source/path"))?;
        let path = kustomize::resolved("", path).ok_or_else(|| {
            Error::failed(format!("{file}:{}: {path} leads out of the repository", lines.at("/spec/source/path")))
        })?;
        let revision = text("/spec/source/targetRevision").unwrap_or("HEAD").to_owned();
        Ok(Root { file: file.into(), repo_url, revision, path, lines, value })
    }

    /// A folder with a kustomization is built, any other is read file by file, as Argo CD does.
    fn build(&self, tree: &dyn Tree) -> Result<Build> {
        let line = self.lines.at("/spec/source/path");
        if kustomize::kustomization(tree, &self.path).is_none() && tree.below(&self.path).is_empty() {
            return Err(Error::failed(format!("{}:{line}: there is no folder {}", self.file, self.path)));
        }
        let recurse = self.value.pointer("/spec/source/directory/recurse").and_then(Value::as_bool) == Some(true);
        let built = kustomize::deployed(tree, &self.path, recurse);
        match kustomize::kustomization(tree, &self.path) {
            Some(_) => built,
            None => built.with_context(|| format!("{}:{line}", self.file)),
        }
    }
}

#[cfg(test)]
#[path = "repository_tests.rs"]
mod tests;
