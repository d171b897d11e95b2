//! A Docker Engine that is a folder: each container is a file in it, so that a fake `kind`, being a
//! shell script, can make and remove containers too.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use k8tre::ports::docker::{Docker, Endpoint, Source};
use serde_json::{Value, json};
use tokio::net::UnixListener;

use super::http::{Request, Response, answer};

/// What the engine says of itself, and what it does wrong.
#[derive(Clone)]
pub struct World {
    pub info: Value,
    pub networks: Vec<Value>,
    /// End of the paths that are never answered.
    pub hang_on: Option<String>,
    /// Containers that cannot be removed.
    pub stuck: Vec<String>,
}

pub struct FakeDocker {
    folder: tempfile::TempDir,
    world: Arc<Mutex<World>>,
    task: tokio::task::JoinHandle<()>,
}

impl FakeDocker {
    pub async fn start() -> FakeDocker {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("containers")).unwrap();
        let info = json!({
            "ServerVersion": "28.1.1", "OperatingSystem": "Debian GNU/Linux 13", "OSType": "linux", "CgroupVersion": "2",
            "CgroupDriver": "systemd", "MemTotal": 16u64 << 30, "NCPU": 4, "DockerRootDir": "/", "SecurityOptions": []
        });
        let world = World { info, networks: Vec::new(), hang_on: None, stuck: Vec::new() };
        let world = Arc::new(Mutex::new(world));
        let listener = UnixListener::bind(folder.path().join("docker.sock")).unwrap();
        let (served, root) = (world.clone(), folder.path().to_owned());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (world, root) = (served.clone(), root.clone());
                tokio::spawn(answer(stream, move |request: Request| {
                    let hang_on = world.lock().unwrap().hang_on.clone();
                    let hangs = hang_on.is_some_and(|path| request.path().ends_with(&path));
                    (!hangs).then(|| respond(&world, &root, request))
                }));
            }
        });
        FakeDocker { folder, world, task }
    }

    pub fn endpoint(&self) -> Endpoint {
        let host = format!("unix://{}", self.folder.path().join("docker.sock").display());
        Endpoint { host, source: Source::Variable, certificates: None }
    }

    pub async fn connect(&self) -> Docker {
        Docker::connect(self.endpoint()).await.unwrap()
    }

    /// Folder with one JSON file for each container.
    pub fn containers(&self) -> PathBuf {
        self.folder.path().join("containers")
    }

    pub fn change(&self, change: impl FnOnce(&mut World)) {
        change(&mut self.world.lock().unwrap());
    }

    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = all(self.folder.path()).iter().map(|c| text(&c["name"])).collect();
        names.sort();
        names
    }

    /// A node as kind makes it; `mark` is the path of an extra mount, `whole` whether it was finished.
    pub fn add_node(&self, cluster: &str, role: &str, mark: Option<&str>, state: &str, whole: bool) {
        let name = format!("{cluster}-{role}");
        let mounts: Vec<_> = mark.into_iter().map(|mark| json!({"destination": mark})).collect();
        let labels = json!({"io.x-k8s.kind.cluster": cluster, "io.x-k8s.kind.role": role});
        let files = if whole { json!(["/k8tre/whole"]) } else { json!([]) };
        self.add(json!({"name": name, "labels": labels, "mounts": mounts, "state": state, "files": files}));
    }

    pub fn add(&self, container: Value) {
        save(self.folder.path(), &container);
    }
}

impl Drop for FakeDocker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn file(root: &Path, name: &str) -> PathBuf {
    root.join("containers").join(format!("{name}.json"))
}

fn save(root: &Path, container: &Value) {
    fs::write(file(root, &text(&container["name"])), container.to_string()).unwrap();
}

fn load(root: &Path, name: &str) -> Option<Value> {
    serde_json::from_slice(&fs::read(file(root, name)).ok()?).ok()
}

fn all(root: &Path) -> Vec<Value> {
    let files = fs::read_dir(root.join("containers")).unwrap().flatten();
    files.filter_map(|file| serde_json::from_slice(&fs::read(file.path()).ok()?).ok()).collect()
}

