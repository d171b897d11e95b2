//! A Docker Engine that is a folder: each container is a file in it, so that a fake `kind`, being a
//! shell script, can make and remove containers too.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use k8tre::ports::docker::{Docker, Endpoint, Source};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use super::gate::{Gate, Pass};
use super::http::{self, Request, Response};

/// What the engine says of itself, and what it does wrong.
#[derive(Clone, Default)]
pub struct World {
    pub info: Value,
    pub version: Value,
    pub networks: Vec<Value>,
    /// End of the paths that are never answered.
    pub hang_on: Option<String>,
    /// Containers that cannot be removed.
    pub stuck: Vec<String>,
    /// Images by reference, each with its ID and labels.
    pub images: BTreeMap<String, Value>,
    /// Exit code of programs run in containers whose command line ends with this.
    pub failing: Option<(String, i64)>,
    /// Programs started in containers: which, and in which.
    execs: Vec<(String, Vec<String>)>,
}

pub struct FakeDocker {
    folder: tempfile::TempDir,
    world: Arc<Mutex<World>>,
    task: tokio::task::JoinHandle<()>,
}

impl FakeDocker {
    pub async fn start() -> FakeDocker {
        FakeDocker::behind(Gate::open_always()).await
    }

    /// One whose answers a test can hold back.
    pub async fn behind(gate: Gate) -> FakeDocker {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("containers")).unwrap();
        fs::create_dir(folder.path().join("networks")).unwrap();
        let info = json!({
            "ServerVersion": "28.1.1", "OperatingSystem": "Debian GNU/Linux 13", "OSType": "linux", "CgroupVersion": "2",
            "CgroupDriver": "systemd", "MemTotal": 16u64 << 30, "NCPU": 4, "DockerRootDir": "/", "SecurityOptions": []
        });
        let version = json!({"Version": "28.1.1", "ApiVersion": "1.41"});
        let world = World { info, version, networks: Vec::new(), hang_on: None, stuck: Vec::new(), ..World::default() };
        let world = Arc::new(Mutex::new(world));
        let listener = UnixListener::bind(folder.path().join("docker.sock")).unwrap();
        let (served, root) = (world.clone(), folder.path().to_owned());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, served.clone(), root.clone(), gate.clone()));
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

    /// All that a Docker holds which can be left behind: containers and networks, by file.
    pub fn contents(&self) -> Vec<(String, String)> {
        let files = ["containers", "networks"].map(|kind| fs::read_dir(self.folder.path().join(kind)).unwrap());
        let files = files.into_iter().flatten().flatten().map(|file| file.path());
        let mut all: Vec<_> =
            files.map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap_or_default())).collect();
        all.sort();
        all
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
    // As a whole: others read the file at any time.
    let mut new = tempfile::NamedTempFile::new_in(root).unwrap();
    new.write_all(container.to_string().as_bytes()).unwrap();
    new.persist(file(root, &text(&container["name"]))).unwrap();
}

fn load(root: &Path, name: &str) -> Option<Value> {
    serde_json::from_slice(&fs::read(file(root, name)).ok()?).ok()
}

fn all(root: &Path) -> Vec<Value> {
    let files = fs::read_dir(root.join("containers")).unwrap().flatten();
    files.filter_map(|file| serde_json::from_slice(&fs::read(file.path()).ok()?).ok()).collect()
}

async fn serve(mut stream: UnixStream, world: Arc<Mutex<World>>, root: PathBuf, gate: Gate) {
    let Some(request) = http::read(&mut stream).await else { return };
    let hang_on = world.lock().unwrap().hang_on.clone();
    if hang_on.is_some_and(|path| request.path().ends_with(&path)) {
        return std::future::pending().await;
    }
    let pass = gate.enter(has_effect(&request)).await;
    let head_only = request.method == "HEAD";
    let started = match (request.method.as_str(), request.path().rsplit('/').collect::<Vec<_>>().as_slice()) {
        ("POST", ["start", id, "exec", ..]) => id.strip_prefix("exec-").and_then(|id| id.parse::<usize>().ok()),
        _ => None,
    };
    let response = match pass {
        Pass::Drop => return,
        Pass::Fail => json_response(500, &json!({"message": "the fake was told to fail"})),
        Pass::Lie => pretend(&world, &root, request),
        Pass::Go | Pass::GoThenDrop | Pass::GoThenHold => respond(&world, &root, request),
    };
    match pass {
        Pass::GoThenDrop => return,
        Pass::GoThenHold => return gate.wait_until_open().await,
        _ => {}
    }
    http::write(&mut stream, &response, head_only).await;
    if let Some(id) = started.filter(|_| response.status == 101) {
        run(&mut stream, &world, &root, id).await;
    }
    stream.shutdown().await.ok();
}

