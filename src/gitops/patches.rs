//! The JSON patches that turn an ApplicationSet of the repository into one of a developer's environment.

use serde_json::{Value, json};

use super::appset::{ApplicationSet, Generator, Kind};
use super::finding::Finding;
use super::overlay::{OverlaySpec, operation};
use super::repository::Repository;
use super::url;

/// The operations for one ApplicationSet, in the order in which they apply.
pub fn operations(
    set: &ApplicationSet,
    repository: &Repository,
    spec: &OverlaySpec,
    warnings: &mut Vec<Finding>,
) -> Vec<Value> {
    let ours = url::normalized(&repository.root.repo_url);
    let mut patch = Patch { warnings, set, ours, spec, operations: Vec::new() };
    patch.generators(&set.spec.generators);
    patch.template("/spec/template");
    let mut operations = patch.operations;
    if set.spec.template.get("spec").is_some() {
        operations.push(operation("add", "/spec/template/spec/project", spec.name.project()));
    }
    if let Some(text) = &set.spec.template_patch
        && ["repoURL", "targetRevision"].iter().any(|field| text.contains(field))
    {
        warnings.push(
            Finding::warning("template-patch-source", &set.file, set.line("/spec/templatePatch"))
                .message(format!(
                    "templatePatch of ApplicationSet {} sets a source, which may lead off the branch",
                    set.name
                ))
                .fix("set repoURL and targetRevision in the template, and only there"),
        );
    }
    operations
}

struct Patch<'a> {
    warnings: &'a mut Vec<Finding>,
    set: &'a ApplicationSet,
    ours: String,
    spec: &'a OverlaySpec,
    operations: Vec<Value>,
}

impl Patch<'_> {
    fn generators(&mut self, generators: &[Generator]) {
        for generator in generators {
            let pointer = generator.pointer.clone();
            match &generator.kind {
                Kind::Clusters(_) => self.selector(&format!("{pointer}/clusters")),
                Kind::Git(git) => {
                    self.point(&format!("{pointer}/git"), &git.repo_url, "revision");
                    self.template(&format!("{pointer}/git/template"));
                }
                Kind::Matrix(children) | Kind::Merge { generators: children, .. } => self.generators(children),
                Kind::List { .. } | Kind::Unpredictable { .. } => {}
            }
            for kind in ["clusters", "list", "matrix", "merge"] {
                self.template(&format!("{pointer}/{kind}/template"));
            }
        }
    }

    /// The label is added where a selector is, and the selector made where none is.
    fn selector(&mut self, clusters: &str) {
        let developer = self.spec.name.as_str();
        let labels = json!({"developer": developer});
        let (path, value) = match self.set.value.pointer(clusters) {
            Some(body) if body.pointer("/selector/matchLabels").is_some_and(Value::is_object) => {
                (format!("{clusters}/selector/matchLabels/developer"), Value::from(developer))
            }
            Some(body) if body.get("selector").is_some_and(Value::is_object) => {
                (format!("{clusters}/selector/matchLabels"), labels)
            }
            _ => (format!("{clusters}/selector"), json!({"matchLabels": labels})),
        };
        self.operations.push(operation("add", &path, value));
    }

    /// Points a reference to this repository at the branch; `revision` is the field that names it.
    fn point(&mut self, pointer: &str, repo_url: &str, revision: &str) {
        if repo_url.contains("{{") {
            self.warnings.push(
                Finding::warning("templated-source", &self.set.file, self.set.line(&format!("{pointer}/repoURL")))
                    .message(format!(
                        "ApplicationSet {} computes a repoURL ({repo_url}); it stays as it is, and may not be the branch",
                        self.set.name
                    ))
                    .fix("write the repository's address out"),
            );
        }
        if url::normalized(repo_url) == self.ours {
            self.operations.push(operation("add", &format!("{pointer}/repoURL"), self.spec.repo_url.as_str()));
            self.operations.push(operation("add", &format!("{pointer}/{revision}"), self.spec.revision.as_str()));
        }
    }

    /// The sources of a template, whether one or several, and its project if it names one.
    fn template(&mut self, pointer: &str) {
        let set = self.set;
        let Some(spec) = set.value.pointer(&format!("{pointer}/spec")) else { return };
        let mut sources = Vec::new();
        sources.extend(spec.get("source").map(|source| (format!("{pointer}/spec/source"), source)));
        if let Some(list) = spec.get("sources").and_then(Value::as_array) {
            sources.extend(list.iter().enumerate().map(|(i, source)| (format!("{pointer}/spec/sources/{i}"), source)));
        }
        for (pointer, source) in sources {
            let repo_url = source.get("repoURL").and_then(Value::as_str).unwrap_or_default();
            self.point(&pointer, repo_url, "targetRevision");
        }
        // Argo CD would write the namespace itself, which it may not: whoever makes the namespaces writes this, too.
        if !self.spec.namespaces.is_empty() && !spec["syncPolicy"]["managedNamespaceMetadata"].is_null() {
            let path = format!("{pointer}/spec/syncPolicy/managedNamespaceMetadata");
            self.operations.push(json!({"op": "remove", "path": path}));
        }
        // A generator's own template wins over the common one.
        if pointer != "/spec/template" && spec.get("project").is_some_and(|project| project != "") {
            self.operations.push(operation("add", &format!("{pointer}/spec/project"), self.spec.name.project()));
        }
    }
}
