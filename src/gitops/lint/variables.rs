//! `${NAME}` in manifests: what K8TRE's plugin replaces, and what stays as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::files::Graph;
use super::sets::Sets;
use crate::gitops::appset::ApplicationSet;
use crate::gitops::finding::Finding;

/// The variables that the plugin of K8TRE's guide replaces, whatever else it is given.
const REPLACED: [&str; 2] = ["ENVIRONMENT", "DOMAIN"];

/// `${NAME}`.
static USED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\$\{([A-Z][A-Z0-9_]*)\}").expect("it is constant"));

/// `name: NAME` of a container's environment, `NAME=` of a script.
static OWN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?m)^\s*(?:- )?name:\s*"?([A-Z][A-Z0-9_]*)"?\s*$|\b([A-Z][A-Z0-9_]*)="#).expect("it is constant")
});

pub fn findings(sets: &Sets, graph: &Graph) -> Vec<Finding> {
    // The same file is built for several environments; one finding for each variable of each ApplicationSet.
    let mut places: BTreeMap<(String, String), (String, u32)> = BTreeMap::new();
    let mut findings = Vec::new();
    for (set, folders) in &sets.folders {
        let Some(given) = plugin_variables(set) else { continue };
        let files: BTreeSet<String> = folders.iter().flat_map(|folder| graph.built(folder)).collect();
        for file in files {
            let Ok(Ok(text)) = graph.tree.read(&file).map(String::from_utf8) else { continue };
            let own = own_variables(&text);
            for (number, line) in (1..).zip(text.lines()) {
                let code = line.split(" #").next().unwrap_or(line);
                for found in USED.captures_iter(code).filter(|_| !line.trim_start().starts_with('#')) {
                    if own.contains(&found[1]) {
                        continue;
                    }
                    let key = (set.name.clone(), found[1].to_owned());
                    places.entry(key).or_insert_with(|| (file.clone(), number));
                }
            }
        }
        for ((_, name), (file, line)) in
            places.range((set.name.clone(), String::new())..).take_while(|((s, _), _)| *s == set.name)
        {
            let is_given = given.contains(name.as_str());
            if is_given && REPLACED.contains(&name.as_str()) {
                continue;
            }
            let (what, fix) = match is_given {
                true => (
                    format!(
                        "ApplicationSet {} passes {name}, but the plugin replaces only {}",
                        set.name,
                        REPLACED.join(" and ")
                    ),
                    "patch the value in the env folder",
                ),
                false => (
                    format!("nothing sets ${{{name}}}: ApplicationSet {} does not pass it to the plugin", set.name),
                    "pass it in plugin.env, or patch the value in the env folder",
                ),
            };
            findings.push(Finding::error("variable-unset", file, *line).message(what).fix(fix));
        }
    }
    findings
}

/// Variables of a shell: set in the environment of the file's own containers, or by a script in it.
fn own_variables(text: &str) -> BTreeSet<&str> {
    OWN.captures_iter(text).filter_map(|c| c.get(1).or_else(|| c.get(2))).map(|name| name.as_str()).collect()
}

/// The variables that an ApplicationSet gives to its plugin; `None` without a plugin, since nothing replaces then.
fn plugin_variables(set: &ApplicationSet) -> Option<BTreeSet<&str>> {
    let plugin = set.value.pointer("/spec/template/spec/source/plugin")?;
    let env = plugin.get("env").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    Some(env.iter().filter_map(|entry| entry.get("name").and_then(Value::as_str)).collect())
}