/// Whether a request changes what Docker holds.
fn has_effect(request: &Request) -> bool {
    let body = String::from_utf8_lossy(&request.body);
    match request.method.as_str() {
        "DELETE" => true,
        "POST" if request.path().ends_with("/exec") => {
            ["\"touch\"", "\"import\""].iter().any(|word| body.contains(word))
        }
        "POST" => !request.path().contains("/exec/"),
        _ => false,
    }
}

/// Says of a change that it was made.
fn pretend(world: &Mutex<World>, root: &Path, request: Request) -> Response {
    let (method, path) = (request.method.clone(), request.path().to_owned());
    match method.as_str() {
        "DELETE" if path.contains("/images/") => json_response(200, &json!([])),
        "POST" if path.ends_with("/containers/create") => json_response(201, &json!({"Id": "none", "Warnings": []})),
        "POST" if path.ends_with("/commit") => json_response(201, &json!({"Id": "sha256:none"})),
        "POST" if path.ends_with("/exec") => {
            let mut body: Value = serde_json::from_slice(&request.body).unwrap();
            body["Cmd"] = json!(["true"]);
            respond(world, root, Request { body: body.to_string().into_bytes(), ..request })
        }
        _ => Response::new(204, ""),
    }
}

/// A program in a container, as far as k8tre starts any there.
async fn run(stream: &mut UnixStream, world: &Mutex<World>, root: &Path, id: usize) {
    let Some((container, argv)) = world.lock().unwrap().execs.get(id).cloned() else { return };
    let runs = |word: &str| argv.iter().any(|argument| argument == word);
    let output = match argv.first().map(String::as_str) {
        Some("ctr") if runs("import") => {
            stream.read_to_end(&mut Vec::new()).await.ok();
            let images: Vec<String> = world.lock().unwrap().images.keys().cloned().collect();
            if let Some(mut container) = load(root, &container) {
                container["images"] = json!(images);
                save(root, &container);
            }
            String::new()
        }
        Some("ctr") => {
            let images = load(root, &container).unwrap_or_default()["images"].clone();
            images.as_array().into_iter().flatten().map(|image| text(image) + "\n").collect()
        }
        _ => String::new(),
    };
    // Docker's frame: which stream, three zeros, the length.
    let mut frame = vec![1, 0, 0, 0];
    frame.extend(u32::try_from(output.len()).unwrap().to_be_bytes());
    frame.extend(output.as_bytes());
    stream.write_all(&frame).await.ok();
}

fn networks(world: &World, root: &Path) -> Vec<Value> {
    let files = fs::read_dir(root.join("networks")).unwrap().flatten();
    let made = files.filter_map(|file| serde_json::from_slice(&fs::read(file.path()).ok()?).ok());
    world.networks.iter().cloned().chain(made).collect()
}

