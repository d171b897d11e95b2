//! The real K8TRE repository's layout, and an own repository that is read from a remote.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::controller::{commit, write_tree};
use crate::support::{LIMIT, Running, World, fixture};

/// Kinds that the repository uses and a kind cluster lacks: group, version, kind, plural, scope.
const KINDS: [(&str, &str, &str, &str, &str); 5] = [
    ("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes", "Namespaced"),
    ("gateway.networking.k8s.io", "v1beta1", "Gateway", "gateways", "Namespaced"),
    ("cilium.io", "v2", "CiliumNetworkPolicy", "ciliumnetworkpolicies", "Namespaced"),
    ("external-secrets.io", "v1", "ClusterSecretStore", "clustersecretstores", "Cluster"),
    ("external-secrets.io", "v1", "ExternalSecret", "externalsecrets", "Namespaced"),
];

fn definitions() -> String {
    let definition = |(group, version, kind, plural, scope): (&str, &str, &str, &str, &str)| {
        // The API server wants a word on kinds of its own project's groups.
        let approved = "annotations: {api-approved.kubernetes.io: 'unapproved, for a test'}";
        format!(
            "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.{group}, {approved}}}\n\
             spec:\n  group: {group}\n  scope: {scope}\n  names: {{kind: {kind}, plural: {plural}}}\n  versions:\n  \
             - {{name: {version}, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}\n"
        )
    };
    KINDS.into_iter().map(definition).collect()
}

/// The layout files of the real repository, as a repository of the world's developer.
fn own_fixture(world: &World) -> Option<PathBuf> {
    let folder = fixture("of_the_real_repository_what_can_run_is_healthy")?;
    let repo = world.home.join("k8tre");
    world.start_program("cp", &["-R", &folder.to_string_lossy(), &repo.to_string_lossy()]).wait(LIMIT).expect(0);
    let settings = "vendor = \"k3s\"\ndomain = \"tre.example.org\"\n\n[[prerequisites]]\nname = \"kinds\"\nmanifest = \"kinds.yaml\"\n";
    write_tree(&repo, [("k8tre.toml", settings), ("kinds.yaml", &definitions())]);
    commit(world, &repo);
    Some(repo)
}

#[test]
fn of_the_real_repository_what_can_run_is_healthy_and_the_rest_names_its_cause() {
    let world = World::new();
    let Some(repo) = own_fixture(&world) else { return };
    let name = world.name("alice");
    let before = world.snapshot(&[&repo]);
    let path = repo.to_string_lossy().into_owned();

    let preview = world.k8tre(&["dev", "preview", &name, "--repo", &path, "-o", "json"]).json();
    let predicted: BTreeSet<String> = names(&preview["applications"]);
    let up = world.up(&name, &["--repo", &path, "--timeout", "75s"]);
    assert_eq!(up.code, Some(3), "most of it needs files or registries that are not here: {up}");

    // Argo CD made what was predicted, and judges it as status tells.
    let live = world.objects(&name, "applications.argoproj.io", &["-n", "argocd"]);
    let made: BTreeSet<String> = live.keys().filter_map(|key| key.rsplit('/').next()).map(str::to_owned).collect();
    let root = format!("root-app-of-apps-{name}");
    assert_eq!(made.iter().filter(|app| **app != root).cloned().collect::<BTreeSet<_>>(), predicted);
    let status = world.status_in_peace(&name, &["-o", "json"]).expect(3).json();
    let told: BTreeMap<&str, &Value> = status["applications"]
        .as_array()
        .expect("a list of Applications")
        .iter()
        .map(|app| (app["name"].as_str().expect("with names"), app))
        .collect();
    let verdict = |app: &str| told[format!("{app}-{name}").as_str()]["verdict"].as_str().unwrap_or_default().to_owned();
    let cause =
        |app: &str| told[format!("{app}-{name}").as_str()]["cause"]["code"].as_str().unwrap_or_default().to_owned();
    assert_eq!(verdict("storage-k3s-dev"), "healthy", "{status:#}");
    let store = world.kubectl(&name, &["get", "clustersecretstores.external-secrets.io", "secret-store", "-o", "name"]);
    assert!(store.expect(0).stdout.contains("secret-store"));
    for (app, code) in [
        ("gateway", "image"),
        ("backend", "image"),
        ("ad", "plugin-failed"),
        ("cnpg", "kustomize-failed"),
        ("secret-store", "unhealthy-object"),
    ] {
        assert!(cause(app).starts_with(code), "{app} is said to be {}: {status:#}", cause(app));
        assert_ne!(verdict(app), "healthy", "{app}");
    }

    // The store's own controller is not here; once its word is there, the store is healthy, and is said to be.
    let ready = r#"{"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#;
    let patch = ["patch", "clustersecretstores.external-secrets.io", "secret-store", "--type=merge", "-p", ready];
    world.kubectl(&name, &patch).expect(0);
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let status = world.status_in_peace(&name, &["-o", "json"]).json();
        let store = format!("secret-store-{name}");
        let apps = status["applications"].as_array().expect("a list of Applications");
        if apps.iter().any(|app| app["name"] == store.as_str() && app["verdict"] == "healthy") {
            break;
        }
        assert!(Instant::now() < deadline, "{status:#}");
        std::thread::sleep(Duration::from_secs(2));
    }

    // The plugin puts the domain in, and a laptop's storage classes stand in for Longhorn's.
    let route = world.object(&name, "httproutes.gateway.networking.k8s.io", "gateway", "gw-health-probe-route");
    assert_eq!(route["spec"]["hostnames"][0], "gw.tre.example.org");
    let class = world.object(&name, "storageclass", "default", "rwo-default");
    assert_eq!(class["provisioner"], "rancher.io/local-path");

    // The listed secrets, before anything needs them.
    let secrets = world.objects(&name, "secrets", &["-n", "secret-store"]);
    assert_eq!(secrets.len(), 15, "{:?}", secrets.keys());
    let password =
        world.k8tre(&["dev", "secrets", &name, "--reveal=keycloak-admin-bootstrap/password"]).expect(0).stdout;
    assert_eq!(password.trim().len(), 32);
    assert!(!format!("{up}{status}").contains(password.trim()));

    world.down(&name);
    world.assert_nothing_left(&before, &[&repo]);
}

