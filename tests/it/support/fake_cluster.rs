//! Kubernetes API servers of the clusters that the fake kind makes, with an Argo CD that deploys at
//! once. One address serves all; a cluster is the first folder of the path. It lives as long as its
//! node's container in the fake Docker runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::access::Access;
use super::fake_argocd::{deploy, is_held, reap};
use super::fake_discovery::{discovered, is_served};
use super::fake_hosts::Hosts;
use super::gate::{Gate, Pass};
use super::git_exec;
use super::http::{self, Request, Response};
use super::pod_port;
use super::probe_exec;
use super::store::{Key, Store};

#[derive(Clone, Default)]
pub struct Cluster {
    pub store: Store,
    /// When Argo CD looked at an Application, by name and commit.
    pub reconciled: BTreeMap<(String, String), String>,
    /// What was asked to look again.
    asked: BTreeSet<String>,
    access: Access,
    /// Syncs that were begun, with the Application's name.
    pub begun: Vec<(String, Value)>,
    /// Questions that are forgotten, and until then all are at the commit of before.
    pub forgets: usize,
}

#[derive(Default)]
pub(super) struct World {
    /// By the birth of the node's container: a new cluster of the same name is another one.
    pub(super) clusters: BTreeMap<String, Cluster>,
    /// Applications, without the environment's name, that Argo CD makes of a branch.
    applications: BTreeSet<String>,
    /// Health of those that are not healthy.
    health: BTreeMap<String, String>,
    /// What they have deployed, where that matters.
    resources: BTreeMap<String, Value>,
    /// Logs by `pod/container`.
    logs: BTreeMap<String, String>,
    /// The repository behind every address that is not the cluster's own git server.
    remote: Option<PathBuf>,
    /// Whether reading it takes a repository Secret for the Application's project.
    private: bool,
}

#[derive(Clone)]
pub struct FakeClusters {
    pub(super) world: Arc<Mutex<World>>,
    containers: PathBuf,
    repositories: Arc<tempfile::TempDir>,
    gate: Gate,
    pub(super) hosts: Hosts,
}