fn respond(world: &Mutex<World>, root: &Path, request: Request) -> Response {
    let mut world = world.lock().unwrap();
    // An API version in front of the path is allowed, if it is none that this engine is too old for.
    let path = request.path().trim_start_matches('/').to_owned();
    let mut parts: Vec<_> = path.split('/').collect();
    if let Some(version) = parts.first().and_then(|part| part.strip_prefix("v1.")) {
        if version.parse::<u32>().unwrap() > 41 {
            let message = format!("client version 1.{version} is too new. Maximum supported API version is 1.41");
            return json_response(400, &json!({"message": message}));
        }
        parts.remove(0);
    }
    let found = |value: Option<Value>| match value {
        Some(value) => json_response(200, &value),
        None => json_response(404, &json!({"message": "no such thing"})),
    };
    match (request.method.as_str(), parts.as_slice()) {
        ("GET", ["_ping"]) => json_response(200, &json!("OK")),
        ("GET", ["version"]) => json_response(200, &world.version),
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
            let container = load(root, name).unwrap_or_else(|| json!({"files": []}));
            let time = container["times"][&wanted].as_str().map(|at| at.parse().unwrap());
            let there = time.is_some() || container["files"].as_array().unwrap().contains(&json!(wanted));
            let time = jiff::Timestamp::from_second(time.unwrap_or(1_767_225_600)).unwrap().to_string();
            let stat = json!({"name": wanted, "size": 0, "mode": 420, "mtime": time, "linkTarget": ""});
            let stat = base64::engine::general_purpose::STANDARD.encode(stat.to_string());
            Response::new(if there { 200 } else { 404 }, "").header("X-Docker-Container-Path-Stat", stat)
        }
        ("GET", ["containers", _, "stats"]) => json_response(
            200,
            &json!({"memory_stats": {"usage": 700_u64 << 20, "stats": {"inactive_file": 100_u64 << 20}}}),
        ),
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
            if let [program, _, at, path] = argv.as_slice()
                && program == "touch"
            {
                container["times"][path] = json!(at.trim_start_matches('@'));
                save(root, &container);
            }
            world.execs.push(((*name).to_owned(), argv));
            json_response(201, &json!({"Id": format!("exec-{}", world.execs.len() - 1)}))
        }
        ("POST", ["exec", _, "start"]) => {
            Response::new(101, "").header("Connection", "Upgrade").header("Upgrade", "tcp")
        }
        ("GET", ["exec", id, "json"]) => {
            let number = id.strip_prefix("exec-").and_then(|id| id.parse::<usize>().ok());
            let argv = number.and_then(|id| world.execs.get(id)).map(|(_, argv)| argv.join(" ")).unwrap_or_default();
            let failing = world.failing.as_ref().filter(|(word, _)| argv.ends_with(word.as_str()));
            let code = failing.map_or(0, |(_, code)| *code);
            json_response(200, &json!({"ExitCode": code, "Running": false}))
        }
        ("POST", ["containers", "create"]) => {
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            let name = request.query("name").unwrap();
            save(root, &json!({"name": name, "labels": body["Labels"], "state": "created", "files": []}));
            json_response(201, &json!({"Id": name, "Warnings": []}))
        }
        ("POST", ["commit"]) => {
            let reference = [request.query("repo").unwrap(), request.query("tag").unwrap()].join(":");
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            let image = json!({"Id": format!("sha256:{reference}"), "Config": body, "RepoTags": [reference]});
            world.images.insert(reference, image);
            json_response(201, &json!({"Id": "sha256:new"}))
        }
        ("GET", ["images", "json"]) => {
            let filters: Value = serde_json::from_str(&request.query("filters").unwrap()).unwrap();
            let label = text(&filters["label"][0]);
            let labelled = world.images.values().filter(|image| image["Config"]["Labels"].get(&label).is_some());
            let listed: Vec<_> = labelled
                .map(|image| {
                    json!({
                        "Id": image["Id"], "RepoTags": image["RepoTags"], "Labels": image["Config"]["Labels"], "ParentId": "",
                        "RepoDigests": [], "Created": 0, "Size": 0, "SharedSize": 0, "Containers": 0,
                    })
                })
                .collect();
            json_response(200, &json!(listed))
        }
        ("GET", ["images", "get"]) => Response::new(200, "a tar"),
        ("GET", ["images", reference @ .., "json"]) => {
            let reference = reference.join("/").replace("%3A", ":").replace("%2F", "/");
            found(world.images.get(&reference).cloned())
        }
        ("DELETE", ["images", id @ ..]) => {
            let id = id.join("/");
            world.images.retain(|_, image| image["Id"] != json!(id));
            json_response(200, &json!([]))
        }
        ("GET", ["networks"]) => json_response(200, &json!(networks(&world, root))),
        ("GET", ["networks", name]) => {
            found(networks(&world, root).into_iter().find(|n| n["Name"] == *name || n["Id"] == *name))
        }
        ("DELETE", ["networks", id]) => {
            let before = networks(&world, root).len();
            world.networks.retain(|network| network["Id"] != *id);
            for network in networks(&world, root).iter().filter(|network| network["Id"] == *id) {
                fs::remove_file(root.join("networks").join(text(&network["Name"]) + ".json")).ok();
            }
            if networks(&world, root).len() < before { Response::new(204, "") } else { found(None) }
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
