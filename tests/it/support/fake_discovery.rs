//! Which types a fake cluster knows.

use serde_json::{Value, json};

use super::fake_cluster::Cluster;

/// Argo CD's types are there only once they are defined.
pub fn is_served(cluster: &Cluster, path: &str) -> bool {
    let Some(rest) = path.strip_prefix("apis/argoproj.io/") else { return true };
    let mut crds = cluster.store.of_plural("customresourcedefinitions");
    crds.any(|crd| {
        crd["spec"]["names"]["plural"].as_str().is_some_and(|plural| rest.split('/').any(|part| part == plural))
    })
}

/// What a group has: some that every cluster has, and those that were defined in it.
pub fn discovered(cluster: &Cluster, path: &str) -> Option<Value> {
    let (group, built_in): (&str, &[(&str, &str, bool)]) = match path.split('/').collect::<Vec<_>>().as_slice() {
        ["api", "v1"] => ("v1", &[("ConfigMap", "configmaps", true), ("Namespace", "namespaces", false)]),
        ["apis", "apps", "v1"] => ("apps/v1", &[("Deployment", "deployments", true)]),
        ["apis", "apiextensions.k8s.io", "v1"] => {
            ("apiextensions.k8s.io/v1", &[("CustomResourceDefinition", "customresourcedefinitions", false)])
        }
        ["apis", _, _] => (path.trim_start_matches("apis/"), &[]),
        _ => return None,
    };
    let resource = |kind: &str, plural: &str, namespaced: bool| json!({"name": plural, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["get", "patch"]});
    let mut resources: Vec<Value> =
        built_in.iter().map(|(kind, plural, namespaced)| resource(kind, plural, *namespaced)).collect();
    for definition in cluster.store.of_plural("customresourcedefinitions") {
        let spec = &definition["spec"];
        if spec["group"].as_str().is_some_and(|defined| group.starts_with(defined)) {
            let word = |key: &str| spec["names"][key].as_str().unwrap();
            resources.push(resource(word("kind"), word("plural"), spec["scope"] == "Namespaced"));
        }
    }
    Some(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": resources}))
}