impl FakeClusters {
    /// Clusters of the nodes in this folder; returns their address too.
    pub async fn start(containers: &Path, gate: Gate) -> (FakeClusters, String) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let repositories = Arc::new(tempfile::tempdir().unwrap());
        let clusters = FakeClusters {
            world: Arc::default(),
            containers: containers.to_owned(),
            repositories,
            gate,
            hosts: Hosts::default(),
        };
        let served = clusters.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(served.clone().serve(stream));
            }
        });
        (clusters, url)
    }

    pub fn applications(&self, names: &[&str]) {
        self.world.lock().unwrap().applications = names.iter().map(|name| (*name).to_owned()).collect();
    }

    pub fn health(&self, application: &str, health: &str) {
        self.world.lock().unwrap().health.insert(application.to_owned(), health.to_owned());
    }

    /// What an Application has deployed.
    pub fn deployed(&self, application: &str, resources: Value) {
        self.world.lock().unwrap().resources.insert(application.to_owned(), resources);
    }

    /// What a container says.
    pub fn log(&self, pod: &str, container: &str, text: &str) {
        self.world.lock().unwrap().logs.insert(format!("{pod}/{container}"), text.to_owned());
    }

    /// Argo CD forgets as many questions, as when it is in the middle of a look at an older commit.
    pub fn forgets(&self, cluster: &str, questions: usize) {
        let (birth, _) = self.node(cluster).unwrap();
        self.world.lock().unwrap().clusters.get_mut(&birth).unwrap().forgets = questions;
    }

    /// Puts an object into a cluster behind everybody's back.
    pub fn plant(&self, cluster: &str, plural: &str, object: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        let key = Key {
            group: text(&object["apiVersion"]),
            plural: plural.into(),
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
        };
        self.plant_at(cluster, &key, object);
    }

    /// The same, by its whole key.
    pub fn plant_at(&self, cluster: &str, key: &Key, object: &Value) {
        let (birth, _) = self.node(cluster).unwrap();
        self.world.lock().unwrap().clusters.entry(birth).or_default().store.patch(key, object);
    }

    pub fn at(&self, cluster: &str, key: &Key) -> Option<Value> {
        let (birth, _) = self.node(cluster)?;
        self.world.lock().unwrap().clusters.get(&birth)?.store.get(key).cloned()
    }

    /// Where there is an object in a cluster.
    pub fn keys(&self, cluster: &str) -> Vec<Key> {
        let Some((birth, _)) = self.node(cluster) else { return Vec::new() };
        let world = self.world.lock().unwrap();
        world
            .clusters
            .get(&birth)
            .into_iter()
            .flat_map(|cluster| cluster.store.all())
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// What Argo CD reads where an Application names another address than the cluster's own git server.
    pub fn remote(&self, repository: PathBuf) {
        self.world.lock().unwrap().remote = Some(repository);
    }

    /// From now on it cannot be read without a login.
    pub fn is_private(&self) {
        self.world.lock().unwrap().private = true;
    }

    /// An object of a cluster, as it is stored.
    pub fn object(&self, cluster: &str, plural: &str, name: &str) -> Option<Value> {
        let (birth, _) = self.node(cluster)?;
        let world = self.world.lock().unwrap();
        let found =
            world.clusters.get(&birth)?.store.of_plural(plural).find(|object| object["metadata"]["name"] == name);
        found.cloned()
    }

    /// Changes an object behind everybody's back.
    pub fn change(&self, cluster: &str, plural: &str, name: &str, patch: &Value) {
        let (birth, _) = self.node(cluster).unwrap();
        let mut world = self.world.lock().unwrap();
        let store = &mut world.clusters.get_mut(&birth).unwrap().store;
        let key = store.all().map(|(key, _)| key.clone()).find(|key| key.plural == plural && key.name == name);
        store.patch(&key.unwrap(), patch);
    }

    /// Resource versions of everything in a cluster.
    pub fn versions(&self, cluster: &str) -> BTreeMap<String, String> {
        let Some((birth, _)) = self.node(cluster) else { return BTreeMap::new() };
        let world = self.world.lock().unwrap();
        world.clusters.get(&birth).map(|cluster| cluster.store.versions()).unwrap_or_default()
    }

    /// Syncs that were begun since this was last called.
    pub fn begun(&self, cluster: &str) -> Vec<(String, Value)> {
        let (birth, _) = self.node(cluster).unwrap();
        let mut world = self.world.lock().unwrap();
        std::mem::take(&mut world.clusters.get_mut(&birth).unwrap().begun)
    }

    /// What was asked to look again since this was last called.
    pub fn asked(&self, cluster: &str) -> Vec<String> {
        let (birth, _) = self.node(cluster).unwrap();
        let mut world = self.world.lock().unwrap();
        std::mem::take(&mut world.clusters.get_mut(&birth).unwrap().asked).into_iter().collect()
    }

    /// What the user may not do in a cluster, as `create pods/exec`.
    pub fn deny(&self, cluster: &str, rights: &[&str]) {
        let (birth, _) = self.node(cluster).unwrap();
        self.world.lock().unwrap().clusters.get_mut(&birth).unwrap().access.deny(rights);
    }

    /// Every token that a cluster has given.
    pub fn tokens(&self, cluster: &str) -> Vec<String> {
        let Some((birth, _)) = self.node(cluster) else { return Vec::new() };
        self.world.lock().unwrap().clusters.get(&birth).map(|cluster| cluster.access.tokens()).unwrap_or_default()
    }

    /// Takes an object away behind everybody's back.
    pub fn lose(&self, cluster: &str, plural: &str, name: &str) {
        let (birth, _) = self.node(cluster).unwrap();
        let mut world = self.world.lock().unwrap();
        let store = &mut world.clusters.get_mut(&birth).unwrap().store;
        let key = store.all().map(|(key, _)| key.clone()).find(|key| key.plural == plural && key.name == name);
        assert!(store.delete(&key.unwrap()));
    }

    /// The commit that a cluster's git server holds on a branch.
    pub fn published(&self, cluster: &str, branch: &str) -> Option<String> {
        git_exec::tip(&self.repository(&self.node(cluster)?.0), branch)
    }

    /// A file as it is on that branch.
    pub fn published_file(&self, cluster: &str, branch: &str, path: &str) -> Option<String> {
        let repository = self.repository(&self.node(cluster)?.0);
        git_exec::file(&repository, &git_exec::tip(&repository, branch)?, path)
    }

    fn repository(&self, birth: &str) -> PathBuf {
        self.repositories.path().join(birth)
    }

    /// Birth and images of a cluster's running node.
    fn node(&self, cluster: &str) -> Option<(String, Value)> {
        if let Some(birth) = self.hosts.control_plane(cluster) {
            return Some((format!("{cluster}-{birth}"), Value::Null));
        }
        let text = std::fs::read(self.containers.join(format!("{cluster}-control-plane.json"))).ok()?;
        let container: Value = serde_json::from_slice(&text).ok()?;
        let running = container["state"] == "running";
        running.then(|| (container["birth"].as_str().unwrap_or_default().to_owned(), container["images"].clone()))
    }

    async fn serve(self, mut stream: TcpStream) {
        let Some(request) = http::read(&mut stream).await else { return };
        let path = request.path().trim_start_matches('/').to_owned();
        let (name, rest) = path.split_once('/').unwrap_or((&path, ""));
        let exec = rest.ends_with("/exec");
        // git's own writes are what changes something there, not the question what it has.
        let effect = if exec { request.target.contains("receive-pack") } else { request.method != "GET" };
        let pass = self.gate.enter(effect).await;
        self.settle();
        if self.hosts.is_silent(name) {
            return;
        }
        // No node, no answer: as a port at which nobody listens.
        let Some((birth, images)) = self.node(name).filter(|_| pass != Pass::Drop) else { return };
        if pass == Pass::Fail {
            return send(&mut stream, status(500, "the fake was told to fail")).await;
        }
        if exec && request.queries("command").first().is_some_and(|program| program == "sh") {
            return probe_exec::serve(stream, &request, |cluster| self.node(cluster).is_some()).await;
        }
        if exec {
            return git_exec::serve(stream, &request, &self.repository(&birth), pass, &self.gate).await;
        }
        if rest.ends_with("/portforward") {
            return pod_port::serve(stream, &request).await;
        }
        let answer = {
            let mut world = self.world.lock().unwrap();
            let World { clusters, applications, health, resources, logs, remote, private } = &mut *world;
            let mut pretended;
            let cluster = match pass {
                // Said of a copy, which is forgotten.
                Pass::Lie => {
                    pretended = clusters.get(&birth).cloned().unwrap_or_default();
                    &mut pretended
                }
                _ => clusters.entry(birth.clone()).or_default(),
            };
            if rest.contains("/applications") {
                deploy(
                    cluster,
                    applications,
                    &self.repository(&birth),
                    remote.as_deref().map(|remote| (remote, *private)),
                );
                reap(cluster, |cluster| self.node(cluster).is_some());
            }
            match log_of(rest, &request) {
                Some(container) => (200, json!(logs.get(&container).cloned().unwrap_or_default())),
                None => respond(cluster, &Words { health, resources }, &images, rest, &request),
            }
        };
        match pass {
            Pass::GoThenDrop => {}
            Pass::GoThenHold => self.gate.wait_until_open().await,
            _ => send(&mut stream, answer).await,
        }
    }
}

