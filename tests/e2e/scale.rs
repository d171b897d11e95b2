//! `status` on a thousand Applications, against a real API server with a real etcd behind it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use k8tre::cli::UpArgs;
use k8tre::journal::{Journal, Lock, Writer};
use k8tre::ports::dirs::Dirs;
use k8tre::settings::{Found, settle};
use serde_json::{Value, json};

use crate::support::{Running, World};

const MANY: usize = 1000;
/// Some are not healthy, so that their causes are looked for too.
const DEGRADED: usize = 20;
/// Programs that were built to be debugged take their time.
const SLOWER: u32 = if cfg!(debug_assertions) { 6 } else { 1 };
const LIMIT: Duration = Duration::from_millis(1500);
/// KiB, of 100 MB. A program for debugging is larger by itself.
const MEMORY: u64 = if cfg!(debug_assertions) { 180 << 10 } else { 100_000_000 >> 10 };

#[test]
fn status_of_a_thousand_applications_is_quick_small_and_asks_for_pages() {
    let world = World::new();
    let name = world.name("wide");
    let server = Server::start(&world);
    let repo = repository(&world);
    record(&world, &name, &repo);
    fs::write(world.kubeconfig(&name), server.kubeconfig()).expect("the environment's kubeconfig");
    server.fill(&world, &name);

    let before = server.requests(&world, &name);
    let mut looks: Vec<(Duration, u64)> = Vec::new();
    let mut report = Value::Null;
    for _ in 0..3 {
        let began = Instant::now();
        let running = world.start(&["dev", "status", &name, "-o", "json"]);
        let mut peak = 0;
        while let Some(now) = running.memory() {
            peak = peak.max(now);
            std::thread::sleep(Duration::from_millis(3));
        }
        let ran = running.wait(Duration::from_secs(60)).expect(3);
        looks.push((began.elapsed(), peak));
        report = ran.json();
    }
    let asked = (server.requests(&world, &name) - before) / looks.len();
    looks.sort_unstable();
    let measured = format!("{looks:?} (time, KiB), {asked} requests for Applications each");

    let applications = report["applications"].as_array().expect("a list");
    let of = |verdict: &str| applications.iter().filter(|app| app["verdict"] == verdict).count();
    assert!(applications.len() > MANY, "{}", applications.len());
    assert_eq!((of("healthy"), of("failing")), (applications.len() - DEGRADED, DEGRADED));
    // Pages of 500, and the root Application by itself.
    assert!(asked <= applications.len().div_ceil(500) + 1, "{measured}");
    let (median, peak) = (looks[1].0, looks.iter().map(|look| look.1).max().unwrap_or_default());
    assert!(median <= LIMIT * SLOWER, "{measured}");
    assert!(peak <= MEMORY, "{measured}");
}

/// The sample with a thousand small apps beside its own.
fn repository(world: &World) -> std::path::PathBuf {
    let repo = world.home.join("tre");
    let write = |path: &str, content: &[u8]| {
        let path = repo.join(path);
        fs::create_dir_all(path.parent().expect("in the repository")).expect("a folder");
        fs::write(path, content).expect("a file");
    };
    for (path, content) in k8tre::sample::files() {
        write(&path.display().to_string(), content);
    }
    let set = fs::read_to_string(repo.join("appsets/agnostics/guardrails.yaml")).expect("the sample's");
    let set = set.replace("agnostics/guardrails/envs", "many/*/envs").replace("name: guardrails", "name: many");
    write("appsets/many.yaml", set.as_bytes());
    let list = fs::read_to_string(repo.join("appsets/kustomization.yaml")).expect("the sample's");
    write("appsets/kustomization.yaml", list.replace("resources:\n", "resources:\n  - many.yaml\n").as_bytes());
    for at in 0..MANY {
        let content = b"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: []\n";
        write(&format!("many/{}/envs/dev/kustomization.yaml", app(at)), content);
    }
    for args in [&["init", "--quiet", "--initial-branch=main"][..], &["add", "."], &["commit", "--quiet", "-m", "Many"]]
    {
        world.git(&repo, args).expect(0);
    }
    repo
}

