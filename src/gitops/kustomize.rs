//! As much of kustomize as decides about ApplicationSets and about where objects go: resources, components, patches,
//! namespaces, prefixes and suffixes of names; and which images their containers have.
//!
//! What is not followed (replacements, generators, remote resources) is a finding, and never guessed.

mod images;
mod patch;

use std::collections::BTreeSet;

use serde_json::Value;

use super::finding::Finding;
use super::kinds;
use super::tree::Tree;
use super::yaml::{self, Document, Lines};
use crate::error::{Error, Result, ResultExt};

/// An object of a build and the file it is written in.
pub struct Object {
    pub file: String,
    pub document: Document,
}

/// Everything that a folder builds, and what of it could not be followed.
#[derive(Default)]
pub struct Build {
    pub objects: Vec<Object>,
    pub findings: Vec<Finding>,
    under_way: BTreeSet<String>,
}

const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// Fields that could change ApplicationSets and are not followed.
const NOT_FOLLOWED: &[&str] = &[
    "configurations",
    "generators",
    "helmCharts",
    "helmChartInflationGenerator",
    "replacements",
    "transformers",
    "validators",
    "vars",
];

/// Kinds whose names stay without prefix and suffix.
const UNPREFIXED: [&str; 3] = ["APIService", "CustomResourceDefinition", "Namespace"];

/// The kustomization file of a folder.
pub fn kustomization(tree: &dyn Tree, folder: &str) -> Option<String> {
    NAMES.iter().map(|name| joined(folder, name)).find(|path| tree.contains(path))
}