async fn send(stream: &mut TcpStream, (code, body): (u16, Value)) {
    let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
    http::write(stream, &Response::new(code, body).header("Content-Type", "application/json"), false).await;
    stream.shutdown().await.ok();
}

fn status(code: u16, message: &str) -> (u16, Value) {
    let reason = if code == 404 { "NotFound" } else { "InternalError" };
    let word = if code < 400 { "Success" } else { "Failure" };
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": word, "message": message, "reason": reason, "code": code});
    (code, body)
}

/// The container whose log is asked for.
fn log_of(path: &str, request: &Request) -> Option<String> {
    let pod = path.strip_suffix("/log")?.rsplit('/').next()?;
    let before = if request.query("previous").is_some_and(|previous| previous == "true") { " before" } else { "" };
    Some(format!("{pod}/{}{before}", request.query("container")?))
}

/// What Applications say of themselves, by the beginning of their names.
struct Words<'a> {
    health: &'a BTreeMap<String, String>,
    resources: &'a BTreeMap<String, Value>,
}

fn respond(cluster: &mut Cluster, words: &Words, images: &Value, path: &str, request: &Request) -> (u16, Value) {
    if path == "readyz" {
        return (200, json!("ok"));
    }
    if let Some(resources) = discovered(cluster, path) {
        return (200, resources);
    }
    if !is_served(cluster, path) {
        return (404, json!("404 page not found"));
    }
    if request.method == "POST" {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let accounts = cluster.store.of_plural("serviceaccounts").map(|one| &one["metadata"]);
        let accounts = accounts.map(|metadata| (text(&metadata["name"]), text(&metadata["uid"]))).collect();
        let roles = ["clusterroles", "roles"].map(|plural| cluster.store.of_plural(plural).cloned());
        let roles: Vec<Value> = roles.into_iter().flatten().collect();
        let answer = cluster.access.post(path, request, &accounts, &roles);
        return answer.unwrap_or_else(|| status(501, "the fake makes nothing of this kind"));
    }
    let Some(key) = key(path) else { return status(501, "the fake does not know this path") };
    let missing = || status(404, &format!("{} \"{}\" not found", key.plural, key.name));
    match request.method.as_str() {
        "GET" if key.name.is_empty() => {
            let mut items: Vec<Value> = match key.plural.as_str() {
                "nodes" => vec![node(images)],
                "pods" => {
                    let workloads =
                        cluster.store.of_plural("deployments").chain(cluster.store.of_plural("statefulsets"));
                    let of_argocd = workloads.map(pod);
                    let all = of_argocd.chain(cluster.store.of_plural("pods").cloned());
                    all.filter(|pod| key.namespace.is_empty() || pod["metadata"]["namespace"] == *key.namespace)
                        .collect()
                }
                _ => {
                    let here = cluster.store.all().filter(|(other, _)| {
                        other.plural == key.plural && (key.namespace.is_empty() || other.namespace == key.namespace)
                    });
                    here.map(|(_, object)| seen(cluster, words, object)).collect()
                }
            };
            for wanted in request.query("labelSelector").unwrap_or_default().split(',').filter(|text| !text.is_empty())
            {
                let (label, value) = wanted.split_once('=').unwrap();
                items.retain(|item| item["metadata"]["labels"][label] == value);
            }
            (
                200,
                json!({"kind": "List", "apiVersion": key.group, "metadata": {"resourceVersion": "1"}, "items": items}),
            )
        }
        "GET" => match cluster.store.get(&key) {
            Some(object) => (200, seen(cluster, words, object)),
            None => missing(),
        },
        "PATCH" => {
            let apply = request.headers.get("content-type").is_some_and(|kind| kind.contains("apply-patch"));
            if !apply && cluster.store.get(&key).is_none() {
                return missing();
            }
            let mut patch: Value = serde_json::from_slice(&request.body).unwrap();
            let mut taken =
                |name: &str| patch["metadata"]["annotations"].as_object_mut().and_then(|all| all.remove(name));
            let refresh = taken("argocd.argoproj.io/refresh");
            if refresh.is_some() || taken("argocd.argoproj.io/application-set-refresh").is_some() {
                cluster.asked.insert(key.name.clone());
            }
            if let Some(operation) = patch.as_object_mut().and_then(|all| all.remove("operation")) {
                cluster.begun.push((key.name.clone(), operation));
            }
            match (refresh, cluster.forgets) {
                (None, _) => {}
                (Some(_), 0) => cluster.reconciled.retain(|(name, _), _| *name != key.name),
                (Some(_), 1..) => cluster.forgets -= 1,
            }
            let patched = cluster.store.patch(&key, &patch);
            (200, patched)
        }
        "DELETE" if cluster.store.get(&key).is_some_and(is_finalized) => {
            let at = json!({"metadata": {"deletionTimestamp": jiff::Timestamp::now().to_string()}});
            (200, cluster.store.patch(&key, &at))
        }
        "DELETE" if cluster.store.delete(&key) => status(200, "deleted"),
        "DELETE" => missing(),
        _ => status(501, "the fake does not know this method"),
    }
}

