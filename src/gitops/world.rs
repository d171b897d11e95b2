//! What generators look at: the repository's folders and files, and the clusters that Argo CD knows.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use gotmpl::Value;
use serde::{Deserialize, Serialize};

use super::appset::Pattern;
use super::glob;
use super::params::{self, Map};
use super::selector::{Miss, Selector};
use super::tree::Tree;
use super::url;

/// A cluster as its Secret in Argo CD describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    pub name: String,
    pub server: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

/// Address of the cluster that Argo CD runs in.
pub const IN_CLUSTER: &str = "https://kubernetes.default.svc";

const SECRET_TYPE: &str = "argocd.argoproj.io/secret-type";

/// Annotations of the Secret that are Argo CD's or kubectl's own state; the controller does not hand them on.
const PRIVATE_ANNOTATIONS: &[&str] = &[
    "argocd.argoproj.io/refresh",
    "argocd.argoproj.io/refresh-timestamp",
    "argocd.argoproj.io/hydrate",
    "argocd.argoproj.io/hydrate-timestamp",
    "argocd.argoproj.io/tracking-id",
    "argocd.argoproj.io/installation-id",
    "kubectl.kubernetes.io/last-applied-configuration",
];

pub struct World<'a> {
    pub tree: &'a dyn Tree,
    repository: String,
    folders: Vec<String>,
    clusters: Vec<Known>,
    /// Clusters by label and value, by their number.
    by_label: HashMap<String, HashMap<String, Vec<usize>>>,
    local: Option<Selected>,
}

struct Known {
    name: String,
    server: String,
    labels: BTreeMap<String, String>,
    params: Selected,
}

/// A cluster's parameters for either template language.
pub struct Selected {
    pub go: Map,
    pub simple: Map,
}

impl<'a> World<'a> {
    pub fn new(tree: &'a dyn Tree, repo_url: &str, clusters: &[Cluster]) -> Self {
        // Argo CD keeps one cluster for each name.
        let by_name: BTreeMap<&str, &Cluster> =
            clusters.iter().map(|cluster| (cluster.name.as_str(), cluster)).collect();
        let clusters: Vec<Known> = by_name.into_values().map(known).collect();
        let mut by_label: HashMap<String, HashMap<String, Vec<usize>>> = HashMap::new();
        for (number, cluster) in clusters.iter().enumerate() {
            for (key, value) in &cluster.labels {
                by_label.entry(key.clone()).or_default().entry(value.clone()).or_default().push(number);
            }
        }
        // A cluster without a Secret has no labels, so that only an empty selector means it.
        let local = (!clusters.iter().any(|cluster| cluster.server == IN_CLUSTER)).then(|| {
            let names =
                [("name", "in-cluster"), ("nameNormalized", "in-cluster"), ("server", IN_CLUSTER), ("project", "")];
            let params: Map = names.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
            Selected { go: params.clone(), simple: params }
        });
        World { tree, repository: url::normalized(repo_url), folders: folders(tree), clusters, by_label, local }
    }

    pub fn is_this_repository(&self, repo_url: &str) -> bool {
        url::normalized(repo_url) == self.repository
    }

    /// The folders that the patterns mean, sorted; one that an `exclude` means is never among them.
    pub fn folders(&self, patterns: &[Pattern]) -> Vec<&str> {
        let mut found = BTreeSet::new();
        for pattern in patterns.iter().filter(|pattern| !pattern.exclude) {
            for folder in beginning(&self.folders, glob::literal_prefix(&pattern.path)) {
                if glob::folder(&pattern.path, folder) == Some(true) {
                    found.insert(folder.as_str());
                }
            }
        }
        found.retain(|folder| !patterns.iter().any(|p| p.exclude && glob::folder(&p.path, folder) == Some(true)));
        found.into_iter().collect()
    }

    pub fn files(&self, patterns: &[Pattern]) -> Vec<&str> {
        let matches = |pattern: &Pattern, file: &str| glob::file(&pattern.path, file) == Some(true);
        let mut found = BTreeSet::new();
        for pattern in patterns.iter().filter(|pattern| !pattern.exclude) {
            let near = beginning(self.tree.paths(), glob::literal_prefix(glob::file_pattern(&pattern.path)));
            found.extend(near.iter().map(String::as_str).filter(|file| matches(pattern, file)));
        }
        found.retain(|file| !patterns.iter().any(|p| p.exclude && matches(p, file)));
        found.into_iter().collect()
    }