fn respond(world: &Mutex<World>, root: &Path, request: Request) -> Response {
    let mut world = world.lock().unwrap();
    // An API version in front of the path is allowed and ignored.
    let path = request.path().trim_start_matches('/').to_owned();
    let mut parts: Vec<_> = path.split('/').collect();
    if parts.first().is_some_and(|part| part.starts_with("v1.")) {
        parts.remove(0);
    }
    let found = |value: Option<Value>| match value {
        Some(value) => json_response(200, &value),
        None => json_response(404, &json!({"message": "no such thing"})),
    };
    match (request.method.as_str(), parts.as_slice()) {
        ("GET", ["version"]) => json_response(200, &json!({"Version": "28.1.1", "ApiVersion": "1.41"})),
        ("GET", ["info"]) => json_response(200, &world.info),
        ("GET", ["containers", "json"]) => {
            let filters: Value =
                request.query("filters").map_or(json!({}), |filters| serde_json::from_str(&filters).unwrap());
            let labels: Vec<_> = filters["label"].as_array().into_iter().flatten().map(text).collect();
            let listed: Vec<_> = all(root).iter().filter(|c| labels.iter().all(|l| has(c, l))).map(summary).collect();
            json_response(200, &json!(listed))
        }
        ("GET", ["containers", name, "json"]) => found(load(root, name).map(|container| inspection(&container))),
        ("HEAD", ["containers", name, "archive"]) => {
            let wanted = request.query("path").unwrap_or_default();
            let there = load(root, name).is_some_and(|c| c["files"].as_array().unwrap().contains(&json!(wanted)));
            let stat =
                json!({"name": wanted, "size": 0, "mode": 420, "mtime": "2026-01-01T00:00:00Z", "linkTarget": ""});
            let stat = base64::engine::general_purpose::STANDARD.encode(stat.to_string());
            Response::new(if there { 200 } else { 404 }, "").header("X-Docker-Container-Path-Stat", stat)
        }
        ("POST", ["containers", name, action @ ("start" | "stop" | "unpause")]) => {
            let Some(mut container) = load(root, name) else { return found(None) };
            if *action == "start" && container["state"] == "paused" {
                return json_response(409, &json!({"message": "cannot start a paused container, try unpause instead"}));
            }
            container["state"] = json!(if *action == "stop" { "exited" } else { "running" });
            save(root, &container);
            Response::new(204, "")
        }
        ("DELETE", ["containers", name]) if world.stuck.iter().any(|stuck| stuck == name) => {
            json_response(500, &json!({"message": "device or resource busy"}))
        }
        ("DELETE", ["containers", name]) => match fs::remove_file(file(root, name)) {
            Ok(()) => Response::new(204, ""),
            Err(_) => found(None),
        },
        ("POST", ["containers", name, "exec"]) => {
            let Some(mut container) = load(root, name) else { return found(None) };
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            let argv: Vec<_> = body["Cmd"].as_array().unwrap().iter().map(text).collect();
            if let [program, path] = argv.as_slice()
                && program == "touch"
            {
                container["files"].as_array_mut().unwrap().push(json!(path));
                save(root, &container);
            }
            json_response(201, &json!({"Id": "exec-1"}))
        }
        ("POST", ["exec", _, "start"]) => {
            Response::new(101, "").header("Connection", "Upgrade").header("Upgrade", "tcp")
        }
        ("GET", ["exec", _, "json"]) => json_response(200, &json!({"ExitCode": 0, "Running": false})),
        ("GET", ["networks"]) => json_response(200, &json!(world.networks)),
        ("GET", ["networks", name]) => {
            found(world.networks.iter().find(|n| n["Name"] == *name || n["Id"] == *name).cloned())
        }
        ("DELETE", ["networks", id]) => {
            let before = world.networks.len();
            world.networks.retain(|network| network["Id"] != *id);
            if world.networks.len() < before { Response::new(204, "") } else { found(None) }
        }
        ("GET" | "DELETE", ["volumes", _]) => found(None),
        _ => json_response(501, &json!({"message": format!("the fake does not know {} {path}", request.method)})),
    }
}

fn json_response(status: u16, value: &Value) -> Response {
    Response::new(status, value.to_string()).header("Content-Type", "application/json")
}

/// Whether a container has a label, given as `key` or `key=value`.
fn has(container: &Value, label: &str) -> bool {
    match label.split_once('=') {
        Some((key, value)) => container["labels"][key] == value,
        None => container["labels"].get(label).is_some(),
    }
}

fn mounts(container: &Value) -> Value {
    let mounts = container["mounts"].as_array().cloned().unwrap_or_default();
    mounts.iter().map(|m| json!({"Type": "bind", "Source": "/dev/null", "Destination": m["destination"]})).collect()
}

fn summary(container: &Value) -> Value {
    let ports = container["ports"].as_array().cloned().unwrap_or_default();
    let ports: Vec<_> = ports
        .iter()
        .map(|port| json!({"IP": "0.0.0.0", "PublicPort": port["public"], "PrivatePort": port["private"], "Type": "tcp"}))
        .collect();
    json!({
        "Id": container["name"], "Names": [format!("/{}", text(&container["name"]))], "Labels": container["labels"],
        "State": container["state"], "Mounts": mounts(container), "Ports": ports,
        "NetworkSettings": {"Networks": {"kind": {"IPAddress": "172.18.0.2"}}},
    })
}

fn inspection(container: &Value) -> Value {
    json!({
        "Id": container["name"], "Name": format!("/{}", text(&container["name"])),
        "Config": {"Labels": container["labels"], "Image": "kindest/node:v1.34.4"},
        "State": {"Status": container["state"], "StartedAt": "2026-01-01T00:00:00Z", "ExitCode": 0},
        "Mounts": mounts(container), "NetworkSettings": {"Networks": {"kind": {"IPAddress": "172.18.0.2"}}},
    })
}