/// `a/b` and `../c` make `a/c`; `None` if the path leaves the repository.
pub fn resolved(folder: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Builds a folder. Errors are those on which kustomize, too, would fail.
pub fn build(tree: &dyn Tree, folder: &str) -> Result<Build> {
    let mut build = Build::default();
    build.objects = build.folder(tree, folder, Vec::new())?;
    Ok(build)
}

/// What Argo CD deploys of a folder: a kustomization is built, of any other the manifests are read, and those of the
/// folders in it if it is so told. A chart's are not: only Helm knows them.
pub fn deployed(tree: &dyn Tree, folder: &str, recurse: bool) -> Result<Build> {
    if kustomization(tree, folder).is_some() {
        return build(tree, folder);
    }
    let mut build = Build::default();
    if tree.contains(&joined(folder, "Chart.yaml")) {
        return Ok(build);
    }
    for file in tree.below(folder) {
        let inside = file[folder.len()..].trim_start_matches('/');
        let is_manifest = [".yaml", ".yml", ".json"].iter().any(|ending| inside.ends_with(ending));
        if is_manifest && (recurse || !inside.contains('/')) {
            build.objects.extend(read(tree, file)?);
        }
    }
    Ok(build)
}

fn read(tree: &dyn Tree, file: &str) -> Result<impl Iterator<Item = Object>> {
    let documents = yaml::documents(file, &tree.read(file)?)?;
    let file = file.to_owned();
    Ok(documents.into_iter().map(move |document| Object { file: file.clone(), document }))
}

impl Build {
    /// The objects of a kustomization. That of a component begins with those of whoever names it, and changes them too.
    fn folder(&mut self, tree: &dyn Tree, folder: &str, before: Vec<Object>) -> Result<Vec<Object>> {
        let file =
            kustomization(tree, folder).ok_or_else(|| Error::failed(format!("{folder} has no kustomization.yaml")))?;
        if !self.under_way.insert(folder.to_owned()) {
            return Err(Error::failed(format!("{file} includes itself")));
        }
        let document = yaml::document(&file, &tree.read(&file)?)?;
        let value = &document.value;
        let mut objects = before;
        let entries = |field: &str| {
            let entries =
                value.get(field).and_then(Value::as_array).cloned().unwrap_or_default().into_iter().enumerate();
            let pointer = format!("/{field}");
            entries.map(move |(index, entry)| (format!("{pointer}/{index}"), entry))
        };
        for (pointer, entry) in entries("resources").chain(entries("bases")) {
            objects.extend(self.resource(tree, folder, &file, document.lines.at(&pointer), &entry)?);
        }
        for (pointer, entry) in entries("components") {
            let line = document.lines.at(&pointer);
            let path = inside(folder, &file, line, &entry)?;
            objects = match kustomization(tree, &path) {
                Some(_) => self.folder(tree, &path, objects).with_context(|| format!("{file}:{line}"))?,
                None => return Err(Error::failed(format!("{file}:{line}: there is no component folder {path}"))),
            };
        }
        for field in NOT_FOLLOWED.iter().filter(|field| value.get(**field).is_some()) {
            self.findings.push(
                Finding::warning("kustomize-not-followed", &file, document.lines.at(&format!("/{field}")))
                    .message(format!("{field} may change ApplicationSets in a way that k8tre does not follow"))
                    .fix(
                        "use patches, or check the result against a live Argo CD: k8tre dev preview --against CONTEXT",
                    ),
            );
        }
        let read = |path: &str| -> Result<Document> {
            let path = resolved(folder, path).ok_or_else(|| Error::failed(format!("{path} leaves the repository")))?;
            yaml::document(&path, &tree.read(&path)?)
        };
        let findings = transform(value, &document.lines, &file, &mut objects, &read)?;
        self.findings.extend(findings);
        self.under_way.remove(folder);
        Ok(objects)
    }

    fn resource(&mut self, tree: &dyn Tree, folder: &str, file: &str, line: u32, entry: &Value) -> Result<Vec<Object>> {
        let text = entry.as_str().unwrap_or_default();
        if text.contains("://") || text.contains("?ref=") || text.starts_with("git@") || text.starts_with("github.com/")
        {
            self.findings.push(
                Finding::warning("remote-resource", file, line)
                    .message(format!("{text} is fetched when it is built; ApplicationSets in it are not predicted"))
                    .fix("keep ApplicationSets in the repository"),
            );
            return Ok(Vec::new());
        }
        let path = inside(folder, file, line, entry)?;
        if tree.contains(&path) {
            return Ok(read(tree, &path)?.collect());
        }
        if kustomization(tree, &path).is_some() {
            return self.folder(tree, &path, Vec::new()).with_context(|| format!("{file}:{line}"));
        }
        Err(Error::failed(format!("{file}:{line}: there is no file or kustomization folder {path}")))
    }
}

/// The path in the repository that an entry of a kustomization means.
fn inside(folder: &str, file: &str, line: u32, entry: &Value) -> Result<String> {
    let Some(text) = entry.as_str() else {
        return Err(Error::failed(format!("{file}:{line}: {entry} is not a path")));
    };
    resolved(folder, text).ok_or_else(|| Error::failed(format!("{file}:{line}: {text} leads out of the repository")))
}

/// Applies patches, namespace, prefix and suffix of a kustomization, or of an Application's `kustomize`, in kustomize's order.
pub fn transform(
    value: &Value,
    lines: &Lines,
    file: &str,
    objects: &mut [Object],
    read: &dyn Fn(&str) -> Result<Document>,
) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for field in ["patches", "patchesJson6902", "patchesStrategicMerge"] {
        let patches = value.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (index, patch) in patches.iter().enumerate() {
            let line = lines.at(&format!("/{field}/{index}"));
            patch::apply(patch, file, line, objects, read, &mut findings)?;
        }
    }
    if let Some(entries) = value.get("images").and_then(Value::as_array) {
        images::apply(entries, objects);
    }
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let (namespace, prefix, suffix) = (text("namespace"), text("namePrefix"), text("nameSuffix"));
    for object in objects.iter_mut() {
        let object = &mut object.document.value;
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !namespace.is_empty() && object.get("metadata").is_some_and(Value::is_object) {
            match kind.as_str() {
                // The namespace itself is renamed with what is in it.
                "Namespace" => object["metadata"]["name"] = namespace.into(),
                kind if kinds::is_of_cluster(kind) => {}
                _ => object["metadata"]["namespace"] = namespace.into(),
            }
        }
        if let Some(name) = object.pointer_mut("/metadata/name").filter(|_| !UNPREFIXED.contains(&kind.as_str()))
            && let Some(old) = name.as_str()
        {
            *name = format!("{prefix}{old}{suffix}").into();
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gitops::testing::kustomize_build;
    use crate::gitops::tree::MemoryTree;

    fn object(kind: &str, name: &str) -> String {
        format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: own}}\n")
    }

    /// Kind, namespace and name of each.
    fn named(objects: impl Iterator<Item = Value>) -> BTreeSet<String> {
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let of = |object: Value| {
            let metadata = &object["metadata"];
            format!("{} {}/{}", text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]))
        };
        objects.map(of).collect()
    }

    #[test]
    fn namespaces_names_and_components_come_out_as_kustomize_has_them() {
        let tree = MemoryTree::new([
            ("a/kustomization.yaml", "namespace: outer\nnamePrefix: p-\nresources: [a.yaml, ns.yaml, role.yaml, ../sub]\ncomponents: [../part]\n".to_owned()),
            ("a/a.yaml", object("ConfigMap", "a")),
            ("a/ns.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n".to_owned()),
            ("a/role.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\n".to_owned()),
            ("sub/kustomization.yaml", "namespace: inner\nresources: [b.yaml]\n".to_owned()),
            ("sub/b.yaml", object("Secret", "b")),
            ("part/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnameSuffix: -s\nresources: [c.yaml]\n".to_owned()),
            ("part/c.yaml", object("Service", "c")),
        ]);
        let built = named(build(&tree, "a").unwrap().objects.into_iter().map(|object| object.document.value));
        let expected = [
            "ClusterRole -/p-r-s",
            "ConfigMap outer/p-a-s",
            "Namespace -/outer",
            "Secret outer/p-b-s",
            "Service outer/p-c-s",
        ];
        assert_eq!(built, expected.map(str::to_owned).into());
        if let Some(text) = kustomize_build("namespaces_names_and_components", &tree, "a") {
            let documents = yaml::documents("kustomize", text.as_bytes()).unwrap();
            assert_eq!(named(documents.into_iter().map(|document| document.value)), built);
        }
    }

    #[test]
    fn a_component_that_is_not_there_is_told_with_its_line() {
        let tree = MemoryTree::new([("a/kustomization.yaml", "resources: []\ncomponents:\n- ../part\n")]);
        let error = build(&tree, "a").err().unwrap();
        assert_eq!(error.to_string(), "a/kustomization.yaml:3: there is no component folder part");
    }
}
