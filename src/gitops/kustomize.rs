//! As much of kustomize as decides about ApplicationSets: resources, patches, prefixes and suffixes of names.
//!
//! What is not followed (components, replacements, generators, remote resources) is a finding, and never guessed.

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::Value;

use super::finding::Finding;
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
    "components",
    "configurations",
    "generators",
    "helmCharts",
    "helmChartInflationGenerator",
    "replacements",
    "transformers",
    "validators",
    "vars",
];

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
    build.folder(tree, folder)?;
    Ok(build)
}

impl Build {
    fn folder(&mut self, tree: &dyn Tree, folder: &str) -> Result<()> {
        let file =
            kustomization(tree, folder).ok_or_else(|| Error::failed(format!("{folder} has no kustomization.yaml")))?;
        if !self.under_way.insert(folder.to_owned()) {
            return Err(Error::failed(format!("{file} includes itself")));
        }
        let document = yaml::document(&file, &tree.read(&file)?)?;
        let value = &document.value;
        let first = self.objects.len();
        for field in ["resources", "bases"] {
            let entries = value.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            for (index, entry) in entries.iter().enumerate() {
                let line = document.lines.at(&format!("/{field}/{index}"));
                self.resource(tree, folder, &file, line, entry)?;
            }
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
        let mut objects = self.objects.split_off(first);
        let read = |path: &str| -> Result<Document> {
            let path = resolved(folder, path).ok_or_else(|| Error::failed(format!("{path} leaves the repository")))?;
            yaml::document(&path, &tree.read(&path)?)
        };
        let findings = transform(value, &document.lines, &file, &mut objects, &read)?;
        self.findings.extend(findings);
        self.objects.append(&mut objects);
        self.under_way.remove(folder);
        Ok(())
    }

    fn resource(&mut self, tree: &dyn Tree, folder: &str, file: &str, line: u32, entry: &Value) -> Result<()> {
        let Some(entry) = entry.as_str() else {
            return Err(Error::failed(format!("{file}:{line}: {entry} is not a path")));
        };
        let path = resolved(folder, entry)
            .ok_or_else(|| Error::failed(format!("{file}:{line}: {entry} leads out of the repository")))?;
        if tree.contains(&path) {
            for document in yaml::documents(&path, &tree.read(&path)?)? {
                self.objects.push(Object { file: path.clone(), document });
            }
            return Ok(());
        }
        if kustomization(tree, &path).is_some() {
            return self.folder(tree, &path).with_context(|| format!("{file}:{line}"));
        }
        if entry.contains("://")
            || entry.contains("?ref=")
            || entry.starts_with("git@")
            || entry.starts_with("github.com/")
        {
            self.findings.push(
                Finding::warning("remote-resource", file, line)
                    .message(format!("{entry} is fetched when it is built; ApplicationSets in it are not predicted"))
                    .fix("keep ApplicationSets in the repository"),
            );
            return Ok(());
        }
        Err(Error::failed(format!("{file}:{line}: there is no file or kustomization folder {path}")))
    }
}

/// Applies patches, prefix and suffix of a kustomization, or of an Application's `kustomize`, in kustomize's order.
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
            apply(patch, file, line, objects, read, &mut findings)?;
        }
    }
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let (prefix, suffix) = (text("namePrefix"), text("nameSuffix"));
    for object in objects.iter_mut() {
        if let Some(name) = object.document.value.pointer_mut("/metadata/name")
            && let Some(old) = name.as_str()
        {
            *name = format!("{prefix}{old}{suffix}").into();
        }
    }
    Ok(findings)
}