fn is_finalized(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty())
}

/// `api/v1/namespaces/NS/secrets/NAME`, `apis/G/V/plural`, …
fn key(path: &str) -> Option<Key> {
    let parts: Vec<&str> = path.split('/').collect();
    let (group, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ((*version).to_owned(), rest),
        ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
        _ => return None,
    };
    let (namespace, rest) = match rest {
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        rest => ("", rest),
    };
    let (plural, name) = match rest {
        [plural] => (*plural, ""),
        [plural, name] => (*plural, *name),
        _ => return None,
    };
    Some(Key { group, plural: plural.into(), namespace: namespace.into(), name: name.into() })
}

fn node(images: &Value) -> Value {
    let names = images.as_array().cloned().unwrap_or_default();
    let ready = json!({"type": "Ready", "status": "True", "lastHeartbeatTime": jiff::Timestamp::now().to_string()});
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "control-plane"},
        "status": {"images": [{"names": names}], "conditions": [ready],
            "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}}
    })
}

fn pod(deployment: &Value) -> Value {
    let name = deployment["metadata"]["name"].as_str().unwrap();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("{name}-0"), "namespace": "argocd", "labels": deployment["spec"]["template"]["metadata"]["labels"]},
        "spec": deployment["spec"]["template"]["spec"],
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    })
}

