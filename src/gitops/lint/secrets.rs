//! Secrets that something needs and nothing makes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::files::{Graph, is_yaml};
use super::sets::Sets;
use crate::gitops::ci_secrets::{self, FILE};
use crate::gitops::finding::Finding;
use crate::gitops::yaml::{self, Document, token};

/// What is needed and made, of one application.
#[derive(Default)]
struct Ledger {
    made: BTreeSet<String>,
    /// Name of a secret, who needs it, and where.
    needed: Vec<(String, String, String, u32)>,
    /// Charts make secrets that are not in the repository.
    has_charts: bool,
}

pub fn findings(sets: &Sets, graph: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    let listed = listed(graph, &mut findings);
    let mut ledgers = Vec::new();
    for (_, folders) in &sets.folders {
        // All environments together: what one of them makes is not missing in another's eyes.
        let files: BTreeSet<String> = folders.iter().flat_map(|folder| graph.built(folder)).collect();
        let mut ledger = Ledger::default();
        for file in &files {
            if let Some(kustomization) = graph.kustomization(file) {
                ledger.kustomization(&kustomization.value);
                continue;
            }
            if !is_yaml(file) {
                continue;
            }
            let Ok(documents) = graph.tree.read(file).and_then(|content| yaml::documents(file, &content)) else {
                continue;
            };
            for document in &documents {
                ledger.object(file, document);
                if let Some(listed) = &listed {
                    external(file, document, listed, &mut findings);
                }
            }
        }
        ledgers.push(ledger);
    }
    // Another application may make it: certificates are often made apart from what uses them.
    let made: BTreeSet<String> = ledgers.iter_mut().flat_map(|ledger| std::mem::take(&mut ledger.made)).collect();
    findings.extend(ledgers.into_iter().flat_map(|ledger| ledger.missing(&made)));
    findings
}

/// The secrets of the list with their keys; `None` without it.
fn listed(graph: &Graph, findings: &mut Vec<Finding>) -> Option<BTreeMap<String, BTreeSet<String>>> {
    if !graph.tree.contains(FILE) {
        return None;
    }
    let read = match graph.tree.read(FILE) {
        Ok(content) => ci_secrets::read(FILE, &content),
        Err(error) => Err(Box::new(Finding::error("ci-secrets", FILE, 0).message(error.to_string()))),
    };
    match read {
        Ok(list) => {
            let keys = |data: Vec<(String, _)>| data.into_iter().map(|(key, _)| key).collect();
            Some(list.secrets.into_iter().map(|secret| (secret.name, keys(secret.data))).collect())
        }
        Err(finding) => {
            findings.push(*finding);
            None
        }
    }
}

/// Compares what an ExternalSecret reads with the list.
fn external(file: &str, document: &Document, listed: &BTreeMap<String, BTreeSet<String>>, findings: &mut Vec<Finding>) {
    let value = &document.value;
    if value.get("kind").and_then(Value::as_str) != Some("ExternalSecret") {
        return;
    }
    let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("?");
    let data = value.pointer("/spec/data").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let from = value.pointer("/spec/dataFrom").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let read = data.iter().enumerate().map(|(i, entry)| (format!("/spec/data/{i}/remoteRef"), entry.get("remoteRef")));
    let extracted =
        from.iter().enumerate().map(|(i, entry)| (format!("/spec/dataFrom/{i}/extract"), entry.get("extract")));
    for (pointer, reference) in read.chain(extracted) {
        let Some(reference) = reference else { continue };
        let Some(key) = reference.get("key").and_then(Value::as_str).filter(|key| !key.contains("${")) else {
            continue;
        };
        let property = reference.get("property").and_then(Value::as_str);
        let lacks = match (listed.get(key), property) {
            (None, _) => format!("the secret \"{key}\""),
            (Some(keys), Some(property)) if !keys.contains(property) => {
                format!("the key \"{property}\" of the secret \"{key}\"")
            }
            _ => continue,
        };
        findings.push(
            Finding::warning("secret-not-listed", file, document.lines.at(&pointer))
                .message(format!("ExternalSecret {name} reads {lacks}, which {FILE} does not make"))
                .fix(format!("add it to {FILE}")),
        );
    }
}

impl Ledger {
    fn kustomization(&mut self, value: &Value) {
        let generators = value.get("secretGenerator").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        self.made.extend(generators.iter().filter_map(|g| g.get("name")?.as_str()).map(str::to_owned));
        let remote = |entry: &Value| entry.as_str().is_some_and(|text| text.contains("://") || text.contains("?ref="));
        let resources = value.get("resources").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        self.has_charts |= value.get("helmCharts").is_some() || resources.iter().any(remote);
    }

    fn object(&mut self, file: &str, document: &Document) {
        let value = &document.value;
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
        let (kind, name) = (text("/kind").unwrap_or_default(), text("/metadata/name").unwrap_or_default());
        let made = match kind {
            "Secret" | "SealedSecret" => Some(name),
            "ExternalSecret" => text("/spec/target/name").or(Some(name)),
            "Certificate" => text("/spec/secretName"),
            _ => None,
        };
        self.made.extend(made.map(str::to_owned));
        if kind == "Cluster" && text("/apiVersion").is_some_and(|version| version.starts_with("postgresql.cnpg.io/")) {
            self.made.extend(["app", "superuser", "ca", "server", "replication"].map(|part| format!("{name}-{part}")));
        }
        let pods = ["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Pod", "ReplicaSet"];
        if pods.contains(&kind) {
            let mut found = Vec::new();
            needs(value, "", &mut found);
            let who = format!("{kind} {name}");
            self.needed.extend(
                found
                    .into_iter()
                    .map(|(secret, pointer)| (secret, who.clone(), file.to_owned(), document.lines.at(&pointer))),
            );
        }
    }

    fn missing(self, made: &BTreeSet<String>) -> Vec<Finding> {
        let missing = self.needed.into_iter().filter(|(secret, ..)| !made.contains(secret) && !secret.contains("${"));
        let has_charts = self.has_charts;
        missing
            .map(|(secret, who, file, line)| {
                let (finding, unless) = match has_charts {
                    true => (Finding::warning("secret-unmade", &file, line), ", unless one of its charts does"),
                    false => (Finding::error("secret-unmade", &file, line), ""),
                };
                finding
                    .message(format!("{who} needs the secret \"{secret}\", which nothing in the repository makes{unless}; its pods wait for it"))
                    .fix("add an ExternalSecret for it, or mark the reference optional: true")
            })
            .collect()
    }
}

/// The secrets that a pod cannot start without, with the JSON pointers of their names.
fn needs(value: &Value, pointer: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                let below = format!("{pointer}/{}", token(key));
                let name = match key.as_str() {
                    "secretKeyRef" | "secretRef" => field.get("name"),
                    "secret" => field.get("secretName").or_else(|| field.get("name")),
                    _ => None,
                };
                let optional = field.get("optional").and_then(Value::as_bool) == Some(true);
                if let Some(name) = name.and_then(Value::as_str).filter(|_| !optional) {
                    found.push((name.to_owned(), below.clone()));
                }
                needs(field, &below, found);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| needs(item, &format!("{pointer}/{i}"), found));
        }
        _ => {}
    }
}
