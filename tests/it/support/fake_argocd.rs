//! The Argo CD of a fake cluster: it deploys at once, and deletes what it is asked to while the cluster that it deployed
//! to answers.

use std::collections::BTreeSet;
use std::path::Path;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use super::fake_cluster::Cluster;
use super::git_exec;
use super::store::Key;

const GROUP: &str = "argoproj.io/v1alpha1";

fn server(secret: &Value) -> String {
    let encoded = secret["data"]["server"].as_str().unwrap_or_default();
    String::from_utf8(BASE64_STANDARD.decode(encoded).unwrap()).unwrap()
}

/// Applications that are being deleted go, if nothing holds them, or if their cluster answers.
pub fn reap(cluster: &mut Cluster, runs: impl Fn(&str) -> bool) {
    let answers = |app: &Value| {
        let server = app["spec"]["destination"]["server"].as_str().unwrap_or_default();
        let node = server.trim_start_matches("https://").split("-control-plane:").next().unwrap_or_default();
        server.contains("kubernetes.default") || runs(node)
    };
    let goes = |app: &Value| {
        let held = app["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
        app["metadata"]["deletionTimestamp"].is_string() && (!held || answers(app))
    };
    let all = cluster.store.all().filter(|(key, app)| key.plural == "applications" && goes(app));
    let gone: Vec<Key> = all.map(|(key, _)| key.clone()).collect();
    for key in gone {
        cluster.store.delete(&key);
    }
}

/// Whether the project has a sync window for an Application: then the branch is taken to have gone on since.
pub fn is_held(cluster: &Cluster, name: &str) -> bool {
    let windows = cluster.store.of_plural("appprojects").flat_map(|project| project["spec"]["syncWindows"].as_array());
    windows.flatten().any(|window| window["applications"][0] == name)
}

/// The AppProject of the branch, in place of the one before.
fn put_project(cluster: &mut Cluster, repository: &Path, commit: &str, environment: &str) {
    let path = format!("overlays/developers/{environment}/appproject.yaml");
    let Some(text) = git_exec::file(repository, commit, &path) else { return };
    let mut project: Value = serde_saphyr::from_str(&text).unwrap();
    let name = format!("dev-{environment}");
    project["metadata"]["name"] = json!(name);
    let key = Key { group: GROUP.into(), plural: "appprojects".into(), namespace: "argocd".into(), name };
    if project["spec"].get("syncWindows").is_none() {
        project["spec"]["syncWindows"] = Value::Null;
    }
    cluster.store.patch(&key, &project);
}

/// Whether there is a repository Secret for an Application's address and project.
fn has_login(cluster: &Cluster, app: &Value) -> bool {
    let is = |secret: &Value, key: &str, wanted: &Value| {
        let bytes = BASE64_STANDARD.decode(secret["data"][key].as_str().unwrap_or_default()).unwrap();
        String::from_utf8(bytes).unwrap() == wanted.as_str().unwrap()
    };
    cluster.store.of_plural("secrets").any(|secret| {
        secret["metadata"]["labels"]["argocd.argoproj.io/secret-type"] == "repository"
            && is(secret, "url", &app["spec"]["source"]["repoURL"])
            && is(secret, "project", &app["spec"]["project"])
            && is(secret, "password", &json!("s3cr3t-of-alice"))
    })
}

/// What Argo CD does with a root Application: nothing before its own parts and the branch are there, and no Application
/// of it before the cluster Secret is.
pub fn deploy(
    cluster: &mut Cluster,
    applications: &BTreeSet<String>,
    repository: &Path,
    remote: Option<(&Path, bool)>,
) {
    let runs = ["argocd-repo-server", "argocd-applicationset-controller"]
        .iter()
        .all(|name| cluster.store.contains("deployments", name));
    if !runs || !cluster.store.contains("statefulsets", "argocd-application-controller") {
        return;
    }
    let roots: Vec<Value> = cluster
        .store
        .of_plural("applications")
        .filter(|app| app["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("root-")))
        .filter(|app| app["metadata"]["deletionTimestamp"].is_null())
        .cloned()
        .collect();
    for root in roots {
        let branch = root["spec"]["source"]["targetRevision"].as_str().unwrap_or_default();
        let own = root["spec"]["source"]["repoURL"].as_str().is_some_and(|url| url.contains("k8tre-git"));
        let (repository, private) = match remote {
            Some(remote) if !own => remote,
            _ => (repository, false),
        };
        if private && !has_login(cluster, &root) {
            let message = "failed to list refs: authentication required: Repository not found.";
            let status = json!({"status": {"conditions": [{"type": "ComparisonError", "message": message}]}});
            let name = root["metadata"]["name"].as_str().unwrap().to_owned();
            let key = Key { group: GROUP.into(), plural: "applications".into(), namespace: "argocd".into(), name };
            cluster.store.patch(&key, &status);
            continue;
        }
        let Some(commit) = git_exec::tip(repository, branch) else { continue };
        let environment = branch.trim_start_matches("dev/").to_owned();
        put_project(cluster, repository, &commit, &environment);
        let is_of = |secret: &&Value| {
            let labels = &secret["metadata"]["labels"];
            labels["argocd.argoproj.io/secret-type"] == "cluster" && labels["developer"] == environment
        };
        let secret = cluster.store.of_plural("secrets").find(is_of);
        let fenced = root["spec"]["project"] != "default";
        if fenced && !cluster.store.contains("appprojects", &format!("dev-{environment}")) {
            continue;
        }
        let root = root["metadata"]["name"].as_str().unwrap().to_owned();
        // Without a cluster there is nothing for the ApplicationSets to make.
        let known = secret.map(|secret| (secret["metadata"]["labels"].clone(), server(secret)));
        let (labels, server) = known.clone().unwrap_or_default();
        let wanted = applications.iter().filter(|app| known.is_some() && labels[format!("skip-{app}")] != "true");
        let names: Vec<String> = wanted.map(|app| format!("{app}-{environment}")).chain([root.clone()]).collect();
        for name in names {
            let key = Key {
                group: GROUP.into(),
                plural: "applications".into(),
                namespace: "argocd".into(),
                name: name.clone(),
            };
            if name != root {
                let project = format!("dev-{environment}");
                if cluster.store.get(&key).is_some_and(|app| app["metadata"]["deletionTimestamp"].is_string()) {
                    continue;
                }
                let made = json!({
                    "apiVersion": GROUP, "kind": "Application",
                    "metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]},
                    "spec": {"project": project, "destination": {"server": server}},
                });
                cluster.store.patch(&key, &made);
            }
            if cluster.forgets > 0 && cluster.reconciled.keys().any(|(of, _)| *of == name) {
                continue;
            }
            cluster.reconciled.retain(|(of, revision), _| *of != name || *revision == commit);
            cluster.reconciled.entry((name, commit.clone())).or_insert_with(|| jiff::Timestamp::now().to_string());
        }
    }
}
