//! An environment in a cluster that is there already, and stays as it was.

use serde_json::json;

use super::cli_whole::sample_in;
use super::support::desk::{Desk, changes};
use super::support::existing::{self, LAB, UP, settings, snapshot};

const NOTHING: [&str; 0] = [];
const DOWN: [&str; 3] = ["dev", "down", "alice"];

async fn desk() -> Desk {
    let desk = existing::desk().await;
    sample_in(&desk, "tre").await;
    desk
}

fn up() -> Vec<&'static str> {
    UP.into_iter().chain(["--yes"]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_argo_cd_that_is_there_is_used_and_left_as_it_was() {
    let desk = desk().await;
    existing::give_argocd(&desk);
    let before = snapshot(&desk);
    desk.run(&up()).await.code(0).says("deployed by the Argo CD that is there").says("alice is healthy");
    assert_eq!(desk.clusters.object(LAB, "namespaces", "argocd").unwrap()["metadata"]["annotations"], json!(null));
    let status = desk.run(&["dev", "status", "alice", "-o", "json"]).await.code(0).json();
    assert_eq!(status["argocd"]["version"], "v3.6.1");
    let project = desk.clusters.object(LAB, "appprojects", "dev-alice").unwrap();
    assert_eq!(project["spec"]["destinations"][0]["server"], "https://kubernetes.default.svc");
    desk.run(&DOWN).await.code(0).says("nothing left");
    assert_eq!(changes(&before, &snapshot(&desk)), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_before_somebody_said_so() {
    let desk = desk().await;
    let before = snapshot(&desk);
    desk.run(&UP).await.code(2).says("--yes").says("cluster of context lab");
    assert_eq!(changes(&before, &snapshot(&desk)), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_not_go_well_is_refused_with_the_reason() {
    let refused = async |prepare: &dyn Fn(&Desk), code: i32, why: &str| {
        let desk = desk().await;
        existing::give_argocd(&desk);
        prepare(&desk);
        let before = snapshot(&desk);
        desk.run(&up()).await.code(code).says(why).says("hint: ");
        assert_eq!(changes(&before, &snapshot(&desk)), NOTHING, "{why}");
    };
    let plant = |desk: &Desk, plural: &str, object: serde_json::Value| desk.clusters.plant(LAB, plural, &object);
    refused(&|desk| desk.write("config/config.toml", "protected-contexts = [\"la*\"]\n"), 5, "is protected").await;
    refused(&|desk| desk.clusters.deny(LAB, &["* *"]), 5, "you may not do everything").await;
    refused(
        &|desk| {
            let labels = json!({"argocd.argoproj.io/secret-type": "cluster"});
            let metadata = json!({"name": "own", "namespace": "argocd", "labels": labels});
            let data = json!({"server": "aHR0cHM6Ly9rdWJlcm5ldGVzLmRlZmF1bHQuc3Zj"});
            plant(desk, "secrets", json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}));
        },
        5,
        "is registered in lab/argocd already, by the Secret own",
    )
    .await;
    refused(
        &|desk| {
            desk.clusters.change(
                LAB,
                "applications",
                "theirs",
                &json!({"spec": {"destination": {"name": "in-cluster"}}}),
            )
        },
        5,
        "is deployed to \"in-cluster\" by name",
    )
    .await;
    refused(
        &|desk| {
            let metadata = json!({"name": "k8tre-git", "namespace": "argocd"});
            plant(desk, "services", json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata}));
        },
        5,
        "one cluster takes one",
    )
    .await;
    refused(
        &|desk| {
            let metadata = json!({"name": "portal", "namespace": "portal"});
            plant(desk, "deployments", json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}));
        },
        5,
        "would take over what is there already",
    )
    .await;
    refused(&|desk| desk.write("home/.kube/config", "{}"), 2, "no context lab").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn its_own_argo_cd_stays_while_others_use_it() {
    let desk = desk().await;
    let before = snapshot(&desk);
    desk.run(&up()).await.code(0).says("with an Argo CD of its own");
    let spec = json!({"project": "default", "destination": {"server": "https://kubernetes.default.svc"}});
    let metadata = json!({"name": "theirs", "namespace": "argocd"});
    let app = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec});
    desk.clusters.plant(LAB, "applications", &app);
    desk.run(&DOWN).await.code(1).says("Application theirs").says("try again: k8tre dev down alice");
    assert!(desk.clusters.object(LAB, "statefulsets", "argocd-application-controller").is_some());
    desk.clusters.lose(LAB, "applications", "theirs");
    desk.run(&DOWN).await.code(0);
    assert_eq!(changes(&before, &snapshot(&desk)), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_argo_cd_leaves_is_found_and_removed() {
    let desk = desk().await;
    let kept = |namespace: &str| {
        let annotations = json!({"argocd.argoproj.io/tracking-id": "portal-alice:/ConfigMap:x/kept"});
        let metadata = json!({"name": "kept", "namespace": namespace, "annotations": annotations});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    };
    let named = json!({"version": "v1", "kind": "ConfigMap", "namespace": "portal", "name": "kept"});
    let other = json!({"version": "v1", "kind": "ConfigMap", "namespace": "default", "name": "theirs"});
    desk.clusters.deployed("portal-alice", json!([named, other]));
    let before = snapshot(&desk);
    desk.run(&up()).await.code(0);
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    desk.clusters.plant(LAB, "namespaces", &namespace("portal"));
    desk.clusters.plant(LAB, "configmaps", &kept("portal"));
    desk.run(&DOWN).await.code(0).says("nothing left");
    assert_eq!(changes(&before, &snapshot(&desk)), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_differ_are_shown_and_not_changed() {
    let desk = existing::desk().await;
    sample_in(&desk, "tre").await;
    existing::give_argocd(&desk);
    for (plural, name) in [("deployments", "argocd-repo-server"), ("statefulsets", "argocd-application-controller")] {
        let containers = json!([{"name": name, "image": "example.org/argocd:v2.9.0"}]);
        let spec = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        desk.clusters.change(LAB, plural, name, &spec);
    }
    desk.run(&up()).await.code(0).says("is v2.9.0").says("update it to").says("--adjust-argocd");
    assert_eq!(settings(&desk), json!(null));
}

/// A repository that k8tre recognises as K8TRE's: one ApplicationSet names its plugin. The others are built by Argo CD.
async fn with_plugin(desk: &Desk) {
    sample_in(desk, "tre").await;
    let path = "tre/appsets/identity/identity.yaml";
    let text = std::fs::read_to_string(desk.path(path)).unwrap();
    let source = "        path: \"{{.path.path}}\"\n";
    assert!(text.contains(source));
    desk.write(
        path,
        &text.replace(source, &format!("{source}        plugin: {{name: kustomize-with-envsubst-v1.0}}\n")),
    );
    desk.git("tre", &["commit", "--quiet", "-am", "A plugin"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_argo_cd_lacks_is_set_on_demand_and_put_back() {
    let desk = existing::desk().await;
    with_plugin(&desk).await;
    existing::give_argocd(&desk);
    desk.clusters.change(
        LAB,
        "configmaps",
        "argocd-cm",
        &json!({"data": {"kustomize.buildOptions": "--x", "url": "u"}}),
    );
    let before = snapshot(&desk);
    let adjusting: Vec<&str> = UP.into_iter().chain(["--adjust-argocd"]).collect();
    let change = "kustomize.buildOptions: \"--x\" -> \"--x --enable-helm --load-restrictor LoadRestrictionsNone\"";
    let asked = desk.run(&adjusting).await;
    asked.code(2).says("--yes").says(change).says("unset -> \"return {status").says("for all whom it serves");
    asked.says("has no plugin kustomize-with-envsubst-v1.0, which this repository needs");
    assert_eq!(changes(&before, &snapshot(&desk)), NOTHING);

    let yes: Vec<&str> = adjusting.iter().copied().chain(["--yes"]).collect();
    desk.run(&yes).await.code(0).says(change);
    let now = settings(&desk);
    assert_eq!(now["kustomize.buildOptions"], "--x --enable-helm --load-restrictor LoadRestrictionsNone");
    assert_eq!(now["resource.customizations.health.Service"], "return {status = \"Healthy\"}");
    assert_eq!(now["url"], "u");
    desk.run(&["dev", "up", "alice"]).await.code(0).says("nothing was to be done");
    desk.run(&DOWN).await.code(0).says("settings of Argo CD");
    assert_eq!(changes(&before, &snapshot(&desk)), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_that_somebody_changed_meanwhile_stays() {
    let desk = desk().await;
    existing::give_argocd(&desk);
    let adjusting: Vec<&str> = up().into_iter().chain(["--adjust-argocd"]).collect();
    desk.run(&adjusting).await.code(0);
    let key = "resource.customizations.health.Service";
    desk.clusters.change(LAB, "configmaps", "argocd-cm", &json!({"data": {key: "return nil"}}));
    let down = desk.run(&DOWN).await;
    down.code(0).says("kept: resource.customizations.health.Service in the ConfigMap argocd-cm");
    down.says("somebody changed it meanwhile, to \"return nil\"")
        .says(r#"{"data":{"resource.customizations.health.Service":null}}"#);
    assert_eq!(settings(&desk), json!({key: "return nil"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_that_came_into_a_namespace_from_before_are_named_at_the_end() {
    let desk = desk().await;
    existing::give_argocd(&desk);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "portal"}});
    desk.clusters.plant(LAB, "namespaces", &namespace);
    let claim = |name: &str, created: Option<&str>| {
        let metadata = json!({"name": name, "namespace": "portal", "creationTimestamp": created});
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata});
        desk.clusters.plant(LAB, "persistentvolumeclaims", &claim);
    };
    claim("theirs", Some("2020-01-01T00:00:00Z"));
    desk.clusters
        .deployed("portal-alice", json!([{"version": "v1", "kind": "ConfigMap", "namespace": "portal", "name": "x"}]));
    desk.run(&up()).await.code(0);
    claim("data-db-0", None);
    let down = desk.run(&DOWN).await;
    down.code(0).says("kept: claim data-db-0 in namespace portal").hides("claim theirs");
    down.says("kubectl --context lab -n portal delete persistentvolumeclaim data-db-0");
    assert!(desk.clusters.object(LAB, "persistentvolumeclaims", "data-db-0").is_some());
}
