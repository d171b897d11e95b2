//! Which Applications need more than the namespaces that an Argo CD may manage: objects in others, and objects in none.
//! Argo CD would refuse to compare any of their objects.
//!
//! Told from the files in the repository; what a chart or a plugin makes is not seen.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};

use super::predict::Prediction;
use super::tree::Tree;
use super::{kinds, planned};

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
        for object in planned::of(tree, app) {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
            let namespace = text(&object["metadata"]["namespace"]);
            if kinds::is_of_cluster(&kind) {
                say(format!("{kind} {name} is in no namespace"));
            } else if namespace != *app.namespace && !namespaces.contains(&namespace) {
                say(format!("{kind} {name} is in the namespace {namespace}"));
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
