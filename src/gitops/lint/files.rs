//! Which file of the repository refers to which: what an env folder builds, and what nothing builds.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde_json::Value;

use super::sets::Sets;
use crate::gitops::finding::Finding;
use crate::gitops::kustomize::{self, resolved};
use crate::gitops::tree::Tree;
use crate::gitops::yaml::{self, Document};

/// Files by what refers to them.
pub struct Graph<'a> {
    pub tree: &'a dyn Tree,
    /// Kustomization files with their content.
    kustomizations: BTreeMap<&'a str, Document>,
    /// What each kustomization file refers to: files, and the kustomization files of folders.
    references: BTreeMap<&'a str, Vec<String>>,
    broken: Vec<Finding>,
}

/// Folders of a TRE repository that hold what is deployed.
const DEPLOYED: [&str; 2] = ["apps", "agnostics"];

impl<'a> Graph<'a> {
    pub fn new(tree: &'a dyn Tree) -> Self {
        let mut graph =
            Graph { tree, kustomizations: BTreeMap::new(), references: BTreeMap::new(), broken: Vec::new() };
        for path in DEPLOYED.iter().flat_map(|folder| tree.below(folder)) {
            if !is_kustomization(path) {
                continue;
            }
            match tree.read(path).and_then(|content| yaml::document(path, &content)) {
                Ok(document) => {
                    graph.references.insert(path, graph.referred(path, &document));
                    graph.kustomizations.insert(path, document);
                }
                Err(error) => graph.broken.push(
                    Finding::error("yaml", path, 0)
                        .message(format!("{error} {}", error.detail_text().unwrap_or_default()))
                        .fix("mend the YAML: kustomize cannot build this folder"),
                ),
            }
        }
        graph
    }

    fn referred(&self, file: &str, document: &Document) -> Vec<String> {
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut texts = Vec::new();
        strings(&document.value, &mut texts);
        texts
            .into_iter()
            // `key=path` in generators.
            .flat_map(|text| [text, text.split_once('=').map_or(text, |(_, path)| path)])
            .filter(|text| !text.is_empty() && !text.contains(['\n', ' ']))
            .filter_map(|text| resolved(folder, text))
            .filter_map(
                |path| {
                    if self.tree.contains(&path) { Some(path) } else { kustomize::kustomization(self.tree, &path) }
                },
            )
            .filter(|path| path != file)
            .collect()
    }

    /// The kustomization of a folder and all that it builds from.
    pub fn built(&self, folder: &str) -> BTreeSet<String> {
        let mut built = BTreeSet::new();
        let mut stack: Vec<String> = kustomize::kustomization(self.tree, folder).into_iter().collect();
        while let Some(path) = stack.pop() {
            if let Some(more) = self.references.get(path.as_str()) {
                stack.extend(more.iter().filter(|more| !built.contains(*more)).cloned());
            }
            built.insert(path);
        }
        built
    }

    pub fn kustomization(&self, file: &str) -> Option<&Document> {
        self.kustomizations.get(file)
    }

    pub fn findings(&self, sets: &Sets) -> Vec<Finding> {
        let mut findings = self.broken.clone();
        let mut live = BTreeSet::new();
        for (set, folders) in &sets.folders {
            for folder in folders {
                let built = self.built(folder);
                let manifests = self.tree.below(folder).iter().any(|path| is_yaml(path));
                if built.is_empty() && !manifests {
                    let file = self.tree.below(folder).first().map_or(folder.as_str(), String::as_str);
                    findings.push(
                        Finding::error("env-without-kustomization", file, 0)
                            .message(format!(
                                "{folder} has nothing to deploy, but ApplicationSet {} makes an Application of it",
                                set.name
                            ))
                            .fix(format!("add {folder}/kustomization.yaml, or remove the folder")),
                    );
                }
                live.extend(built);
                live.extend(
                    self.tree.below(folder).iter().filter(|path| is_yaml(path) && !self.is_kustomized(folder)).cloned(),
                );
            }
        }
        self.dead(&live, &mut findings);
        placeholders(self.tree, &live, &mut findings);
        findings
    }

    fn is_kustomized(&self, folder: &str) -> bool {
        kustomize::kustomization(self.tree, folder).is_some()
    }

    /// Files that no Application builds. Documentation and what charts bring along are not counted.
    fn dead(&self, live: &BTreeSet<String>, findings: &mut Vec<Finding>) {
        for path in DEPLOYED.iter().flat_map(|folder| self.tree.below(folder)) {
            let name = path.rsplit('/').next().unwrap_or(path);
            let ignored =
                name.starts_with('.') || name.ends_with(".md") || path.contains("/charts/") || name == "LICENSE";
            if ignored || live.contains(path) {
                continue;
            }
            let (message, fix) = match self.kustomizations.contains_key(path.as_str()) {
                true => {
                    (format!("no ApplicationSet reaches {path}"), "move it to where a generator looks, or remove it")
                }
                false => {
                    (format!("nothing refers to {path}: it is not deployed"), "add it to a kustomization, or remove it")
                }
            };
            findings.push(Finding::note("unreferenced", path, 0).message(message).fix(fix));
        }
    }
}

fn is_kustomization(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(name, "kustomization.yaml" | "kustomization.yml" | "Kustomization")
}

pub fn is_yaml(path: &str) -> bool {
    path.ends_with(".yaml") || path.ends_with(".yml")
}

fn strings<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| strings(field, found)),
        _ => {}
    }
}

/// Values that somebody was meant to replace.
fn placeholders(tree: &dyn Tree, live: &BTreeSet<String>, findings: &mut Vec<Finding>) {
    let pattern = Regex::new(r"(?i)change[-_]?me\b|replace[-_]me\b|<your[-_ ][^>]*>").expect("it is constant");
    for path in live {
        let Ok(Ok(text)) = tree.read(path).map(String::from_utf8) else { continue };
        for (number, line) in (1..).zip(text.lines()) {
            let commented = line.trim_start().starts_with('#');
            if let Some(found) = pattern.find(line).filter(|_| !commented) {
                findings.push(
                    Finding::warning("placeholder", path, number)
                        .message(format!("\"{}\" is deployed as it stands", found.as_str()))
                        .fix("take the value from a secret"),
                );
            }
        }
    }
}
