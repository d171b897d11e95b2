//! Which Applications need more than the namespaces that an Argo CD may manage: objects in others, and objects in none.
//! Argo CD would refuse to compare any of their objects.
//!
//! Told from the files in the repository; what a chart or a plugin makes is not seen.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};

use super::kustomize::{kustomization, resolved};
use super::predict::Prediction;
use super::tree::Tree;
use super::{url, yaml};

/// Kinds that live in no namespace: Kubernetes' own, and those of operators that TREs use.
const OF_CLUSTER: [&str; 30] = [
    "APIService",
    "CSIDriver",
    "CSINode",
    "CertificateSigningRequest",
    "CiliumClusterwideNetworkPolicy",
    "CiliumLoadBalancerIPPool",
    "ClusterExternalSecret",
    "ClusterIssuer",
    "ClusterRole",
    "ClusterRoleBinding",
    "ClusterSecretStore",
    "CustomResourceDefinition",
    "FlowSchema",
    "GatewayClass",
    "IngressClass",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "PriorityLevelConfiguration",
    "RuntimeClass",
    "StorageClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "VolumeAttributesClass",
    "VolumeSnapshotClass",
];

/// What of an Application is outside.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Misfit {
    pub application: String,
    pub why: String,
}

/// All of them; with no namespaces given, everything fits.
pub fn misfits(tree: &dyn Tree, prediction: &Prediction, namespaces: &BTreeSet<String>) -> Vec<Misfit> {
    let mut misfits = BTreeSet::new();
    if namespaces.is_empty() {
        return Vec::new();
    }
    for app in &prediction.applications {
        let mut say = |why: String| _ = misfits.insert(Misfit { application: app.name.to_string(), why });
        if !namespaces.contains(&*app.namespace) {
            say(format!("it is deployed to the namespace {}", app.namespace));
        }
        if app.namespace_metadata.is_some() {
            say(format!("its ApplicationSet's templatePatch gives the namespace {} labels", app.namespace));
        }
        let sources = app.source.value();
        let sources = sources.as_array().cloned().unwrap_or_else(|| vec![sources]);
        let ours = url::normalized(&app.repo_url);
        let is_ours = |source: &&Value| source["repoURL"].as_str().is_some_and(|from| url::normalized(from) == ours);
        for path in sources.iter().filter(is_ours).filter_map(|source| source["path"].as_str()) {
            let mut found = Found::default();
            found.folder(tree, path, None);
            for (object, namespace) in &found.objects {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
                if OF_CLUSTER.contains(&kind.as_str()) {
                    say(format!("{kind} {name} is in no namespace"));
                } else if let Some(namespace) = namespace.as_ref().filter(|there| !namespaces.contains(*there)) {
                    say(format!("{kind} {name} is in the namespace {namespace}"));
                }
            }
        }
    }
    misfits.into_iter().collect()
}

/// Labels and annotations that Applications want for their namespaces, by namespace.
pub fn namespaces(prediction: &Prediction, held: &BTreeSet<String>) -> BTreeMap<String, Value> {
    let mut all: BTreeMap<String, Value> = held.iter().map(|name| (name.clone(), json!({}))).collect();
    for app in &prediction.applications {
        let (Some(wanted), Some(metadata)) = (&app.namespace_metadata, all.get_mut(&*app.namespace)) else { continue };
        for field in ["labels", "annotations"] {
            for (key, value) in wanted.value()[field].as_object().into_iter().flatten() {
                metadata[field][key] = value.clone();
            }
        }
    }
    all
}

/// Objects, each with the namespace that its files say, if they say one.
#[derive(Default)]
struct Found {
    objects: Vec<(Value, Option<String>)>,
    under_way: BTreeSet<String>,
}