/// An object with the status that its controller would have given it by now.
fn seen(cluster: &Cluster, words: &Words, object: &Value) -> Value {
    let mut seen = object.clone();
    match object["kind"].as_str().unwrap_or_default() {
        "CustomResourceDefinition" => {
            seen["status"] = json!({"conditions": [{"type": "Established", "status": "True"}]})
        }
        "Deployment" | "StatefulSet" => {
            let replicas = object["spec"]["replicas"].as_u64().unwrap_or(1);
            seen["status"] = json!({
                "observedGeneration": object["metadata"]["generation"], "updatedReplicas": replicas, "readyReplicas": replicas
            });
        }
        "Application" => {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let look = cluster.reconciled.iter().find(|((of, _), _)| of == name);
            if let Some(((_, revision), at)) = look {
                let health = words.health.iter().find(|(prefix, _)| name.starts_with(*prefix));
                let health = health.map_or("Healthy", |(_, word)| word);
                let map =
                    json!([{"kind": "ConfigMap", "name": name, "status": "Synced", "health": {"status": health}}]);
                let resources = words.resources.iter().find(|(prefix, _)| name.starts_with(*prefix));
                let sync = if is_held(cluster, name) { "OutOfSync" } else { "Synced" };
                seen["status"] = json!({
                    "sync": {"status": sync, "revision": revision}, "health": {"status": health}, "reconciledAt": at,
                    "operationState": {"phase": "Succeeded"},
                    "resources": resources.map_or(map, |(_, resources)| resources.clone())
                });
            }
        }
        _ => {}
    }
    seen
}
