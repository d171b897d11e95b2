//! Patches of kustomizations, and which objects they mean.

use regex::Regex;
use serde_json::Value;

use super::Object;
use crate::error::{Error, Result, ResultExt};
use crate::gitops::finding::Finding;
use crate::gitops::yaml::{self, Document};

/// Applies one entry of a list of patches.
pub fn apply(
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