fn apply(
    entry: &Value,
    file: &str,
    line: u32,
    objects: &mut [Object],
    read: &dyn Fn(&str) -> Result<Document>,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let place = || format!("{file}:{line}");
    // patchesStrategicMerge lists paths or the patches themselves.
    let inline = entry.get("patch").and_then(Value::as_str).or_else(|| entry.as_str().filter(|t| t.contains('\n')));
    let path = entry.get("path").and_then(Value::as_str).or_else(|| entry.as_str().filter(|t| !t.contains('\n')));
    let patch = match (inline, path) {
        (Some(text), _) => yaml::document(&format!("{}: patch", place()), text.as_bytes())?,
        (None, Some(path)) => read(path).with_context(place)?,
        (None, None) => return Err(Error::failed(format!("{}: a patch needs patch or path", place()))),
    };
    let target = entry.get("target").filter(|target| target.is_object());
    let target = match (target, &patch.value) {
        (Some(target), _) => Target::new(target).with_context(place)?,
        (None, Value::Object(_)) => Target::of(&patch.value),
        (None, _) => return Err(Error::failed(format!("{}: a JSON patch needs a target", place()))),
    };
    for object in objects.iter_mut().filter(|object| target.matches(&object.document.value)) {
        let name = object.document.value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("?").to_owned();
        match &patch.value {
            Value::Array(_) => {
                let operations: json_patch::Patch = serde_json::from_value(patch.value.clone())
                    .with_context(|| format!("{}: this is not a JSON patch", place()))?;
                json_patch::patch(&mut object.document.value, &operations)
                    .with_context(|| format!("{}: the patch does not fit {name} ({})", place(), object.file))?;
            }
            Value::Object(_) if patch.value.to_string().contains("\"$") => findings.push(
                Finding::warning("kustomize-not-followed", file, line)
                    .message(format!("the patch of {name} has a $patch directive, which k8tre does not follow"))
                    .fix("use a JSON patch"),
            ),
            Value::Object(_) => {
                let kept = object.document.value.pointer("/metadata/name").cloned();
                json_patch::merge(&mut object.document.value, &patch.value);
                // The name in a strategic patch tells what is patched; it renames nothing.
                if let (Some(kept), Some(name)) = (kept, object.document.value.pointer_mut("/metadata/name")) {
                    *name = kept;
                }
            }
            _ => return Err(Error::failed(format!("{}: the patch is neither a list nor a map", place()))),
        }
    }
    Ok(())
}

/// Which objects a patch means.
struct Target {
    group: Option<String>,
    version: Option<String>,
    kind: Option<Wanted>,
    name: Option<Wanted>,
    namespace: Option<Wanted>,
    labels: Vec<(String, String)>,
}

/// What a target says of a field: an expression, which is mostly no more than a text. A repository of many patches has
/// many targets for each object, and comparing texts is far quicker.
enum Wanted {
    Text(String),
    Expression(Regex),
}

impl Wanted {
    fn new(expression: &str) -> Result<Wanted> {
        let inner = expression.strip_prefix('^').and_then(|rest| rest.strip_suffix('$')).unwrap_or(expression);
        let plain = inner.replace("\\-", "-").replace("\\.", "\u{1}");
        Ok(match plain.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '\u{1}')) {
            true => Wanted::Text(plain.replace('\u{1}', ".")),
            false => Wanted::Expression(Regex::new(&format!("^(?:{expression})$"))?),
        })
    }

    fn is(&self, text: &str) -> bool {
        match self {
            Wanted::Text(wanted) => wanted == text,
            Wanted::Expression(regex) => regex.is_match(text),
        }
    }
}

impl Target {
    fn new(target: &Value) -> Result<Target> {
        let text = |field: &str| target.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
        let regex = |field: &str| text(field).map(Wanted::new).transpose();
        if text("annotationSelector").is_some() {
            return Err(Error::failed("annotationSelector of a patch target is not supported"));
        }
        let labels = text("labelSelector").map_or(Vec::new(), |text| {
            text.split(',')
                .filter_map(|part| part.split_once('='))
                .map(|(k, v)| (k.trim().into(), v.trim().into()))
                .collect()
        });
        Ok(Target {
            group: text("group").map(Into::into),
            version: text("version").map(Into::into),
            kind: regex("kind")?,
            name: regex("name")?,
            namespace: regex("namespace")?,
            labels,
        })
    }

    /// What a strategic patch says about itself.
    fn of(patch: &Value) -> Target {
        let exact = |pointer: &str| {
            let text = patch.pointer(pointer).and_then(Value::as_str)?;
            Some(Wanted::Text(text.to_owned()))
        };
        let (kind, name) = (exact("/kind"), exact("/metadata/name"));
        Target { group: None, version: None, kind, name, namespace: None, labels: Vec::new() }
    }

    /// Asked once for each pair of a patch and an object: the name, which tells most of them apart, comes first.
    fn matches(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        fn text<'a>(value: &'a Value, field: &str) -> &'a str {
            value[field].as_str().unwrap_or_default()
        }
        let fits = |wanted: &Option<Wanted>, value: &Value, field: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted.is(text(value, field)))
        };
        if !fits(&self.name, metadata, "name") || !fits(&self.kind, object, "kind") {
            return false;
        }
        let api_version = text(object, "apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.group.as_ref().is_none_or(|wanted| wanted == group)
            && self.version.as_ref().is_none_or(|wanted| wanted == version)
            && fits(&self.namespace, metadata, "namespace")
            && self.labels.iter().all(|(key, value)| metadata["labels"][key].as_str() == Some(value))
    }
}