fn app(at: usize) -> String {
    format!("app-{at:04}")
}

/// An environment as `up` would have recorded it.
fn record(world: &World, name: &str, repo: &Path) {
    let found = Found {
        repo: repo.to_owned(),
        sample: false,
        head: Some("main".into()),
        vendor: "kind".into(),
        lists_secrets: false,
    };
    let args = UpArgs {
        argocd_manifest: std::env::var_os("K8TRE_LAB_ARGOCD_MANIFEST").map(Into::into),
        domain: Some("wide.k8tre.internal".into()),
        ..UpArgs::default()
    };
    let spec = settle(&name.parse().expect("a name"), &args, None, &[], found).expect("nothing of it is unusable");
    let dirs = Dirs { data: world.data.clone(), cache: world.cache.clone(), config: world.config.clone() };
    let lock = Lock::take(&dirs, &spec.name, "test").expect("nobody else is there");
    Writer::new(&lock, Journal::new(spec)).update(|_| {}).expect("a journal");
}

/// etcd and kube-apiserver, and nothing else of a cluster.
struct Server {
    folder: tempfile::TempDir,
    port: u16,
    _running: [Running; 2],
}

impl Server {
    fn start(world: &World) -> Server {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let [client, peer, port] = free_ports();
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let etcd = world.start_program(
            "etcd",
            &[
                &format!("--data-dir={}", path("etcd")),
                "--unsafe-no-fsync",
                &format!("--listen-client-urls={}", url(client)),
                &format!("--advertise-client-urls={}", url(client)),
                &format!("--listen-peer-urls={}", url(peer)),
                &format!("--initial-advertise-peer-urls={}", url(peer)),
                &format!("--initial-cluster=default={}", url(peer)),
            ],
        );
        let key = path("sa.key");
        let made = Command::new("openssl").args(["genrsa", "-out", &key, "2048"]).output().expect("openssl is there");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        fs::write(folder.path().join("tokens.csv"), "let-me-in,admin,admin,system:masters\n").expect("a file");
        let apiserver = world.start_program(
            "kube-apiserver",
            &[
                &format!("--etcd-servers={}", url(client)),
                "--bind-address=127.0.0.1",
                &format!("--secure-port={port}"),
                &format!("--cert-dir={}", path("certs")),
                "--service-account-issuer=https://kubernetes.default.svc",
                &format!("--service-account-key-file={key}"),
                &format!("--service-account-signing-key-file={key}"),
                &format!("--token-auth-file={}", path("tokens.csv")),
                "--authorization-mode=AlwaysAllow",
                "--service-cluster-ip-range=10.96.0.0/24",
                "--disable-admission-plugins=ServiceAccount",
            ],
        );
        Server { folder, port, _running: [etcd, apiserver] }
    }

