//! vClusters on a host that is shared: what is asked of helm and of the host, and what their misleading answers come to.

use serde_json::json;

use super::expiry::ended;
use super::support::desk::{Desk, changes};
use super::support::existing::snapshot;
use super::support::vcluster::{FLAGS, HOST, confuse, desk, helm, helm_mode, take_namespace};

const NOTHING: [&str; 0] = [];
const DOWN: [&str; 3] = ["dev", "down", "alice"];

fn up<'a>(more: &[&'a str]) -> Vec<&'a str> {
    ["dev", "up", "alice", "-v", "--sample"].into_iter().chain(FLAGS).chain(more.iter().copied()).collect()
}

fn host_has(desk: &Desk, plural: &str, name: &str) -> bool {
    desk.clusters.object(HOST, plural, name).is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn helm_is_led_to_the_host_alone_and_the_users_values_come_before_what_must_be() {
    let desk = desk().await;
    let desk = desk.with("HELM_KUBECONTEXT", Some("work")).with("HELM_NAMESPACE", Some("production"));
    desk.write("mine.yaml", "controlPlane: {proxy: {extraSANs: [mine.example.org]}}\ntelemetry: {enabled: true}\n");
    confuse(&desk.path("work"));
    let before = snapshot(&desk);
    let values = desk.path("mine.yaml").display().to_string();
    desk.run(&up(&["--vcluster-values", &values])).await.code(0).says("alice is healthy");

    let argv = helm(&desk, "argv");
    assert_eq!(argv.lines().count(), 1, "{argv}");
    for wanted in ["upgrade --install k8tre-alice ", "chart.tgz", "--kube-context lab", "--namespace k8tre-alice"] {
        assert!(argv.contains(wanted), "{wanted}: {argv}");
    }
    let env = helm(&desk, "env");
    assert!(env.contains("HELM_KUBECONTEXT= HELM_NAMESPACE= "), "{env}");
    let own = format!("HELM_CACHE_HOME={}", desk.path("data/environments/alice").display());
    assert!(env.contains(&own), "{env}");
    let values = helm(&desk, "values");
    let last = values.lines().rfind(|line| !line.is_empty()).unwrap();
    assert!(last.contains("mine.example.org") && last.contains("k8tre-alice.k8tre-alice.svc"), "{last}");
    assert!(last.contains(r#""telemetry":{"enabled":false}"#), "{last}");
    let secret = desk.clusters.object(HOST, "secrets", "vc-k8tre-alice").unwrap();
    let key = secret["data"]["client-key"].as_str().unwrap();
    let kubeconfig = std::fs::read_to_string(desk.path("data/environments/alice/kubeconfig")).unwrap();
    assert!(
        kubeconfig.contains(key) && !kubeconfig.contains("\"lab\""),
        "the vCluster's own, and nothing of the host's"
    );

    desk.run(&DOWN).await.code(0).says("nothing left");
    assert_eq!(changes(&before, &snapshot(&desk)), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_helm_that_fails_or_lies_leaves_nothing_on_the_host() {
    let desk = desk().await;
    helm_mode(&desk, "fail");
    let before = snapshot(&desk);
    desk.run(&up(&[])).await.code(1).says("helm could not install vCluster").says("values do not fit");
    assert!(!host_has(&desk, "namespaces", "k8tre-alice"), "a namespace that was made before is gone");
    desk.run(&DOWN).await.code(0);
    assert_eq!(changes(&before, &snapshot(&desk)), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_does_not_answer_is_never_taken_for_an_empty_one() {
    let desk = desk().await;
    desk.run(&up(&[])).await.code(0);
    desk.clusters.silence(HOST, true);
    let status = desk.run(&["dev", "status", "alice", "-o", "json"]).await.code(3).json();
    assert!(status["cluster"]["state"].as_str().unwrap().contains("does not answer"), "{status}");
    let listed = desk.run(&["dev", "list", "-o", "json"]).await.code(0).json();
    assert!(listed["environments"][0]["state"].as_str().unwrap().contains("does not answer"), "{listed}");
    desk.run(&DOWN).await.code(1).says("lab does not answer").says("k8tre-alice");
    desk.clusters.silence(HOST, false);
    assert!(host_has(&desk, "namespaces", "k8tre-alice"), "nothing was deleted meanwhile");
    desk.run(&DOWN).await.code(0).says("nothing left");
    assert!(!host_has(&desk, "namespaces", "k8tre-alice"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_of_somebody_elses_is_refused_before_and_kept_after() {
    for owner in [None, Some("0123456789ab")] {
        let desk = desk().await;
        take_namespace(&desk, owner);
        let before = snapshot(&desk);
        desk.run(&up(&[])).await.code(5).says("k8tre-alice").says("hint: or another namespace: --host-namespace");
        assert_eq!(changes(&before, &snapshot(&desk)), NOTHING, "{owner:?}");
    }
    // It was ours, and somebody put another in its place.
    let desk = desk().await;
    desk.run(&up(&[])).await.code(0);
    desk.clusters.lose(HOST, "namespaces", "k8tre-alice");
    take_namespace(&desk, Some("0123456789ab"));
    desk.run(&DOWN).await.code(1).says("is not this environment's and stays");
    assert!(host_has(&desk, "namespaces", "k8tre-alice"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_host_lacks_is_said_before_anything_is_made() {
    let desk = desk().await;
    let before = snapshot(&desk);
    let storage: Vec<&str> =
        up(&[]).into_iter().filter(|arg| !["--vcluster-storage", "volume"].contains(arg)).collect();
    desk.run(&storage)
        .await
        .code(5)
        .says("has no default StorageClass")
        .says("hint: if that is fine: --vcluster-storage none");
    desk.clusters.deny(HOST, &["create namespaces", "create resourcequotas"]);
    desk.run(&up(&[])).await.code(5).says("create namespaces, create resourcequotas");
    desk.clusters.deny(HOST, &[]);
    desk.clusters.fill(HOST, "3900m");
    desk.run(&up(&[])).await.code(5).says("cannot carry another vCluster: 240m CPU more are needed");
    assert_eq!(changes(&before, &snapshot(&desk)).len(), 1, "the pod that fills it");
    desk.write("config/config.toml", "protected-contexts = [\"la*\"]\n");
    desk.run(&up(&[])).await.code(5).says("the context lab is protected");
    let unsure: Vec<&str> = up(&[]).into_iter().filter(|arg| *arg != "--yes").collect();
    desk.clusters.fill(HOST, "0");
    desk.write("config/config.toml", "");
    desk.run(&unsure).await.code(2).says("--yes").says("in the namespace k8tre-alice of the cluster of context lab");
    assert!(!host_has(&desk, "namespaces", "k8tre-alice"));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_volume_it_is_not_paused_and_it_moves_neither_place_nor_provider() {
    let desk = desk().await;
    let none: Vec<&str> = up(&[]).into_iter().map(|arg| if arg == "volume" { "none" } else { arg }).collect();
    desk.run(&none).await.code(0);
    desk.run(&["dev", "pause", "alice"]).await.code(2).says("cannot be paused: it has no volume");
    desk.run(&["dev", "up", "alice", "--vcluster-storage", "volume"]).await.code(2).says("cannot move");
    desk.run(&["dev", "up", "alice", "--host-namespace", "other"]).await.code(2).says("cannot move");
    desk.run(&["dev", "up", "alice", "--provider", "kind"]).await.code(2).says("cannot move");
    desk.run(&["dev", "up", "bob", "--sample", "--host-namespace", "x"])
        .await
        .code(2)
        .says("--host-namespace is for a vCluster");
    desk.run(&DOWN).await.code(0).says("nothing left");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_end_is_on_the_namespace_and_gc_removes_it_then() {
    let desk = desk().await;
    let before = snapshot(&desk);
    desk.run(&up(&["--ttl", "8h"])).await.code(0);
    let says = |desk: &Desk| {
        let namespace = desk.clusters.object(HOST, "namespaces", "k8tre-alice").unwrap();
        namespace["metadata"]["annotations"]["k8tre.dev/expires"].as_str().unwrap().to_owned()
    };
    let first = says(&desk);
    desk.run(&["dev", "extend", "alice", "4h"]).await.code(0);
    assert_ne!(says(&desk), first);
    desk.run(&["dev", "up", "alice"]).await.code(0).says("nothing was to be done");
    desk.run(&["dev", "gc", "--yes"]).await.code(0);
    assert!(host_has(&desk, "namespaces", "k8tre-alice"), "it has not ended yet");
    ended(&desk, "alice");
    desk.run(&["dev", "gc", "--yes"]).await.code(0);
    assert!(!host_has(&desk, "namespaces", "k8tre-alice"));
    assert_eq!(changes(&before, &snapshot(&desk)), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_machine_forgot_on_the_host_is_found_by_its_marks() {
    let desk = desk().await;
    let before = snapshot(&desk);
    desk.run(&up(&["--ttl", "8h"])).await.code(0);
    // As another machine's: nothing here knows of it.
    std::fs::remove_dir_all(desk.path("data/environments")).unwrap();
    let namespace = |name: &str, annotations: serde_json::Value| {
        let labels = json!({"app.kubernetes.io/managed-by": "k8tre", "developer": name});
        let created = "2020-01-01T00:00:00Z";
        let metadata = json!({"name": format!("k8tre-{name}"), "labels": labels, "annotations": annotations, "creationTimestamp": created});
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        desk.clusters.plant(HOST, "namespaces", &object);
    };
    let id = "k8tre.dev/environment-id";
    namespace("bob", json!({id: "b", "k8tre.dev/expires": "2999-01-01T00:00:00Z"}));
    namespace("carol", json!({id: "c"}));
    namespace("dave", json!({"k8tre.dev/expires": "2020-01-02T00:00:00Z"}));
    let gc = ["dev", "gc", "--host", HOST];
    let listed = desk.run(&[&gc[..], &["--dry-run", "-o", "json"]].concat()).await.code(0).json();
    assert_eq!(listed["found"], json!([]), "nothing has expired, and the branch's environment lives");
    assert_eq!(listed["leftAlone"][0]["name"], "carol");

    let past = json!({"metadata": {"annotations": {"k8tre.dev/expires": "2020-01-02T00:00:00Z"}}});
    desk.clusters.change(HOST, "namespaces", "k8tre-alice", &past);
    let ended = desk.run(&[&gc[..], &["--yes", "-o", "json"]].concat()).await.code(0).json();
    let found = &ended["found"][0];
    assert_eq!(
        (&found["kind"], &found["name"], &found["outcome"]),
        (&"vcluster".into(), &"alice".into(), &"removed".into())
    );
    assert_eq!(found["place"], "lab, namespace k8tre-alice");
    assert!(desk.clusters.object(HOST, "namespaces", "k8tre-alice").is_none());
    for stays in ["k8tre-bob", "k8tre-carol", "k8tre-dave"] {
        assert!(desk.clusters.object(HOST, "namespaces", stays).is_some(), "{stays}");
    }
    desk.run(&[&gc[..], &["--yes", "--without-end"]].concat()).await.code(0).says("vcluster carol is gone");
    for theirs in ["k8tre-bob", "k8tre-dave"] {
        desk.clusters.lose(HOST, "namespaces", theirs);
    }
    std::fs::remove_dir_all(desk.path("data/sample")).ok();
    let left = changes(&before, &snapshot(&desk));
    assert!(left.iter().all(|path| !path.contains(HOST)), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn gc_in_a_cluster_is_for_a_pod_alone_and_its_manifest_can_be_applied() {
    let desk = Desk::new().await;
    desk.run(&["dev", "gc", "--in-cluster", "--yes"])
        .await
        .code(2)
        .says("for a pod of the cluster")
        .says("gc-manifest");
    desk.run(&["shared", "gc-manifest"]).await.code(2).says("--image");
    let printed = desk.run(&["shared", "gc-manifest", "--image", "r.example/k8tre:1", "--argocd", "argocd"]).await;
    printed.code(0).shows("kind: CronJob").shows("image: r.example/k8tre:1");
    let objects = desk.run(&["shared", "gc-manifest", "--image", "i", "-o", "json"]).await.code(0).json();
    let kinds: Vec<&str> =
        objects["objects"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "CronJob"]);
}