    /// The clusters that a selector means. An unusable value is an error, as in the API server.
    pub fn select(&self, selector: &Selector) -> Result<Vec<&Selected>, String> {
        let values = selector.labels.values().chain(selector.expressions.iter().flat_map(|e| &e.values));
        for value in values {
            if let Some(problem) = super::labels::value_problem(value) {
                return Err(format!("\"{value}\" cannot be the value of a label: {problem}"));
            }
        }
        let keys = selector.labels.keys().chain(selector.expressions.iter().map(|expression| &expression.key));
        for key in keys {
            if let Some(problem) = super::labels::key_problem(key) {
                return Err(format!("\"{key}\" cannot be the key of a label: {problem}"));
            }
        }
        if selector.is_empty() {
            return Ok(self.clusters.iter().map(|cluster| &cluster.params).chain(&self.local).collect());
        }
        let matches = |cluster: &&Known| selector.matches(|key| cluster.labels.get(key).map(String::as_str));
        // The rarest label decides how many clusters are looked at.
        let with = |(key, value): (&String, &String)| {
            self.by_label.get(key).and_then(|values| values.get(value)).map_or(&[][..], Vec::as_slice)
        };
        Ok(match selector.labels.iter().map(with).min_by_key(|numbers| numbers.len()) {
            Some(numbers) => {
                numbers.iter().map(|n| &self.clusters[*n]).filter(matches).map(|cluster| &cluster.params).collect()
            }
            None => self.clusters.iter().filter(matches).map(|cluster| &cluster.params).collect(),
        })
    }

    /// For each cluster, its name and what keeps it from being selected.
    pub fn misses(&self, selector: &Selector) -> Vec<(&str, Vec<Miss>)> {
        let misses = |cluster: &Known| selector.misses(|key| cluster.labels.get(key).map(String::as_str));
        self.clusters.iter().map(|cluster| (cluster.name.as_str(), misses(cluster))).collect()
    }

    /// Why Argo CD can send nothing to a destination.
    pub fn unreachable(&self, server: &str, name: &str) -> Option<String> {
        let server = server.trim_end_matches('/');
        let known = match (server, name) {
            ("", "") => return Some("names no cluster".into()),
            ("", "in-cluster") | (IN_CLUSTER, "") => true,
            ("", name) => self.clusters.iter().any(|cluster| cluster.name == name),
            (server, "") => self.clusters.iter().any(|cluster| cluster.server.trim_end_matches('/') == server),
            (server, name) => return Some(format!("names a cluster twice, as {name} and as {server}")),
        };
        (!known).then(|| format!("is \"{server}{name}\", which is not a cluster of this Argo CD"))
    }
}

/// Those of a sorted list that begin with a text: a repository of many generators has many patterns for each path.
fn beginning<'a>(sorted: &'a [String], prefix: &str) -> &'a [String] {
    let start = sorted.partition_point(|path| path.as_str() < prefix);
    let length = sorted[start..].iter().take_while(|path| path.starts_with(prefix)).count();
    &sorted[start..start + length]
}

fn known(cluster: &Cluster) -> Known {
    let mut labels = cluster.labels.clone();
    labels.entry(SECRET_TYPE.into()).or_insert_with(|| "cluster".into());
    let texts = |map: &BTreeMap<String, String>| -> Map {
        map.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect()
    };
    let mut annotations = texts(&cluster.annotations);
    annotations.retain(|key, _| !PRIVATE_ANNOTATIONS.contains(&&**key));
    let common = Map::from([
        ("name".into(), cluster.name.as_str().into()),
        ("nameNormalized".into(), params::normalized(&cluster.name).into()),
        ("server".into(), cluster.server.as_str().into()),
        ("project".into(), "".into()),
    ]);
    let mut simple = common.clone();
    let dotted = |prefix: &str, map: &Map| -> Vec<_> {
        map.iter().map(|(key, value)| (format!("metadata.{prefix}.{key}").into(), value.clone())).collect()
    };
    simple.extend(dotted("annotations", &annotations));
    simple.extend(dotted("labels", &texts(&labels)));
    let mut metadata = Map::from([("labels".into(), texts(&labels).into())]);
    if !cluster.annotations.is_empty() {
        metadata.insert("annotations".into(), annotations.into());
    }
    let mut go = common;
    go.insert("metadata".into(), Value::from(metadata));
    Known { name: cluster.name.clone(), server: cluster.server.clone(), labels, params: Selected { go, simple } }
}

/// Every folder that holds a file, however deep; hidden ones and what is in them are left out.
fn folders(tree: &dyn Tree) -> Vec<String> {
    let mut folders = BTreeSet::new();
    let mut last = "";
    for path in tree.paths() {
        let Some((folder, _)) = path.rsplit_once('/') else { continue };
        if folder == last {
            continue;
        }
        last = folder;
        let ends = folder.match_indices('/').map(|(end, _)| end).chain([folder.len()]);
        for end in ends {
            let folder = &folder[..end];
            let name = folder.rsplit('/').next().unwrap_or(folder);
            if name.starts_with('.') {
                break;
            }
            if !folders.contains(folder) {
                folders.insert(folder.to_owned());
            }
        }
    }
    folders.into_iter().collect()
}