    fn kubeconfig(&self) -> String {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "wide",
            "clusters": [{"name": "wide", "cluster": {
                "server": format!("https://127.0.0.1:{}", self.port), "insecure-skip-tls-verify": true}}],
            "contexts": [{"name": "wide", "context": {"cluster": "wide", "user": "admin"}}],
            "users": [{"name": "admin", "user": {"token": "let-me-in"}}],
        })
        .to_string()
    }

    /// Argo CD's types and a thousand Applications as its controller would have left them.
    fn fill(&self, world: &World, name: &str) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while world.kubectl(name, &["get", "--raw", "/readyz"]).code != Some(0) {
            assert!(Instant::now() < deadline, "the API server does not become ready");
            std::thread::sleep(Duration::from_millis(300));
        }
        let manifest = std::env::var("K8TRE_LAB_ARGOCD_MANIFEST").expect("the lab has Argo CD's manifest");
        let manifest = fs::read_to_string(manifest).expect("a manifest");
        let is_type = |document: &&str| document.contains("\nkind: CustomResourceDefinition\n");
        let types: Vec<&str> = manifest.split("\n---\n").filter(is_type).collect();
        self.create(world, name, "types.yaml", &types.join("\n---\n"));
        // kubectl gives up at once on one that has no conditions yet.
        let wait = ["wait", "--for=condition=Established", "crd", "--all", "--timeout=10s"];
        while world.kubectl(name, &wait).code != Some(0) {
            assert!(Instant::now() < deadline, "Argo CD's types are not established");
        }
        world.kubectl(name, &["create", "namespace", "argocd"]).expect(0);
        let sample = ["guardrails", "identity", "metrics", "portal", "storage-class", "workspaces"];
        let names = (0..MANY).map(app).chain(sample.map(str::to_owned)).map(|app| format!("{app}-{name}"));
        let names: Vec<String> = names.chain([format!("root-app-of-apps-{name}")]).collect();
        for (part, names) in names.chunks(250).enumerate() {
            let items: Vec<Value> =
                names.iter().enumerate().map(|(at, app)| application(name, app, part == 0 && at < DEGRADED)).collect();
            let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
            self.create(world, name, &format!("part-{part}.json"), &list.to_string());
        }
    }

    fn create(&self, world: &World, name: &str, file: &str, content: &str) {
        let path = self.folder.path().join(file);
        fs::write(&path, content).expect("a file");
        world.kubectl(name, &["create", "-f", &path.display().to_string()]).expect(0);
    }

    /// Lists of Applications that the server has answered so far, by its own count.
    fn requests(&self, world: &World, name: &str) -> usize {
        let metrics = world.kubectl(name, &["get", "--raw", "/metrics"]).expect(0).stdout;
        let counts = metrics.lines().filter(|line| {
            line.starts_with("apiserver_request_total{")
                && line.contains(r#"resource="applications""#)
                && [r#"verb="LIST""#, r#"verb="GET""#].iter().any(|verb| line.contains(verb))
        });
        counts.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum()
    }
}

fn free_ports() -> [u16; 3] {
    let bind = || std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let held = [bind(), bind(), bind()];
    held.each_ref().map(|listener| listener.local_addr().expect("it listens").port())
}

/// As large as Applications are: ten objects, three deployments in the past.
fn application(environment: &str, name: &str, degraded: bool) -> Value {
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let health = if degraded { "Degraded" } else { "Healthy" };
    let source = json!({"repoURL": "git://k8tre-git.argocd.svc/tre.git", "path": format!("many/{name}/envs/dev"), "targetRevision": format!("dev/{environment}")});
    let object = |at: usize| {
        json!({"group": "apps", "kind": "Deployment", "namespace": name, "name": format!("object-{at}"), "version": "v1",
            "status": "Synced", "health": {"status": health}})
    };
    let synced = |at: usize| {
        json!({"group": "apps", "kind": "Deployment", "namespace": name, "name": format!("object-{at}"), "version": "v1",
            "status": "Synced", "syncPhase": "Sync", "hookPhase": "Running", "message": format!("deployment.apps/object-{at} configured")})
    };
    let past =
        |id: usize| json!({"id": id, "revision": commit, "deployedAt": "2026-01-01T00:00:00Z", "source": source});
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {"project": format!("dev-{environment}"), "source": source,
            "destination": {"server": "https://kubernetes.default.svc", "namespace": name}},
        "status": {
            "sync": {"status": "Synced", "revision": commit, "comparedTo": {"source": source, "destination": {"namespace": name}}},
            "health": {"status": health},
            "reconciledAt": "2026-01-01T00:00:00Z",
            "history": (0..3).map(past).collect::<Vec<_>>(),
            "resources": (0..10).map(object).collect::<Vec<_>>(),
            "operationState": {
                "phase": "Succeeded", "message": "successfully synced (all tasks run)", "startedAt": "2026-01-01T00:00:00Z",
                "operation": {"sync": {"revision": commit}},
                "syncResult": {"revision": commit, "source": source, "resources": (0..10).map(synced).collect::<Vec<_>>()},
            },
        },
    })
}
