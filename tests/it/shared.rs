//! An environment whose Argo CD is one that others use too.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::support::desk::{Desk, Ended, SAMPLE, changes};
use super::support::shared::{HUB, UP, desk, remains};

const ALICE: &str = "k8tre-alice";
const NOTHING: [&str; 0] = [];
const DOWN: [&str; 3] = ["dev", "down", "alice"];

async fn up(desk: &Desk, more: &[&str]) -> Ended {
    desk.run(&[&UP[..], more].concat()).await
}

fn argocd(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": "argocd"}, "spec": spec})
}

/// Stops a node's container behind everybody's back, or starts it again.
fn node(desk: &Desk, cluster: &str, state: &str) {
    let path = desk.docker.containers().join(format!("{cluster}-control-plane.json"));
    let mut node: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    node["state"] = json!(state);
    std::fs::write(path, node.to_string()).unwrap();
}

fn uids(desk: &Desk) -> BTreeMap<String, String> {
    let uid =
        |plural: &str, name: &str| desk.clusters.object(HUB, plural, name).unwrap()["metadata"]["uid"].to_string();
    let apps = SAMPLE.iter().map(|app| format!("{app}-alice"));
    let mut uids: BTreeMap<String, String> = apps.map(|app| (app.clone(), uid("applications", &app))).collect();
    uids.insert("secret".into(), uid("secrets", "k8tre-cluster-alice"));
    uids
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_deployed_from_there_and_leaves_nothing_there() {
    let desk = desk().await;
    let (before, hub) = (desk.snapshot(), desk.clusters.versions(HUB));
    let first = up(&desk, &[]).await;
    first.code(0).says("alice is healthy: 6 Applications");
    assert!(desk.clusters.object(ALICE, "deployments", "argocd-repo-server").is_none(), "no second Argo CD");
    let project = desk.clusters.object(HUB, "appprojects", "dev-alice").unwrap();
    assert_eq!(
        project["spec"]["destinations"],
        json!([{"server": "https://k8tre-alice-control-plane:6443", "namespace": "*"}])
    );
    assert_eq!(project["spec"]["sourceRepos"][0], "https://git.invalid/tre.git");
    let root = desk.clusters.object(HUB, "applications", "root-app-of-apps-alice").unwrap();
    assert_eq!(root["spec"]["project"], "root-dev-alice");
    let secret = desk.clusters.object(HUB, "secrets", "k8tre-cluster-alice").unwrap();
    assert_eq!(secret["metadata"]["labels"]["developer"], "alice");
    assert!(secret["metadata"]["annotations"]["k8tre.dev/token-expires"].is_string());

    let (hub_now, own) = (desk.clusters.versions(HUB), desk.clusters.versions(ALICE));
    desk.run(&["dev", "up", "alice"]).await.code(0).says("nothing was to be done");
    assert_eq!((desk.clusters.versions(HUB), desk.clusters.versions(ALICE)), (hub_now, own));
    let status = desk.run(&["dev", "status", "alice", "-o", "json"]).await.code(0).json();
    assert_eq!((&status["argocd"]["placement"], &status["argocd"]["context"]), (&"shared".into(), &"team".into()));
    desk.run(&["dev", "status", "alice"]).await.code(0).shows("shared, in team/argocd");
    desk.run(&["dev", "status", "hub"]).await.code(0);
    desk.run(&["dev", "password", "alice"]).await.code(2).says("its administrators know");

    desk.run(&DOWN).await.code(0).says("shared Argo CD");
    assert_eq!(remains(&desk, "alice"), NOTHING);
    assert_eq!(desk.clusters.versions(HUB), hub, "what others have there is as it was");
    assert_eq!(changes(&before, &desk.snapshot()), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_or_must_not_be_stops_before_anything_is_made() {
    let desk = desk().await;
    let plain = &UP[..7];
    let refused = async |args: &[&str], code: i32, words: &str| {
        let (before, hub) = (desk.snapshot(), desk.clusters.versions(HUB));
        desk.run(args).await.code(code).says(words);
        assert_eq!(changes(&before, &desk.snapshot()), NOTHING, "{args:?}");
        assert_eq!(desk.clusters.versions(HUB), hub, "{args:?}");
    };
    refused(&UP[..9], 2, "--yes").await;
    refused(&UP[..9], 2, "context team, namespace argocd").await;
    refused(&[plain, &["--argocd", "elsewhere", "--yes"]].concat(), 2, "there are: team, work").await;
    refused(&[plain, &["--argocd", "team/Name Space", "--yes"]].concat(), 2, "cannot be a namespace").await;
    refused(&[plain, &["--argocd", "work", "--yes"]].concat(), 5, "--server https://").await;
    refused(&[&UP[..], &["--server", "https://localhost:6443"]].concat(), 2, "the machine that Argo CD itself runs on")
        .await;
    refused(&[&UP[..], &["--server", "https://kubernetes.default.svc"]].concat(), 2, "runs in itself").await;
    refused(&[&UP[..], &["--source", "cluster"]].concat(), 2, "nothing leads into it from there").await;
    refused(&[&UP[..], &["--token-ttl", "5m"]].concat(), 2, "at least 10m").await;
    refused(&[plain, &["--token-ttl", "1h"]].concat(), 2, "--argocd CONTEXT").await;
    refused(&["dev", "up", "alice", "--sample", "--argocd", "team", "--yes"], 2, "the sample has no remote").await;
    refused(&["dev", "up", "hub", "--argocd", "team", "--yes"], 2, "cannot move to another one").await;

    desk.clusters.deny(HUB, &["create applications", "patch secrets"]);
    refused(&UP, 5, "create applications.argoproj.io").await;
    refused(&UP, 5, "patch secrets k8tre-cluster-alice").await;
    refused(&UP, 5, "k8tre shared rbac --name alice").await;
    desk.clusters.deny(HUB, &[]);
    desk.write("config/config.toml", "protected-contexts = [\"te*\"]\n");
    refused(&UP, 5, "the context team is protected").await;
    std::fs::remove_file(desk.path("config/config.toml")).unwrap();

    let secret = |name: &str, server: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "data": {"server": server},
               "metadata": {"name": name, "namespace": "argocd", "labels": {"argocd.argoproj.io/secret-type": "cluster"}}})
    };
    let to = |spec: Value| spec;
    let all_clusters = json!({"generators": [{"clusters": {}}], "template": {"spec": {"project": "default"}}});
    // base64 of https://k8tre-alice-control-plane:6443
    let same = "aHR0cHM6Ly9rOHRyZS1hbGljZS1jb250cm9sLXBsYW5lOjY0NDM=";
    let others = [
        (
            "applications",
            argocd("Application", "x", to(json!({"source": {"path": "apps/x/envs/prd"}}))),
            "serves production",
        ),
        (
            "applications",
            argocd("Application", "portal-alice", to(json!({"project": "default"}))),
            "in the project default",
        ),
        ("applications", argocd("Application", "root-app-of-apps-alice", to(json!({}))), "is not this environment's"),
        ("appprojects", argocd("AppProject", "dev-alice", to(json!({}))), "is not this environment's"),
        ("appprojects", argocd("AppProject", "root-dev-alice", to(json!({}))), "is not this environment's"),
        (
            "applicationsets",
            argocd("ApplicationSet", "addons", all_clusters),
            "would deploy to this environment's cluster: addons",
        ),
        ("secrets", secret("k8tre-cluster-alice", ""), "is not this environment's"),
        ("secrets", secret("by-hand", same), "is registered in team/argocd already, by the Secret by-hand"),
    ];
    for (plural, object, words) in others {
        desk.clusters.plant(HUB, plural, &object);
        refused(&UP, 5, words).await;
        desk.clusters.lose(HUB, plural, object["metadata"]["name"].as_str().unwrap());
    }
    desk.clusters.lose(HUB, "deployments", "argocd-applicationset-controller");
    refused(&UP, 5, "the ApplicationSet controller of team/argocd does not run").await;
    node(&desk, HUB, "exited");
    refused(&UP, 5, "does not answer").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_token_is_anywhere_but_in_the_secret() {
    let desk = desk().await;
    let mut texts = Vec::new();
    let loudest = up(&desk, &["-vvv"]).await;
    loudest.code(0);
    texts.push(loudest.stderr + &loudest.stdout);
    desk.clusters.lose(ALICE, "serviceaccounts", "k8tre-argocd");
    for args in [
        &["dev", "status", "alice", "-vvv"][..],
        &["dev", "up", "alice", "-vvv", "-o", "json"],
        &["dev", "status", "alice", "-o", "json"],
    ] {
        let ended = desk.run(args).await;
        texts.push(ended.stderr + &ended.stdout);
    }
    let tokens = desk.clusters.tokens(ALICE);
    assert_eq!(tokens.len(), 2, "one at first, and one for the account that was made again");
    texts.extend(desk.snapshot().into_iter().map(|(path, content)| path + &content));
    for file in ["argv", "env"] {
        texts.push(std::fs::read_to_string(desk.kind.folder().join(file)).unwrap_or_default());
    }
    for token in &tokens {
        assert!(texts.iter().all(|text| !text.contains(token.as_str())), "a token is told");
    }
    let secret = desk.clusters.object(HUB, "secrets", "k8tre-cluster-alice").unwrap();
    assert!(secret["data"]["config"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_warned_of_and_replaced_in_time() {
    let desk = desk().await;
    up(&desk, &["--token-ttl", "30m"]).await.code(0);
    desk.run(&["dev", "status", "alice"]).await.code(0).shows("the token ends at").shows("k8tre dev up alice");
    desk.run(&["dev", "up", "alice"]).await.code(0).says("nothing was to be done");
    let valid = |from: &str, to: &str| json!({"metadata": {"annotations": {"k8tre.dev/token-issued": from, "k8tre.dev/token-expires": to}}});
    let at =
        |seconds: i64| jiff::Timestamp::from_second(jiff::Timestamp::now().as_second() + seconds).unwrap().to_string();
    desk.clusters.change(HUB, "secrets", "k8tre-cluster-alice", &valid(&at(-1000), &at(800)));
    desk.run(&["dev", "status", "alice"]).await.code(0);
    desk.run(&["dev", "up", "alice", "-v"]).await.code(0).says("getting a token");
    assert_eq!(desk.clusters.tokens(ALICE).len(), 2);
    desk.clusters.change(HUB, "secrets", "k8tre-cluster-alice", &valid(&at(-1000), &at(800)));
    desk.run(&["dev", "resume", "alice"]).await.code(0);
    assert_eq!(desk.clusters.tokens(ALICE).len(), 3, "before it ends");
    desk.clusters.change(HUB, "secrets", "k8tre-cluster-alice", &valid("2019-12-31T00:00:00Z", "2020-01-01T00:00:00Z"));
    desk.run(&["dev", "status", "alice"]).await.code(3).shows("its token ended at 2020-01-01");
    desk.run(&["dev", "resume", "alice"]).await.code(0);
    assert_eq!(desk.clusters.tokens(ALICE).len(), 4);
    desk.run(&["dev", "status", "alice"]).await.code(0);
    desk.clusters.lose(ALICE, "serviceaccounts", "k8tre-argocd");
    desk.run(&["dev", "status", "alice"]).await.code(3).shows("the cluster does not take its token");
    desk.run(&["dev", "up", "alice"]).await.code(0);
    desk.run(&["dev", "status", "alice"]).await.code(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_change_is_named_and_mended_and_what_is_theirs_stays() {
    let desk = desk().await;
    up(&desk, &[]).await.code(0);
    let before = uids(&desk);
    let edit = json!({"metadata": {"labels": {"team": "blue", "vendor": "other"}, "annotations": {"note": "ours"}}, "data": {"server": "aHR0cHM6Ly9h"}});
    desk.clusters.change(HUB, "secrets", "k8tre-cluster-alice", &edit);
    desk.run(&["dev", "status", "alice"]).await.code(3).shows("Secret k8tre-cluster-alice differs at data.server");
    desk.run(&["dev", "up", "alice"]).await.code(0);
    let metadata = desk.clusters.object(HUB, "secrets", "k8tre-cluster-alice").unwrap()["metadata"].clone();
    assert_eq!((&metadata["labels"]["team"], &metadata["annotations"]["note"]), (&"blue".into(), &"ours".into()));
    assert_ne!(metadata["labels"]["vendor"], "other");

    desk.clusters.change(
        HUB,
        "appprojects",
        "dev-alice",
        &json!({"spec": {"destinations": [{"server": "*", "namespace": "*"}]}}),
    );
    desk.run(&["dev", "status", "alice"]).await.code(3).shows("AppProject dev-alice differs at spec.destinations");
    desk.clusters.lose(HUB, "appprojects", "dev-alice");
    desk.run(&["dev", "status", "alice"]).await.code(3).shows("project");
    desk.run(&["dev", "up", "alice"]).await.code(0);

    // The cluster is deleted by hand and made again: Argo CD keeps what it knows, and gets another token.
    std::fs::remove_file(desk.docker.containers().join(format!("{ALICE}-control-plane.json"))).unwrap();
    desk.run(&["dev", "up", "alice"]).await.code(0);
    assert_eq!(uids(&desk), before);
    assert_eq!(desk.clusters.tokens(ALICE).len(), 1);
    desk.run(&["dev", "up", "alice", "--argocd", "team/other"]).await.code(2).says("cannot move to another one");
    desk.run(&["dev", "hold", "portal", "--name", "alice"]).await.code(0);
    let windows = || desk.clusters.object(HUB, "appprojects", "dev-alice").unwrap()["spec"]["syncWindows"].clone();
    assert_eq!(windows().as_array().unwrap().len(), 1);
    desk.run(&["dev", "release", "portal", "--name", "alice"]).await.code(0);
    assert_eq!(windows(), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_argo_cd_cannot_reach_is_not_registered() {
    let desk = desk().await;
    let ended = up(&desk, &["--server", "https://elsewhere:6443"]).await;
    ended.code(1).says("cannot reach the cluster of alice at https://elsewhere:6443").says("Could not resolve host");
    ended.says("tried from the pod argocd-application-controller-0").says("--server URL");
    assert!(desk.clusters.object(HUB, "secrets", "k8tre-cluster-alice").is_none());
    desk.run(&DOWN).await.code(0);
    assert_eq!(remains(&desk, "alice"), NOTHING);

    // Who may not ask from there goes on, and is told.
    desk.clusters.deny(HUB, &["create pods/exec", "create pods"]);
    up(&desk, &[]).await.code(0).says("cannot be asked beforehand");
    desk.run(&DOWN).await.code(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_taken_back_when_its_cluster_or_the_shared_argo_cd_is_gone() {
    let desk = desk().await;
    let (before, hub) = (desk.snapshot(), desk.clusters.versions(HUB));
    // Another's Application that waits for its own cluster is none of ours.
    let theirs = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "spec": {"project": "dev-bob", "destination": {"server": "https://k8tre-bob-control-plane:6443"}},
        "metadata": {"name": "bobs", "namespace": "argocd", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
    });
    for broken in ["deleted", "stopped"] {
        up(&desk, &[]).await.code(0);
        desk.clusters.plant(HUB, "applications", &theirs);
        match broken {
            "deleted" => {
                std::fs::remove_file(desk.docker.containers().join(format!("{ALICE}-control-plane.json"))).unwrap()
            }
            _ => node(&desk, ALICE, "exited"),
        }
        desk.run(&DOWN).await.code(0);
        assert_eq!(remains(&desk, "alice"), NOTHING, "{broken}");
        assert!(desk.clusters.object(HUB, "applications", "bobs").is_some(), "{broken}");
        desk.clusters.lose(HUB, "applications", "bobs");
    }
    up(&desk, &[]).await.code(0);
    node(&desk, HUB, "exited");
    let ended = desk.run(&DOWN).await;
    ended
        .code(1)
        .says("cluster Secret of alice in team/argocd, perhaps")
        .says("-l developer=alice")
        .says("try again: k8tre dev down alice");
    node(&desk, HUB, "running");
    assert!(!remains(&desk, "alice").is_empty());
    desk.run(&DOWN).await.code(0);
    assert_eq!(remains(&desk, "alice"), NOTHING);
    assert_eq!(desk.clusters.versions(HUB), hub);
    assert_eq!(changes(&before, &desk.snapshot()), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_gets_the_objects_to_apply() {
    let desk = Desk::new().await;
    let printed = desk.run(&["shared", "rbac", "--name", "alice", "--for", "alice@example.org", "--policy"]).await;
    printed.code(0).shows("kind: RoleBinding").shows("k8tre-cluster-alice").shows("kind: ValidatingAdmissionPolicy");
    printed.hides("pods/exec");
    let json = desk
        .run(&["shared", "rbac", "--name", "alice", "--group", "devs", "--probe", "-o", "json"])
        .await
        .code(0)
        .json();
    assert_eq!(json["objects"].as_array().unwrap().len(), 2);
    assert_eq!(json["objects"][1]["subjects"][0]["kind"], "Group");
    desk.run(&["shared", "rbac", "--name", "alice"]).await.code(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn held_to_namespaces_it_has_rights_in_them_alone_and_what_does_not_fit_is_named_first() {
    let desk = desk().await;
    let (before, hub) = (desk.snapshot(), desk.clusters.versions(HUB));
    let held = "identity,metrics,portal,workspaces";
    let namespaced = [&UP[..], &["--namespaced", held]].concat();
    let ended = desk.run(&namespaced).await;
    ended.code(5).says("guardrails-alice: ValidatingAdmissionPolicy workspace-guardrails is in no namespace");
    ended.says("storage-class-alice: StorageClass").says("--skip");
    let preview = ["dev", "preview", "alice", "--repo", "../tre", "--argocd", "team", "--namespaced", held];
    let preview = [&preview[..], &["--repo-url", "https://git.invalid/tre.git"]].concat();
    desk.run(&preview).await.code(1).says("storage-class-alice: StorageClass");
    let told = desk.run(&[&preview[..], &["-o", "json"]].concat()).await.code(1).json();
    assert_eq!(told["misfits"][0]["application"], "guardrails-alice");
    desk.run(&[&UP[..], &["--namespaced", "Portal"]].concat()).await.code(2).says("cannot be a namespace");
    desk.run(&["dev", "up", "alice", "--sample", "--namespaced", "a"]).await.code(2).says("--argocd CONTEXT");
    assert_eq!(changes(&before, &desk.snapshot()), NOTHING);
    assert_eq!(desk.clusters.versions(HUB), hub);

    let up = [&namespaced[..], &["--skip", "guardrails,storage-class"]].concat();
    desk.run(&up).await.code(0).says("4 Applications");
    let secret = desk.clusters.object(HUB, "secrets", "k8tre-cluster-alice").unwrap();
    // base64 of the four names, and of false
    assert_eq!(secret["data"]["namespaces"], "aWRlbnRpdHksbWV0cmljcyxwb3J0YWwsd29ya3NwYWNlcw==");
    assert_eq!(secret["data"]["clusterResources"], "ZmFsc2U=");
    let project = desk.clusters.object(HUB, "appprojects", "dev-alice").unwrap();
    assert_eq!(project["spec"]["destinations"].as_array().unwrap().len(), 4);
    assert!(project["spec"]["clusterResourceWhitelist"].as_array().is_none_or(Vec::is_empty));
    // Argo CD may not write namespaces, so what it would give them is given them here.
    let level = || {
        let portal = desk.clusters.object(ALICE, "namespaces", "portal").unwrap();
        portal["metadata"]["labels"]["pod-security.kubernetes.io/enforce"].clone()
    };
    assert_eq!(level(), "restricted");
    let app = desk.clusters.object(HUB, "applications", "portal-alice").unwrap();
    assert!(app["spec"]["syncPolicy"]["managedNamespaceMetadata"].is_null(), "{app:#}");
    let weaker = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}});
    desk.clusters.change(ALICE, "namespaces", "portal", &weaker);
    desk.run(&["dev", "status", "alice"]).await.code(3).shows("the namespace portal differs at metadata.labels");
    desk.run(&["dev", "up", "alice"]).await.code(0);
    assert_eq!(level(), "restricted");
    desk.run(&["dev", "up", "alice"]).await.code(0).says("nothing was to be done");
    desk.run(&["dev", "status", "alice"]).await.code(0).shows("held to identity, metrics, portal, workspaces");

    // Somebody gives the account more than the Secret says.
    let all = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    desk.clusters.change(ALICE, "clusterroles", "k8tre-argocd", &all);
    desk.run(&["dev", "status", "alice"]).await.code(3).shows("may do more than in its namespaces");
    desk.run(&["dev", "up", "alice"]).await.code(0);
    desk.run(&["dev", "status", "alice"]).await.code(0);

    // One namespace less: its rights there go.
    let roles = || desk.clusters.versions(ALICE).into_keys().filter(|key| key.contains("roles/")).count();
    let four = roles();
    let fewer = ["dev", "up", "alice", "--namespaced", "identity,portal,workspaces"];
    desk.run(&fewer).await.code(5).says("metrics-alice: it is deployed to the namespace metrics");
    // The fake Argo CD takes no Application away by itself.
    let skip = ["--skip", "guardrails,storage-class,metrics", "--no-wait"];
    desk.run(&[&fewer[..], &skip].concat()).await.code(0);
    assert_eq!(roles(), four - 1);
    // All of it again, and then rights for others, too.
    desk.run(&["dev", "up", "alice", "--namespaced", "*", "--no-wait"]).await.code(0);
    assert_eq!(roles(), four - 4, "none in a namespace, the one for the cluster");
    let secret = desk.clusters.object(HUB, "secrets", "k8tre-cluster-alice").unwrap();
    assert!(secret["data"]["namespaces"].as_str().is_none_or(str::is_empty), "{secret:#}");
    let may_escalate = || {
        let role = desk.clusters.object(ALICE, "clusterroles", "k8tre-argocd").unwrap();
        role["rules"].to_string().contains(r#"["escalate","bind"]"#)
    };
    assert!(!may_escalate());
    desk.run(&["dev", "up", "alice", "--argocd-may-escalate", "--no-wait"]).await.code(0);
    assert!(may_escalate());
    desk.run(&["dev", "up", "alice", "--no-wait"]).await.code(0);
    assert!(may_escalate(), "it is remembered");
    desk.run(&["dev", "up", "alice", "--argocd-may-escalate=false", "--no-wait"]).await.code(0);
    assert!(!may_escalate());
    desk.run(&DOWN).await.code(0);
    assert_eq!(remains(&desk, "alice"), NOTHING);
    assert_eq!(desk.clusters.versions(HUB), hub);
    assert_eq!(changes(&before, &desk.snapshot()), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_takes_a_commit_there() {
    let desk = desk().await;
    up(&desk, &[]).await.code(0);
    let refused = desk.run(&["dev", "sync", "alice"]).await;
    refused.code(2).says("needs a commit and a push").says("k8tre dev up alice").says("with an Argo CD of its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_stand_on_goes_last_and_what_went_with_it_is_not_looked_for() {
    let desk = desk().await;
    let zoe = UP.map(|word| if word == "alice" { "zoe" } else { word });
    desk.run(&zoe).await.code(0);
    let refused = desk.run(&["dev", "down", "hub"]).await;
    refused.code(2).says("zoe would lose Argo CD or the cluster, which hub carries").says("k8tre dev down zoe");
    desk.run(&["dev", "down", "--all", "--yes"]).await.code(0).says("zoe is gone").says("hub is gone");
    assert_eq!(desk.run(&["dev", "list", "-o", "json"]).await.code(0).json()["environments"], json!([]));

    // Only somebody can say that a cluster of others is gone for good.
    let desk = self::desk().await;
    up(&desk, &[]).await.code(0);
    desk.run(&["dev", "down", "hub", "--yes"]).await.code(0);
    desk.run(&DOWN).await.code(1).says("in team/argocd, perhaps").says("--unreachable-is-gone");
    desk.run(&[&DOWN[..], &["--unreachable-is-gone"]].concat()).await.code(0).says("alice is gone");

    // That one of k8tre's is gone is known.
    let desk = self::desk().await;
    let kubeconfig = desk.path("data/environments/hub/kubeconfig").display().to_string();
    let desk = desk.with("KUBECONFIG", Some(&kubeconfig));
    desk.run(&[&UP[..7], &["--argocd", "kind-k8tre-hub", "--yes"]].concat()).await.code(0);
    desk.run(&["dev", "down", "hub", "--yes"]).await.code(0);
    desk.run(&DOWN).await.code(0).says("alice is gone");
    // One that answers is not gone, whatever is said.
    let desk = self::desk().await;
    up(&desk, &[]).await.code(0);
    desk.run(&[&DOWN[..], &["--unreachable-is-gone"]].concat()).await.code(0).says("shared Argo CD");
    assert_eq!(remains(&desk, "alice"), NOTHING);
}
