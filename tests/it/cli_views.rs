//! What there is to see of an environment: pictures, logs, ways in, live status, a shell.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::cli_whole::UP;
use super::support::desk::{Desk, Ended, SAMPLE};

const CLUSTER: &str = "k8tre-alice";

async fn with_environment() -> Desk {
    let desk = Desk::new().await;
    desk.run(&UP).await.code(0);
    desk
}

fn pod(name: &str, containers: &[&str]) -> Value {
    let statuses: Vec<Value> =
        containers.iter().map(|name| json!({"name": name, "ready": true, "state": {"running": {}}})).collect();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "web", "ownerReferences": [{"kind": "StatefulSet", "name": "portal"}]},
        "status": {"phase": "Running", "containerStatuses": statuses},
    })
}

/// The portal with two pods, of which one has two containers.
async fn with_pods() -> Desk {
    let desk = with_environment().await;
    desk.clusters.deployed("portal", json!([
        {"kind": "StatefulSet", "name": "portal", "namespace": "web"}, {"kind": "Namespace", "name": "web", "namespace": ""}
    ]));
    desk.clusters.plant(CLUSTER, "pods", &pod("portal-0", &["web", "proxy"]));
    desk.clusters.plant(CLUSTER, "pods", &pod("portal-1", &["web"]));
    desk.clusters.log("portal-0", "web", "2026-01-01T00:00:01Z first\n2026-01-01T00:00:04Z \u{1b}]0;x\u{7}fourth\n");
    desk.clusters.log("portal-0", "proxy", "2026-01-01T00:00:03Z third\n");
    desk.clusters.log("portal-1", "web", "2026-01-01T00:00:02Z second\n");
    desk
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_up_is_shown_as_bars_and_as_data() {
    let desk = with_environment().await;
    let timings = desk.run(&["dev", "timings", "-o", "json"]).await.code(0).json();
    let ids: Vec<&str> = timings["steps"].as_array().unwrap().iter().map(|step| step["id"].as_str().unwrap()).collect();
    let plan = desk.run(&["dev", "plan", "-o", "json"]).await.code(0).json();
    for step in plan["steps"].as_array().unwrap() {
        assert!(ids.contains(&step["step"].as_str().unwrap()), "{step} is not among {ids:?}");
    }
    let text = desk.run(&["dev", "timings", "alice"]).await.code(0).stdout.clone();
    assert!(text.contains("the last up of alice took") && !text.contains('\u{1b}'), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_picture_shows_every_application_also_when_the_cluster_is_gone() {
    let desk = with_environment().await;
    desk.clusters.health("portal", "Degraded");
    let tree = desk.run(&["dev", "graph"]).await.code(0).stdout.clone();
    for part in SAMPLE.iter().map(|name| format!("Application {name}-alice")) {
        assert!(tree.contains(&part), "{part}: {tree}");
    }
    assert!(
        tree.contains("ApplicationSet portal-alice") && tree.contains("Application portal-alice  Degraded"),
        "{tree}"
    );
    for (format, begin) in [("mermaid", "flowchart"), ("dot", "digraph"), ("svg", "<svg")] {
        let drawn = desk.run(&["dev", "graph", "--format", format]).await.code(0).stdout.clone();
        assert!(drawn.starts_with(begin) && drawn.contains("portal-alice"), "{drawn}");
    }
    std::fs::remove_file(desk.docker.containers().join("k8tre-alice-control-plane.json")).unwrap();
    let tree = desk.run(&["dev", "graph"]).await.code(0).stdout.clone();
    assert!(
        tree.contains("cluster k8tre-alice  absent") && tree.contains("Application portal-alice  cannot be seen"),
        "{tree}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_knows_its_environment_and_its_exit_code_counts() {
    let desk = Desk::new().await;
    desk.run(&["dev", "shell", "alice", "--", "sh"]).await.code(4);
    desk.run(&UP).await.code(0);
    let script = "echo $K8TRE_NAME $KUBECONFIG; exit 7";
    let ended = desk.run(&["dev", "shell", "--", "sh", "-c", script]).await;
    let kubeconfig = desk.path("data/environments/alice/kubeconfig").display().to_string();
    assert_eq!(ended.code(7).stdout, format!("alice {kubeconfig}\n"));
    desk.run(&["dev", "shell", "--", "nowhere-to-be-found"]).await.code(1).says("nowhere-to-be-found was not found");
    let desk = desk.with("SHELL", Some("true"));
    desk.run(&["dev", "shell"]).await.code(1).says("exit or Ctrl-D").says("true was not found");
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_of_all_pods_come_in_the_order_of_time() {
    let desk = with_pods().await;
    let ended = desk.run(&["dev", "logs", "portal", "--no-follow"]).await;
    let words = |ended: &Ended| -> Vec<String> { ended.stdout.split_whitespace().map(str::to_owned).collect() };
    let all = ["portal-0/web", "first", "portal-1", "second", "portal-0/proxy", "third", "portal-0/web", "fourth"];
    assert_eq!(words(ended.code(0)), all);
    assert!(!ended.stdout.contains('\u{1b}'), "{:?}", ended.stdout);
    let one = desk.run(&["dev", "logs", "portal-alice", "--no-follow", "--container", "proxy"]).await;
    assert_eq!(words(one.code(0)), ["portal-0/proxy", "third"]);
    let json = desk.run(&["dev", "logs", "portal", "--no-follow", "-o", "json"]).await;
    let first: Value = serde_json::from_str(json.code(0).stdout.lines().next().unwrap()).unwrap();
    assert_eq!((&first["pod"], &first["line"]), (&"portal-0".into(), &"first".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn following_picks_up_new_pods_and_says_nothing_twice() {
    let desk = with_pods().await;
    let following = desk.start(&["dev", "logs", "portal"]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    desk.clusters.log("portal-2", "web", "2026-01-01T00:00:09Z newcomer\n");
    desk.clusters.plant(CLUSTER, "pods", &pod("portal-2", &["web"]));
    tokio::time::sleep(Duration::from_secs(4)).await;
    following.signal(Signal::INT);
    let ended = following.ended().await;
    ended.code(0);
    for word in ["first", "second", "third", "fourth", "newcomer"] {
        assert_eq!(ended.stdout.matches(word).count(), 1, "{word}: {}", ended.stdout);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_says_nothing_is_named_all_the_same() {
    let desk = with_pods().await;
    for container in ["portal-0/web", "portal-0/proxy", "portal-1/web"] {
        let (pod, container) = container.split_once('/').unwrap();
        desk.clusters.log(pod, container, "");
    }
    let ended = desk.run(&["dev", "logs", "portal", "--no-follow"]).await;
    ended.code(0).says("portal-0/web, portal-0/proxy, portal-1: no line");
    let following = desk.start(&["dev", "logs", "portal"]);
    tokio::time::sleep(Duration::from_secs(6)).await;
    following.signal(Signal::INT);
    following.ended().await.code(0).says("portal-0/web, portal-0/proxy, portal-1: no line yet; following");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_run_before_a_crash_can_be_read() {
    let desk = with_pods().await;
    let previous = ["dev", "logs", "portal", "--previous"];
    desk.run(&previous).await.code(1).says("no container of portal-alice has ended a run");
    let mut crashed = pod("portal-1", &["web"]);
    crashed["status"]["containerStatuses"][0]["lastState"] = json!({"terminated": {"exitCode": 3}});
    desk.clusters.plant(CLUSTER, "pods", &crashed);
    desk.clusters.log("portal-1", "web before", "2026-01-01T00:00:01Z last words\n");
    let ended = desk.run(&previous).await;
    assert_eq!(ended.code(0).stdout.split_whitespace().collect::<Vec<_>>(), ["portal-1", "last", "words"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_of_what_cannot_log_say_why() {
    let desk = with_pods().await;
    desk.run(&["dev", "logs", "portla", "--no-follow"])
        .await
        .code(2)
        .says("has no Application portla")
        .says("portal-alice");
    desk.run(&["dev", "logs", "metrics", "--no-follow"]).await.code(1).says("metrics-alice has no pods");
    let mut broken = pod("portal-0", &["web", "proxy"]);
    for status in broken["status"]["containerStatuses"].as_array_mut().unwrap() {
        let waiting = json!({"reason": "ImagePullBackOff", "message": "Back-off pulling image \"web:2\": not found"});
        *status = json!({"name": status["name"], "ready": false, "image": "web:2", "state": {"waiting": waiting, "running": null}});
    }
    broken["status"]["phase"] = "Pending".into();
    desk.clusters.plant(CLUSTER, "pods", &broken);
    desk.clusters.lose(CLUSTER, "pods", "portal-1");
    desk.clusters.health("portal", "Degraded");
    let ended = desk.run(&["dev", "logs", "portal", "--no-follow"]).await;
    ended.code(3).says("no pod of portal-alice can log").says("[image-").says("hint: ");
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_tells_each_change_once_and_ends_with_the_last_state() {
    let desk = with_environment().await;
    let json = desk.start(&["dev", "status", "--watch", "-o", "json"]);
    let text = desk.start(&["dev", "status", "--watch"]);
    tokio::time::sleep(Duration::from_secs(4)).await;
    desk.clusters.health("portal", "Degraded");
    tokio::time::sleep(Duration::from_secs(6)).await;
    json.signal(Signal::INT);
    text.signal(Signal::TERM);
    let json = json.ended().await;
    let looks: Vec<Value> = json.code(3).stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let healthy: Vec<bool> = looks.iter().map(|look| look["healthy"].as_bool().unwrap()).collect();
    assert_eq!(healthy, [true, false]);
    let text = text.ended().await;
    let blocks = text.code(3).stdout.matches("APPLICATION").count();
    assert!(blocks == 2 && text.stdout.contains("Degraded") && !text.stdout.contains('\u{1b}'), "{}", text.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_opened_is_said_before_anything_is_held() {
    let desk = with_environment().await;
    desk.run(&["dev", "open", "alice", "--print"]).await.code(2).says("k8tre dev open --name alice");
    desk.run(&["dev", "open", "metrics", "--print"]).await.code(1).says("metrics-alice has no Service");
    desk.clusters.deployed("portal", json!([{"kind": "Service", "name": "portal", "namespace": "web"}]));
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "portal", "namespace": "web"},
        "spec": {"selector": {"app": "portal"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
    });
    desk.clusters.plant(CLUSTER, "services", &service);
    desk.run(&["dev", "open", "portal", "portal", "--port", "8080"]).await.code(2).says("--port is for one connection");
    let held = desk.start(&["dev", "open", "portal", "portal", "--print"]);
    assert!(held.says(|line| line.contains("Ctrl-C")).await);
    held.signal(Signal::INT);
    let ended = held.ended().await;
    let urls: Vec<&str> = ended.code(0).stdout.lines().collect();
    assert!(
        urls.len() == 2 && urls[0] != urls[1] && urls.iter().all(|url| url.starts_with("http://127.0.0.1:")),
        "{urls:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_held_open_survives_a_restarted_pod() {
    let desk = with_environment().await;
    desk.clusters.deployed("portal", json!([{"kind": "Service", "name": "portal", "namespace": "web"}]));
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "portal", "namespace": "web"},
        "spec": {"selector": {"app": "portal"}, "ports": [{"name": "http", "port": 80, "targetPort": "page"}]},
    });
    desk.clusters.plant(CLUSTER, "services", &service);
    let with_label = |name: &str| {
        let mut pod = pod(name, &["web"]);
        pod["metadata"]["labels"] = json!({"app": "portal"});
        pod["spec"] = json!({"containers": [{"name": "web", "ports": [{"name": "page", "containerPort": 8123}]}]});
        pod
    };
    desk.clusters.plant(CLUSTER, "pods", &with_label("portal-0"));
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let held = desk.start(&["dev", "open", "portal", "--print", "--port", &port.to_string()]);
    assert!(held.says(|line| line.contains("Ctrl-C")).await);
    assert!(page(port).await.ends_with("portal-0:8123"));
    desk.clusters.lose(CLUSTER, "pods", "portal-0");
    let waiting = tokio::spawn(page(port));
    tokio::time::sleep(Duration::from_secs(1)).await;
    desk.clusters.plant(CLUSTER, "pods", &with_label("portal-1"));
    assert!(waiting.await.unwrap().ends_with("portal-1:8123"));
    held.signal(Signal::INT);
    held.ended().await.code(0);
}

/// What a browser gets.
async fn page(port: u16) -> String {
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut text = String::new();
    let read = tokio::time::timeout(Duration::from_secs(30), stream.read_to_string(&mut text)).await;
    read.expect("an answer in time").unwrap();
    text
}