impl Found {
    /// Of several kustomizations that set a namespace, the outermost counts.
    fn folder(&mut self, tree: &dyn Tree, folder: &str, outer: Option<&str>) {
        if !self.under_way.insert(folder.to_owned()) {
            return;
        }
        match kustomization(tree, folder) {
            Some(file) => {
                let Some(value) = self.documents(tree, &file).into_iter().next() else { return };
                let namespace = outer.or(value["namespace"].as_str());
                for field in ["resources", "bases", "components"] {
                    let entries = value[field].as_array().into_iter().flatten().filter_map(Value::as_str);
                    for path in entries.filter_map(|entry| resolved(folder, entry)) {
                        match tree.contains(&path) {
                            true => self.file(tree, &path, namespace),
                            false => self.folder(tree, &path, namespace),
                        }
                    }
                }
            }
            None if tree.contains(&format!("{folder}/Chart.yaml")) => {}
            None => {
                let is_manifest = |path: &&String| {
                    let name = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
                    name.is_some_and(|name| !name.contains('/') && (name.ends_with(".yaml") || name.ends_with(".yml")))
                };
                for path in tree.paths().iter().filter(is_manifest) {
                    self.file(tree, path, outer);
                }
            }
        }
        // Another way may lead here with another namespace.
        self.under_way.remove(folder);
    }

    fn file(&mut self, tree: &dyn Tree, path: &str, namespace: Option<&str>) {
        for object in self.documents(tree, path) {
            let own = object["metadata"]["namespace"].as_str();
            let namespace = namespace.or(own).map(str::to_owned);
            self.objects.push((object, namespace));
        }
    }

    /// What cannot be read is told by `lint`, and by Argo CD.
    fn documents(&self, tree: &dyn Tree, path: &str) -> Vec<Value> {
        let read = tree.read(path).ok().and_then(|content| yaml::documents(path, &content).ok());
        read.into_iter().flatten().map(|document| document.value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gitops::predict::{Cluster, predict};
    use crate::gitops::repository::Repository;
    use crate::gitops::testing::{repository_of, set};

    fn of(files: &[(&str, &str)], namespaces: &[&str]) -> Vec<String> {
        let set = set("a", "[{list: {elements: [{}]}}]", "a");
        let files: Vec<(&str, &str)> = files.iter().copied().chain([("appsets/a.yaml", set.as_str())]).collect();
        let tree = repository_of(&files);
        let repository = Repository::read(&tree).unwrap();
        let prediction = predict(&repository, &tree, &[] as &[Cluster]);
        assert_eq!(prediction.applications.len(), 1, "{:?}", prediction.findings);
        let namespaces = namespaces.iter().map(|name| (*name).to_owned()).collect();
        misfits(&tree, &prediction, &namespaces).into_iter().map(|misfit| misfit.why).collect()
    }

    const BASE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: other}\n---\napiVersion: \
                        rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\n";

    #[test]
    fn what_is_in_no_namespace_or_in_another_one_is_named() {
        let files = [
            ("p/kustomization.yaml", "resources: [../base]\n"),
            ("base/kustomization.yaml", "resources: [b.yaml]\n"),
            ("base/b.yaml", BASE),
        ];
        assert_eq!(of(&files, &["n"]), ["ClusterRole r is in no namespace", "ConfigMap c is in the namespace other"]);
        assert_eq!(of(&files, &["n", "other"]), ["ClusterRole r is in no namespace"]);
        assert!(of(&files, &[]).is_empty(), "nothing is held to namespaces");
        assert_eq!(of(&[("p/b.yaml", "kind: Pod\n")], &["m"]), ["it is deployed to the namespace n"]);
        assert_eq!(of(&[("p/b.yaml", BASE)], &["n"]).len(), 2, "a folder without a kustomization");
    }

    #[test]
    fn the_outermost_kustomization_decides_about_the_namespace() {
        let inner = [
            ("base/kustomization.yaml", "namespace: inner\nresources: [b.yaml]\n"),
            ("base/b.yaml", "kind: ConfigMap\nmetadata: {name: c, namespace: other}\n"),
        ];
        let with = |outer: &'static str| [&inner[..], &[("p/kustomization.yaml", outer)]].concat();
        assert!(of(&with("namespace: n\nresources: [../base]\n"), &["n"]).is_empty());
        assert_eq!(of(&with("resources: [../base]\n"), &["n"]), ["ConfigMap c is in the namespace inner"]);
    }
}
