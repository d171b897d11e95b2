//! Checks of the ApplicationSets and of the env folders that they take.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::gitops::appset::{ApplicationSet, Generator, Kind};
use crate::gitops::finding::Finding;
use crate::gitops::generate::Event;
use crate::gitops::labels;
use crate::gitops::overlay;
use crate::gitops::predict::{Cluster, predict, selections};
use crate::gitops::repository::Repository;
use crate::gitops::tree::Tree;
use crate::gitops::world::World;

/// The ApplicationSets with the folders that their generators find, whatever the cluster.
pub struct Sets<'a> {
    pub repository: &'a Repository,
    pub tree: &'a dyn Tree,
    pub folders: Vec<(&'a ApplicationSet, Vec<String>)>,
    world: World<'a>,
}

impl<'a> Sets<'a> {
    pub fn new(repository: &'a Repository, tree: &'a dyn Tree) -> Self {
        let world = World::new(tree, &repository.root.repo_url, &[]);
        let folders =
            repository.application_sets.iter().map(|set| (set, found(&set.spec.generators, &world))).collect();
        Sets { repository, tree, folders, world }
    }

    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (set, folders) in &self.folders {
            if folders.is_empty() && overlay::any(&set.spec.generators, &|g| matches!(g.kind, Kind::Git(_))) {
                findings.push(
                    Finding::warning("no-env-folder", &set.file, set.line("/spec/generators"))
                        .message(format!(
                            "no folder of the repository matches ApplicationSet {}: it makes nothing",
                            set.name
                        ))
                        .fix("make the env folder, or remove the ApplicationSet"),
                );
            }
            self.predicted(set, &mut findings);
            selector_values(set, &mut findings);
            plugin(set, &mut findings);
        }
        self.environments(&mut findings);
        findings
    }

    /// Two clusters alike show names that do not tell clusters apart; labels that templates name are given.
    fn predicted(&self, set: &ApplicationSet, findings: &mut Vec<Finding>) {
        let Some(wanted) = selections(set, &self.world).into_iter().find_map(|event| match event {
            Event::Selection { wanted, .. } => Some(wanted),
            _ => None,
        }) else {
            return;
        };
        let mut labels: BTreeMap<String, String> =
            label_keys(&set.value).into_iter().map(|key| (key, "x".to_owned())).collect();
        labels.retain(|key, _| !wanted.expressions.iter().any(|expression| expression.key == *key));
        labels.extend(wanted.labels.clone());
        let clusters = ["one", "two"].map(|name| Cluster {
            name: name.into(),
            server: format!("https://{name}"),
            labels: labels.clone(),
            annotations: BTreeMap::new(),
        });
        let alone = Repository {
            root: self.repository.root.clone(),
            application_sets: vec![set.clone()],
            findings: Vec::new(),
        };
        findings.extend(predict(&alone, self.tree, &clusters).findings);
    }

    /// Env folders by application: odd names among the usual ones, and folders of developers on the base branch.
    fn environments(&self, findings: &mut Vec<Finding>) {
        let mut by_env: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut apps = BTreeSet::new();
        for folder in self.folders.iter().flat_map(|(_, folders)| folders) {
            let app = overlay::app_of(folder);
            apps.insert(app);
            let env = folder.rsplit('/').next().unwrap_or(folder);
            if folder.ends_with(&format!("/envs/{env}")) {
                by_env.entry(env).or_default().insert(app);
            }
        }
        let usual: Vec<&str> = by_env.iter().filter(|(_, a)| a.len() * 2 > apps.len()).map(|(env, _)| *env).collect();
        for folder in self.folders.iter().flat_map(|(_, folders)| folders) {
            let Some((parent, env)) = folder.rsplit_once('/').filter(|(parent, _)| parent.ends_with("/envs")) else {
                continue;
            };
            let file = self.tree.below(folder).first().map_or(folder.as_str(), String::as_str);
            if env.starts_with("dev-") {
                findings.push(
                    Finding::warning("developer-folder", file, 0)
                        .message(format!("{folder} belongs on a developer's branch: here it serves that developer's cluster from the base branch"))
                        .fix(format!("git rm -r {folder}")),
                );
            } else if let Some(like) = usual.iter().find(|usual| **usual != env && alike(usual, env)) {
                findings.push(
                    Finding::warning("unusual-environment", file, 0)
                        .message(format!("the environment {env} looks like {like}, which most applications have; a cluster can have only one of them"))
                        .fix(format!("git mv {folder} {parent}/{like}, or remove it")),
                );
            }
        }
        for (set, folders) in &self.folders {
            let has = |env: &str| folders.iter().any(|folder| folder.ends_with(&format!("/envs/{env}")));
            let missing: Vec<&str> = usual.iter().copied().filter(|env| !has(env)).collect();
            if !folders.is_empty() && !missing.is_empty() {
                findings.push(
                    Finding::note("environment-missing", &set.file, set.line("/spec/generators"))
                        .message(format!("ApplicationSet {} has no folder for {}", set.name, missing.join(", ")))
                        .fix("make the env folder, if the application is wanted there"),
                );
            }
        }
    }
}

