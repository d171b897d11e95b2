//! The objects and files of a developer's environment: its AppProject, root Application and kustomizations.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::kustomize;
use super::overlay::OverlaySpec;
use super::repository::Repository;
use super::tree::Tree;
use super::url;
use super::windows::windows;
use crate::error::{Result, ResultExt};
use crate::shared::rights::root_project as root_project_name;

/// The AppProject `dev-<name>`: it may deploy to the environment's cluster alone, or to some of its namespaces, from the
/// branch and from what else the ApplicationSets name by its address, such as charts.
pub fn app_project(repository: &Repository, spec: &OverlaySpec) -> Value {
    let ours = url::normalized(&repository.root.repo_url);
    let mut sources = vec![spec.repo_url.as_str()];
    for set in &repository.application_sets {
        let template = &set.spec.template["spec"];
        let listed = template["sources"].as_array().map_or(&[][..], Vec::as_slice);
        let urls = listed.iter().chain([&template["source"]]).filter_map(|source| source["repoURL"].as_str());
        for url in urls.filter(|url| !url.contains("{{") && url::normalized(url) != ours) {
            if !sources.contains(&url) {
                sources.push(url);
            }
        }
    }
    let (destinations, of_cluster): (Vec<Value>, Value) = match spec.namespaces.is_empty() {
        true => (vec![json!({"server": spec.server, "namespace": "*"})], json!([{"group": "*", "kind": "*"}])),
        false => {
            let to = |namespace: &String| json!({"server": spec.server, "namespace": namespace});
            (spec.namespaces.iter().map(to).collect(), json!([]))
        }
    };
    let mut project = json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {
            "name": spec.name.project(),
            "namespace": spec.namespace,
            // Before the ApplicationSets, whose Applications are refused without it.
            "annotations": {"argocd.argoproj.io/sync-wave": "-1"},
        },
        "spec": {
            "description": format!("Environment of {}", spec.name),
            "sourceRepos": sources,
            "destinations": destinations,
            "clusterResourceWhitelist": of_cluster,
        },
    });
    // Where k8tre applies it, a hold that ended has to be seen to be gone.
    if spec.fenced || !spec.holds.is_empty() {
        project["spec"]["syncWindows"] = windows(&spec.holds).into();
    }
    project
}

/// The AppProject of the root Application on an Argo CD that serves others too: ApplicationSets beside Argo CD, from
/// this repository, and nothing else.
pub fn root_project(spec: &OverlaySpec) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": root_project_name(&spec.name), "namespace": spec.namespace},
        "spec": {
            "description": format!("Root Application of the environment of {}", spec.name),
            "sourceRepos": [spec.repo_url],
            "destinations": [{"server": super::world::IN_CLUSTER, "namespace": spec.namespace}],
            "clusterResourceWhitelist": [],
            "namespaceResourceWhitelist": [{"group": "argoproj.io", "kind": "ApplicationSet"}],
        },
    })
}

/// The AppProject as it stands in the overlay, whose `nameSuffix` completes its name.
pub fn unsuffixed(app_project: &Value, spec: &OverlaySpec) -> Value {
    let mut object = app_project.clone();
    let suffix = suffix(spec);
    if let Some(name) = object.pointer_mut("/metadata/name")
        && let Some(stem) = name.as_str().and_then(|name| name.strip_suffix(&suffix))
    {
        *name = stem.into();
    }
    object
}

fn suffix(spec: &OverlaySpec) -> String {
    format!("-{}", spec.name)
}

/// The root Application of the environment. Deleting it deletes all that it made.
pub fn root_application(repository: &Repository, spec: &OverlaySpec) -> Value {
    let mut source = json!({
        "repoURL": spec.repo_url,
        "targetRevision": spec.revision,
        "path": spec.folder(),
    });
    // The patches of the original point at the base branch; the overlay has its own.
    let mut kustomize = repository.root.value.pointer("/spec/source/kustomize").cloned().unwrap_or(Value::Null);
    if let Value::Object(fields) = &mut kustomize {
        fields.retain(|key, _| matches!(key.as_str(), "commonLabels" | "commonAnnotations"));
        if !fields.is_empty() {
            source["kustomize"] = kustomize;
        }
    }
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": spec.name.root_application(),
            "namespace": spec.namespace,
            "finalizers": ["resources-finalizer.argocd.argoproj.io"],
        },
        "spec": {
            "project": if spec.fenced { root_project_name(&spec.name) } else { "default".into() },
            "source": source,
            "destination": {"server": super::world::IN_CLUSTER, "namespace": spec.namespace},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}},
        },
    })
}

/// The kustomization of the overlay, with the patches of each ApplicationSet.
pub fn kustomization(
    repository: &Repository,
    tree: &dyn Tree,
    spec: &OverlaySpec,
    patches: &[(String, Vec<Value>)],
) -> Result<String> {
    let up = "../".repeat(spec.folder().split('/').count());
    let patches: Vec<Value> = patches
        .iter()
        .map(|(set, operations)| {
            // A target's name is a regular expression.
            let name = format!("^{}$", regex::escape(set));
            let target = json!({"group": "argoproj.io", "kind": "ApplicationSet", "name": name});
            Ok(json!({"target": target, "patch": yaml(&Value::Array(operations.clone()))?}))
        })
        .collect::<Result<_>>()?;
    // A folder without a kustomization is no resource, but its files are.
    let mut resources: BTreeSet<&str> = BTreeSet::from([repository.root.path.as_str()]);
    if kustomize::kustomization(tree, &repository.root.path).is_none() {
        resources = repository.application_sets.iter().map(|set| set.file.as_str()).collect();
    }
    let resources =
        resources.into_iter().map(|path| format!("{up}{path}")).chain((!spec.fenced).then(|| "appproject.yaml".into()));
    let text = yaml(&json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": spec.namespace,
        "nameSuffix": suffix(spec),
        "resources": resources.collect::<Vec<_>>(),
        "patches": patches,
    }))?;
    Ok(format!(
        "# Written by k8tre for the environment {name}, and written anew by each `k8tre dev up`: changes here are lost.\n\
         # Your own changes go into the folders envs/{env}, which are kept.\n{text}",
        name = spec.name,
        env = spec.name.environment(),
    ))
}

/// An object as YAML.
pub fn yaml(value: &Value) -> Result<String> {
    serde_saphyr::to_string(value).context("cannot write YAML")
}
