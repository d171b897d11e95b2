//! A hospital's network: proxies, an authority of its own, mirrors; and Podman in Docker's place.

use serde_json::{Value, json};

use crate::support::desk::Desk;
use crate::support::tools;

const CLUSTER: &str = "k8tre-alice";
const NODE: &str = "k8tre-alice-control-plane";
const UP: [&str; 4] = ["dev", "up", "alice", "--sample"];
const ARGS: [&str; 4] =
    ["--ca-bundle", "hospital.pem", "--registry-mirror", "docker.io=https://mirror.hospital.example"];

/// A certificate, and beside it what is nobody else's business.
fn authority() -> String {
    let made = rcgen::generate_simple_self_signed(["hospital.example".to_owned()]).unwrap();
    format!("{}{}", made.signing_key.serialize_pem(), made.cert.pem())
}

async fn desk() -> Desk {
    let desk = Desk::new().await.with("HTTPS_PROXY", Some("http://me:secret@127.0.0.2:1"));
    desk.write("work/hospital.pem", &authority());
    desk
}

fn of(desk: &Desk, plural: &str, name: &str) -> Value {
    desk.clusters.object(CLUSTER, plural, name).unwrap_or_default()
}

fn told(desk: &Desk) -> String {
    let file = desk.docker.containers().join(format!("{NODE}.json"));
    let node: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    node["told"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_reaches_the_nodes_and_the_repository_server_and_is_kept() {
    // A proxy whose name is looked up nowhere.
    let desk = desk().await.with("HTTPS_PROXY", Some("http://me:secret@proxy.invalid:3128"));
    let up = desk.run(&[&UP[..], &ARGS].concat()).await;
    up.code(0).says("is healthy").hides("secret");

    let proxies = desk.kind.proxies().join("\n");
    assert!(proxies.contains("HTTPS_PROXY=http://me:secret@proxy.invalid:3128"), "{proxies}");
    assert!(proxies.contains(".svc,.cluster.local"), "{proxies}");
    assert!(desk.kind.config(CLUSTER).contains("/etc/containerd/certs.d"));
    let script = told(&desk);
    assert!(script.contains("BEGIN CERTIFICATE") && !script.contains("PRIVATE KEY"), "{script}");
    assert!(script.contains("[host.\"https://mirror.hospital.example\"]"), "{script}");

    let object = |plural: &str, name: &str| of(&desk, plural, name);
    let server = object("deployments", "argocd-repo-server");
    let pod = &server["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["envFrom"], json!([{"secretRef": {"name": "k8tre-proxy"}}]), "{pod}");
    assert_eq!(pod["containers"][0]["volumeMounts"][0]["mountPath"], "/etc/ssl/certs");
    assert_eq!(pod["initContainers"][0]["image"], pod["containers"][0]["image"]);
    assert!(object("configmaps", "k8tre-authorities")["data"]["authorities.pem"].to_string().contains("CERTIFICATE"));
    let bypass = object("secrets", "k8tre-proxy").to_string();
    assert!(bypass.contains("10.96.0.0/16") && bypass.contains("10.244.0.0/16") && bypass.contains(NODE), "{bypass}");
    let others = object("deployments", "argocd-server").to_string() + &server.to_string();
    assert!(!others.contains("secret@"), "{others}");

    // Without the file, and without the variable, it is as it was settled.
    std::fs::remove_file(desk.path("work/hospital.pem")).unwrap();
    let desk = desk.with("HTTPS_PROXY", None);
    desk.run(&UP).await.code(0).says("nothing was to be done");
    desk.run(&["dev", "status"]).await.code(0);

    // Another authority is told to the nodes and to the server.
    desk.write("work/other.pem", &authority());
    desk.run(&[&UP[..], &["--ca-bundle", "other.pem"]].concat()).await.code(0).says("node-network");
    assert_ne!(told(&desk), script);
    let marked = |server: &Value| server["spec"]["template"]["metadata"]["annotations"]["k8tre.dev/network"].clone();
    let now = marked(&of(&desk, "deployments", "argocd-repo-server"));
    assert!(now.is_string() && now != marked(&server), "{now}");
    desk.run(&["dev", "down", "alice"]).await.code(0).says("nothing left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_on_loopback_is_given_to_no_pod() {
    let desk = desk().await;
    desk.run(&UP).await.code(0);
    assert!(desk.clusters.object(CLUSTER, "secrets", "k8tre-proxy").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_network_is_refused_before_anything_is_made() {
    let desk = desk().await;
    for (more, code, words) in [
        (["--registry-mirror", "docker.io=mirror"], 2, "no mirror of a registry"),
        (["--registry-mirror", "docker.io=https://me:secret@mirror"], 2, "no mirror of a registry"),
        (["--ca-bundle", "nowhere.pem"], 5, "nowhere.pem"),
    ] {
        desk.run(&[&UP[..], &more].concat()).await.code(code).says(words).says("hint: ").hides("secret");
        assert!(desk.docker.names().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_settings_file_has_a_network_too() {
    let desk = Desk::new().await;
    desk.write("config/corp.pem", &authority());
    let settings = "[network]\nca-bundle = \"corp.pem\"\nhttps-proxy = \"http://proxy.invalid:3128\"\n\n\
        [network.registry-mirrors]\n\"quay.io\" = [\"https://mirror.example\"]\n";
    desk.write("config/config.toml", settings);
    desk.run(&UP).await.code(0);
    let script = told(&desk);
    assert!(script.contains("certs.d/quay.io/hosts.toml") && script.contains("CERTIFICATE"), "{script}");
    assert!(desk.clusters.object(CLUSTER, "secrets", "k8tre-proxy").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn podman_makes_the_nodes_where_kind_is_told_so_and_is_not_paused() {
    let desk = Desk::new().await.with("KIND_EXPERIMENTAL_PROVIDER", Some("podman"));
    desk.docker.change(|world| {
        world.info["ServerVersion"] = json!("5.4.2");
        world.version = json!({"Version": "5.4.2", "Components": [{"Name": "Podman Engine", "Version": "5.4.2"}]});
    });
    desk.run(&UP).await.code(5).says("podman is not on PATH");
    assert!(desk.docker.names().is_empty());
    tools::write(desk.kind.folder(), "podman", "#!/bin/sh\necho 'nobody should run this' >&2\nexit 64\n");
    std::fs::remove_file(desk.kind.folder().join("docker")).unwrap();
    desk.run(&UP).await.code(0).says("is healthy");
    let argv = desk.kind.argv().join("\n");
    assert!(argv.contains("--image kindest/node:"), "no node image is prepared: {argv}");
    let env = desk.kind.env().join("\n");
    assert!(env.contains("KIND_EXPERIMENTAL_PROVIDER=podman") && !env.contains("PROVIDER=docker"), "{env}");
    desk.run(&["dev", "pause", "alice"]).await.code(5).says("in Podman is not paused");
    let report = desk.run(&["doctor", "-o", "json", "--offline"]).await;
    assert!(report.stdout.contains("Podman 5.4.2"), "{report:?}");
    desk.run(&["dev", "down", "alice"]).await.code(0).says("nothing left");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_kind_could_use_and_k8tre_cannot_is_said() {
    let desk = Desk::new().await.with("KIND_EXPERIMENTAL_PROVIDER", Some("nerdctl"));
    desk.run(&["doctor", "--offline"]).await.shows("KIND_EXPERIMENTAL_PROVIDER=nerdctl is not followed");
}