fn names(list: &Value) -> BTreeSet<String> {
    let list = list.as_array().expect("a list").iter();
    list.map(|entry| entry["name"].as_str().expect("with names").to_owned()).collect()
}

#[test]
fn a_branch_is_read_from_a_remote_and_removed_there() {
    let world = World::new();
    let name = world.name("remo");
    let repo = world.own_repository();
    let (daemon, url) = daemon(&world);
    world.git(&repo, &["remote", "add", "origin", &url]).expect(0);
    let served = world.home.join("served/tre.git");
    let before = world.snapshot(&[&repo, &served]);

    let up = world.up_healthy(&name, &["--repo", &repo.to_string_lossy(), "--source", "remote"]);
    let branch = format!("refs/heads/dev/{name}");
    assert_eq!(world.tip(&served, &branch).as_deref(), Some(up.commit.as_str()), "the remote has what is deployed");
    let root = world.objects(&name, "applications.argoproj.io", &["-n", "argocd"]);
    for (app, object) in root {
        assert_eq!(object["spec"]["source"]["repoURL"], url, "{app} reads from the remote");
    }
    let again = world.up_healthy(&name, &[]);
    assert!(!again.changed, "a second up changes nothing");

    world.down(&name);
    assert_eq!(world.tip(&served, &branch), None);
    world.assert_nothing_left(&before, &[&repo, &served]);
    drop(daemon);
}

/// Where this machine is for the containers of its Docker: the gateway, which a Docker that was started again does not
/// always tell, is the first address of its network.
pub fn bridge(world: &World) -> IpAddr {
    let inspect = ["network", "inspect", "bridge", "--format", "{{(index .IPAM.Config 0).Subnet}}"];
    let subnet = world.docker(&inspect).expect(0).stdout;
    let base: Ipv4Addr = subnet.trim().split('/').next().and_then(|base| base.parse().ok()).expect("a subnet");
    IpAddr::V4(Ipv4Addr::from_bits(base.to_bits() + 1))
}

/// A real git daemon that takes pushes, at an address that pods reach too.
pub fn daemon(world: &World) -> (Running, String) {
    let address = bridge(world);
    let root = world.home.join("served");
    fs::create_dir(&root).expect("a folder to serve");
    world.git(&root, &["init", "--quiet", "--bare", "tre.git"]).expect(0);
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|probe| probe.local_addr()).expect("a free port").port();
    let base = format!("--base-path={}", root.display());
    let (listen, port) = (format!("--listen={address}"), port.to_string());
    let args =
        ["daemon", "--export-all", "--enable=receive-pack", "--reuseaddr", &base, &listen, &format!("--port={port}")];
    let daemon = world.start_program("git", &args);
    let deadline = Instant::now() + Duration::from_secs(10);
    while std::net::TcpStream::connect(format!("{address}:{port}")).is_err() {
        assert!(Instant::now() < deadline, "git daemon does not listen: {}", daemon.stderr());
        std::thread::sleep(Duration::from_millis(100));
    }
    (daemon, format!("git://{address}:{port}/tre.git"))
}