/// `prd` and `prod`: the letters of the shorter occur in order in the longer, and the ends are the same.
fn alike(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    let mut letters = long.chars();
    short.len() > 1
        && short.chars().next() == long.chars().next()
        && short.chars().last() == long.chars().last()
        && short.chars().all(|c| letters.any(|l| l == c))
}

/// What the git generators find. Templated patterns depend on other generators and are left out.
fn found(generators: &[Generator], world: &World) -> Vec<String> {
    let mut folders = Vec::new();
    for generator in generators {
        match &generator.kind {
            Kind::Git(git) if world.is_this_repository(&git.repo_url) => {
                let fixed: Vec<_> = git.directories.iter().filter(|p| !p.path.contains("{{")).cloned().collect();
                folders.extend(world.folders(&fixed).into_iter().map(str::to_owned));
                let files: Vec<_> = git.files.iter().filter(|p| !p.path.contains("{{")).cloned().collect();
                let of = |file: &str| file.rsplit_once('/').map(|(folder, _)| folder.to_owned());
                folders.extend(world.files(&files).into_iter().filter_map(of));
            }
            Kind::Matrix(children) | Kind::Merge { generators: children, .. } => folders.extend(found(children, world)),
            _ => {}
        }
    }
    folders.sort();
    folders.dedup();
    folders
}

static LABEL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"metadata\.labels(?:\.([A-Za-z0-9_]+)|\s+"([^"]+)")"#).expect("it is constant"));

/// Labels of the cluster that templates name: `.metadata.labels.x` and `index .metadata.labels "x"`.
fn label_keys(value: &Value) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let mut stack = vec![value];
    while let Some(value) = stack.pop() {
        match value {
            Value::String(text) => {
                let found = LABEL.captures_iter(text).filter_map(|c| c.get(1).or_else(|| c.get(2)));
                keys.extend(found.map(|key| key.as_str().to_owned()));
            }
            Value::Array(items) => stack.extend(items),
            Value::Object(fields) => stack.extend(fields.values()),
            _ => {}
        }
    }
    keys
}

fn selector_values(set: &ApplicationSet, findings: &mut Vec<Finding>) {
    let mut stack: Vec<&Generator> = set.spec.generators.iter().collect();
    while let Some(generator) = stack.pop() {
        match &generator.kind {
            Kind::Clusters(clusters) => {
                for (key, value) in clusters.selector.labels.iter().filter(|(_, value)| !value.contains("{{")) {
                    if let Some(problem) = labels::value_problem(value).or_else(|| labels::key_problem(key)) {
                        let pointer = format!("{}/clusters/selector/matchLabels", generator.pointer);
                        findings.push(
                            Finding::error("label-invalid", &set.file, set.line(&pointer))
                                .message(format!("no cluster can have the label {key}={value}: {problem}"))
                                .fix("at most 63 letters, digits, '-', '_' and '.'"),
                        );
                    }
                }
            }
            Kind::Matrix(children) | Kind::Merge { generators: children, .. } => stack.extend(children),
            _ => {}
        }
    }
}

/// A plugin with a version is named `<name>-<version>`; without, Argo CD finds none.
fn plugin(set: &ApplicationSet, findings: &mut Vec<Finding>) {
    let pointer = "/spec/template/spec/source/plugin/name";
    let Some(name) = set.value.pointer(pointer).and_then(Value::as_str) else { return };
    let versioned =
        name.rsplit('-').next().is_some_and(|last| last.starts_with('v') && last.contains(char::is_numeric));
    if name.starts_with("kustomize-with-envsubst") && !versioned {
        findings.push(
            Finding::error("plugin-name", &set.file, set.line(pointer))
                .message(format!("the plugin \"{name}\" does not exist: K8TRE's has a version, and the name holds it"))
                .fix("name: kustomize-with-envsubst-v1.0"),
        );
    }
}
