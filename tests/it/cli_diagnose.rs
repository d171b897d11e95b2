//! The archive for a bug report: what is in it, and above all what is not.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::json;

use super::cli_whole::UP;
use super::cli_whole::sample_in;
use super::support::desk::Desk;
use super::support::existing::{self, LAB};

const CLUSTER: &str = "k8tre-alice";

fn unpacked(path: &Path) -> BTreeMap<String, String> {
    let file = std::fs::File::open(path).unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let mut files = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().display().to_string();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        files.insert(name.split_once('/').unwrap().1.to_owned(), text);
    }
    files
}

/// One secret for each place in which it could hide; each can be told from the others.
const PLANTED: [&str; 17] = [
    "planted-01-secret-data",
    "planted-02-secret-in-a-log",
    "planted-03-env-value",
    "planted-04-argument",
    "planted-05-argument-apart",
    "planted-06-last-applied",
    "planted-07-config-map",
    "planted-08-url",
    "planted-09-password-in-log",
    "planted-10-bearer",
    "planted-11-private-key",
    "planted-12-helm-parameter",
    "planted-13-event",
    "planted-14-kubelet",
    "planted-15-json-in-log",
    "planted-16-basic-token",
    "planted-17-label-in-journal",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_gets_into_the_archive_wherever_it_hides() {
    let desk = Desk::new().await;
    let label = format!("api-token={}", PLANTED[16]);
    desk.run(&["dev", "up", "alice", "--sample", "--label", &label]).await.code(0);
    let [s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15, s16, _] = PLANTED;
    let plant = |plural: &str, object| desk.clusters.plant(CLUSTER, plural, &object);
    let data = json!({"password": BASE64_STANDARD.encode(s1), "other": BASE64_STANDARD.encode(s2)});
    plant(
        "secrets",
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "web"}, "data": data}),
    );
    plant(
        "configmaps",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "web"}, "data": {"x": s7}}),
    );
    plant(
        "pods",
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web-0", "namespace": "web", "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": format!("{{\"x\":\"{s6}\"}}")}},
            "spec": {"containers": [{"name": "web", "args": [format!("--token={s4}"), "--client-secret", s5],
                "env": [{"name": "DB_PASSWORD", "value": s3}, {"name": "PLAIN", "value": "to-be-seen"}]}]},
            "status": {"phase": "Running", "containerStatuses": [
                {"name": "web", "ready": false, "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 1}}}]},
        }),
    );
    plant(
        "events",
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "web"},
        "message": format!("cannot clone https://alice:{s13}@git.example.org/x")}),
    );
    plant(
        "applications",
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "other", "namespace": "argocd"},
        "spec": {"source": {"helm": {"parameters": [{"name": "adminPassword", "value": s12}]}}}}),
    );
    let key = format!("-----BEGIN RSA PRIVATE KEY-----\n2026 {s11}\n-----END RSA PRIVATE KEY-----");
    let log = format!(
        "2026-01-01T00:00:00Z started, to-be-seen\nseen {s2} in passing\nproxy https://u:{s8}@h/x\npassword={s9}\n\
         > Authorization: Bearer {s10}\n> authorization: token {s16}\n{key}\n{{\"level\":\"info\",\"api_key\":\"{s15}\"}}\n"
    );
    desk.clusters.log("web-0", "web", &log);
    desk.kind.exports(&format!("kubelet started\nregistry login failed: token: {s14}\n"));

    let ended = desk.run(&["dev", "diagnose", "--file", "report.tar.gz"]).await;
    ended.code(0).says("look through it");
    let files = unpacked(&desk.path("work/report.tar.gz"));
    for (name, text) in &files {
        for secret in PLANTED {
            assert!(!text.contains(secret), "{secret} is in {name}:\n{text}");
            assert!(!text.contains(&BASE64_STANDARD.encode(secret)), "{secret} is in {name}, encoded");
        }
    }
    for wanted in [
        "versions.json",
        "journal.json",
        "status.json",
        "status.txt",
        "plan.txt",
        "docker.txt",
        "kubernetes/Pod.json",
        "kubernetes/Secret.json",
        "kubernetes/Event.json",
        "logs/web/web-0/web.log",
        "logs/web/web-0/web.previous.log",
        "kind/k8tre-alice-control-plane/kubelet.log",
    ] {
        assert!(files.contains_key(wanted), "{wanted} is not among {:?}", files.keys());
    }
    assert!(files["logs/web/web-0/web.log"].contains("started, to-be-seen"));
    assert!(files["kubernetes/Pod.json"].contains("to-be-seen"), "what is no secret stays");
    assert!(files["kubernetes/Secret.json"].contains("\"password\""), "the keys of a Secret stay");
    assert!(files["kind/k8tre-alice-control-plane/kubelet.log"].contains("kubelet started"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_can_be_had_when_everything_is_broken() {
    let desk = Desk::new().await;
    desk.run(&["dev", "diagnose", "alice"]).await.code(4);
    desk.run(&UP).await.code(0);
    std::fs::remove_file(desk.docker.containers().join("k8tre-alice-control-plane.json")).unwrap();
    let desk = desk.with("DOCKER_HOST", Some("unix:///nowhere/docker.sock"));
    let ended = desk.run(&["dev", "diagnose", "--file", "report.tar.gz", "-o", "json"]).await;
    let report = ended.code(0).json();
    let files = unpacked(&desk.path("work/report.tar.gz"));
    assert!(files.contains_key("journal.json") && files.contains_key("status.txt"), "{:?}", files.keys());
    let missing = &files["MISSING.txt"];
    assert!(missing.contains("docker.txt") && missing.contains("kubernetes/Pod"), "{missing}");
    assert_eq!(missing.lines().next(), report["missing"][0].as_str());

    desk.write("data/environments/alice/journal.json", "{");
    desk.run(&["dev", "diagnose", "alice", "--file", "report.tar.gz"]).await.code(0).says("journal.json");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_argo_cds_side_is_in_it_without_its_token_and_without_anybody_elses() {
    let desk = super::support::shared::desk().await;
    desk.run(&super::support::shared::UP).await.code(0);
    desk.run(&["dev", "diagnose", "alice", "--file", "shared.tar.gz"]).await.code(0);
    let files = unpacked(&desk.path("work/shared.tar.gz"));
    assert!(files["shared/Application.json"].contains("portal-alice"), "{:?}", files.keys());
    assert!(!files["shared/Application.json"].contains("portal-hub"));
    assert!(files["shared/AppProject.json"].contains("root-dev-alice"));
    assert!(files["shared/registration.json"].contains("https://k8tre-alice-control-plane:6443"));
    let tokens = desk.clusters.tokens(CLUSTER);
    assert_eq!(tokens.len(), 1);
    assert!(files.values().all(|text| !text.contains(&tokens[0])), "the token is told");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_cluster_that_is_not_ours_only_the_environments_part_is_taken() {
    let desk = existing::desk().await;
    sample_in(&desk, "tre").await;
    existing::give_argocd(&desk);
    desk.clusters
        .deployed("portal-alice", json!([{"version": "v1", "kind": "ConfigMap", "namespace": "portal", "name": "x"}]));
    let up: Vec<&str> = existing::UP.into_iter().chain(["--yes"]).collect();
    desk.run(&up).await.code(0);
    for namespace in ["portal", "elsewhere"] {
        let metadata = json!({"name": format!("map-of-{namespace}"), "namespace": namespace});
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        desk.clusters.plant(LAB, "configmaps", &map);
    }
    let path = desk.path("work/d.tar.gz");
    desk.run(&["dev", "diagnose", "alice", "--file", path.to_str().unwrap()]).await.code(0);
    let files = unpacked(&path);
    let has = |kind: &str, name: &str| files[&format!("kubernetes/{kind}.json")].contains(&format!("\"{name}\""));
    assert!(has("ConfigMap", "map-of-portal") && has("Service", "k8tre-git") && has("Application", "portal-alice"));
    for (kind, theirs) in [
        ("ConfigMap", "map-of-elsewhere"),
        ("ConfigMap", "argocd-cm"),
        ("Application", "theirs"),
        ("Pod", "argocd-repo-server-0"),
    ] {
        assert!(!has(kind, theirs), "{kind} {theirs}");
    }
}
