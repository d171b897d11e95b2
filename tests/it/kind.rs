//! The kind provider against a fake kind and a fake Docker.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use k8tre::providers::ClusterState;
use k8tre::providers::kind::{Kind, KindSpec, NetworkOwnership, Owner, find_all_owned};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::support::fake_docker::FakeDocker;
use crate::support::fake_kind::FakeKind;

const CLUSTER: &str = "k8tre-alice";

struct Setup {
    docker: FakeDocker,
    fake: FakeKind,
    kind: Kind,
}

async fn setup() -> Setup {
    let docker = FakeDocker::start().await;
    let fake = FakeKind::new(&docker);
    let kind = Kind::new(docker.connect().await, Some(fake.program()));
    Setup { docker, fake, kind }
}

/// The creation that these tests are about; another id is somebody else's, whatever its name.
fn owner() -> Owner {
    Owner { environment: "alice".into(), id: "7".into() }
}

fn spec() -> KindSpec {
    KindSpec { image: "kindest/node:v1.34.4".into(), ..KindSpec::new(CLUSTER, owner()) }
}

impl Setup {
    async fn create(&self) -> k8tre::error::Result<()> {
        self.kind.create(&spec(), &self.fake.kubeconfig(), false).await
    }

    async fn state(&self) -> ClusterState {
        self.kind.observe(CLUSTER, &owner()).await.unwrap()
    }
}

#[tokio::test]
async fn a_cluster_is_created_observed_and_deleted() {
    let s = setup().await;
    assert_eq!(s.state().await, ClusterState::Absent);
    s.create().await.unwrap();
    assert_eq!(s.state().await, ClusterState::Running);
    let owned = find_all_owned(s.kind.docker()).await.unwrap();
    assert_eq!((owned.len(), owned[0].owner.environment.as_str()), (1, "alice"));

    s.kind.stop(CLUSTER).await.unwrap();
    assert!(matches!(s.state().await, ClusterState::Stopped(why) if why.ends_with("is stopped")));
    let address = s.kind.start(CLUSTER).await.unwrap();
    assert_eq!(address.as_deref(), Some("172.18.0.2"));

    s.kind.delete(CLUSTER, &owner(), &s.fake.kubeconfig()).await.unwrap();
    assert_eq!(s.state().await, ClusterState::Absent);
    assert!(!s.fake.kubeconfig().exists());
    s.kind.delete(CLUSTER, &owner(), &s.fake.kubeconfig()).await.expect("deleting twice is fine");
}

#[tokio::test]
async fn kind_gets_our_docker_our_kubeconfig_and_nothing_of_the_users() {
    let s = setup().await;
    s.create().await.unwrap();
    let kubeconfig = s.fake.kubeconfig().display().to_string();
    let argv = &s.fake.argv()[0];
    assert!(argv.starts_with("create cluster --name k8tre-alice --config - --image kindest/node:v1.34.4"), "{argv}");
    assert!(argv.ends_with(&format!("--kubeconfig {kubeconfig}")), "{argv}");
    let env = &s.fake.env()[0];
    let host = s.docker.endpoint().host;
    let wanted = format!(
        "KUBECONFIG={kubeconfig} DOCKER_HOST={host} DOCKER_CONTEXT= KIND_CLUSTER_NAME= KIND_EXPERIMENTAL_PROVIDER=docker"
    );
    assert_eq!(env, &wanted);
    let folder = s.fake.kubeconfig().parent().unwrap().metadata().unwrap();
    assert_eq!(folder.permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn a_failed_creation_shows_kinds_words_and_leaves_nothing() {
    let s = setup().await;
    s.fake.mode("fail");
    let error = s.create().await.unwrap_err();
    assert!(error.detail_text().unwrap().contains("could not find a log line"), "{error:?}");
    assert!(error.hints().iter().any(|hint| hint.contains("fs.inotify.max_user_instances")), "{error:?}");
    assert_eq!(s.docker.names(), [] as [&str; 0]);
}

#[tokio::test]
async fn a_kind_that_dies_half_way_leaves_nothing() {
    let s = setup().await;
    s.fake.mode("die");
    let error = s.create().await.unwrap_err();
    assert!(error.to_string().contains("k8tre-alice"), "{error}");
    assert_eq!(s.docker.names(), [] as [&str; 0]);
}

#[tokio::test]
async fn what_is_to_be_kept_for_a_look_inside_is_kept() {
    let s = setup().await;
    s.fake.mode("fail");
    let error = s.kind.create(&spec(), &s.fake.kubeconfig(), true).await.unwrap_err();
    assert!(s.fake.argv()[0].contains("--retain"));
    assert_eq!(s.docker.names(), ["k8tre-alice-control-plane"]);
    assert!(error.hints().iter().any(|hint| hint.starts_with("docker exec")), "{error:?}");
}

#[tokio::test]
async fn an_interrupted_creation_is_seen_and_replaced() {
    let s = setup().await;
    s.fake.mode("hang");
    let interrupted = tokio::time::timeout(Duration::from_millis(700), s.create()).await;
    assert!(interrupted.is_err());
    assert_eq!(s.docker.names(), ["k8tre-alice-control-plane"]);
    assert!(matches!(s.state().await, ClusterState::Partial(_)));
    s.fake.mode("well");
    s.create().await.expect("kind must not say: node(s) already exist");
    assert_eq!(s.state().await, ClusterState::Running);
}

#[tokio::test]
async fn what_kind_started_ends_with_it_when_up_is_interrupted() {
    let s = setup().await;
    s.fake.mode("slow");
    assert!(tokio::time::timeout(Duration::from_millis(400), s.create()).await.is_err());
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(s.docker.names(), [] as [&str; 0], "a container appeared after the interruption");
}

#[cfg(target_os = "linux")]
#[tokio::test]
#[allow(clippy::disallowed_methods)] // a kind that survives its k8tre is just what Program prevents
async fn down_ends_the_kind_that_a_killed_up_left_at_work() {
    let s = setup().await;
    s.fake.mode("slow");
    let kubeconfig = s.fake.kubeconfig();
    let argv = ["create", "cluster", "--name", CLUSTER, "--config", "-", "--kubeconfig", kubeconfig.to_str().unwrap()];
    let config = spec().config().unwrap();
    let mut abandoned = tokio::process::Command::new(s.fake.program().path)
        .args(argv)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    abandoned.stdin.take().unwrap().write_all(config.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(400)).await;
    s.kind.delete(CLUSTER, &owner(), &kubeconfig).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(5), abandoned.wait()).await.unwrap().unwrap();
    assert!(!ended.success());
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(s.docker.names(), [] as [&str; 0], "a container appeared after down");
}

#[tokio::test]
async fn endless_noise_of_kind_does_no_harm() {
    let s = setup().await;
    s.fake.mode("noise");
    s.create().await.unwrap();
    assert_eq!(s.state().await, ClusterState::Running);
}

#[tokio::test]
async fn a_cluster_that_others_made_is_never_touched() {
    let s = setup().await;
    s.docker.add_node(CLUSTER, "control-plane", None, "running", false);
    assert!(matches!(s.state().await, ClusterState::Foreign(_)));
    let error = s.create().await.unwrap_err();
    assert!(error.to_string().contains("not ours"), "{error}");
    let error = s.kind.delete(CLUSTER, &owner(), &s.fake.kubeconfig()).await.unwrap_err();
    assert!(error.to_string().contains("stays"), "{error}");
    assert_eq!(s.docker.names(), ["k8tre-alice-control-plane"]);
    assert_eq!(s.fake.argv(), [] as [&str; 0]);
}

#[tokio::test]
async fn a_cluster_of_another_environment_is_foreign_too() {
    let s = setup().await;
    s.docker.add_node(CLUSTER, "control-plane", Some("/k8tre/owner/bob/7"), "running", true);
    let ClusterState::Foreign(why) = s.state().await else { panic!("not foreign") };
    assert!(why.contains("bob"), "{why}");
    assert!(s.kind.delete(CLUSTER, &owner(), &s.fake.kubeconfig()).await.is_err());
}

#[tokio::test]
async fn a_cluster_of_the_same_name_from_another_creation_is_foreign() {
    let s = setup().await;
    s.docker.add_node(CLUSTER, "control-plane", Some("/k8tre/owner/alice/8"), "running", true);
    assert!(matches!(s.state().await, ClusterState::Foreign(_)));
    assert!(s.kind.delete(CLUSTER, &owner(), &s.fake.kubeconfig()).await.is_err());
    assert_eq!(s.docker.names(), ["k8tre-alice-control-plane"]);
}

#[tokio::test]
async fn one_node_that_is_down_is_named_and_started_again() {
    let s = setup().await;
    s.docker.add_node(CLUSTER, "control-plane", Some("/k8tre/owner/alice/7"), "running", true);
    s.docker.add_node(CLUSTER, "worker", Some("/k8tre/owner/alice/7"), "paused", true);
    let ClusterState::Stopped(why) = s.state().await else { panic!("not stopped") };
    assert_eq!(why, "k8tre-alice-worker is paused");
    // Docker does not start what is paused.
    s.kind.start(CLUSTER).await.unwrap();
    assert_eq!(s.state().await, ClusterState::Running);
}

#[tokio::test]
async fn deleting_works_when_kind_does_not() {
    let s = setup().await;
    s.create().await.unwrap();
    s.fake.mode("stubborn");
    s.kind.delete(CLUSTER, &owner(), &s.fake.kubeconfig()).await.unwrap();
    assert_eq!(s.docker.names(), [] as [&str; 0]);

    s.fake.mode("well");
    s.create().await.unwrap();
    let without = Kind::new(s.docker.connect().await, None);
    without.delete(CLUSTER, &owner(), &s.fake.kubeconfig()).await.unwrap();
    assert_eq!(s.docker.names(), [] as [&str; 0]);
}

#[tokio::test]
async fn a_container_that_cannot_be_removed_is_an_error() {
    let s = setup().await;
    s.create().await.unwrap();
    s.fake.mode("stubborn");
    s.docker.change(|world| world.stuck.push("k8tre-alice-control-plane".into()));
    let error = s.kind.delete(CLUSTER, &owner(), &s.fake.kubeconfig()).await.unwrap_err();
    assert!(error.to_string().contains("device or resource busy"), "{error}");
}

#[tokio::test]
async fn a_lost_kubeconfig_is_written_again_for_its_owner_alone() {
    let s = setup().await;
    s.create().await.unwrap();
    fs::remove_file(s.fake.kubeconfig()).unwrap();
    s.kind.write_kubeconfig(CLUSTER, &s.fake.kubeconfig()).await.unwrap();
    assert!(fs::read_to_string(s.fake.kubeconfig()).unwrap().contains(r#""current-context":"kind-k8tre-alice""#));
    assert_eq!(s.fake.kubeconfig().metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn the_network_goes_with_the_last_cluster_and_only_if_it_is_ours() {
    let s = setup().await;
    let docker = s.kind.docker();
    let ours = NetworkOwnership::before_creation(docker, &[]).await.unwrap();
    assert!(ours.ours);
    let network = json!({"Id": "n1", "Name": "kind", "IPAM": {"Config": [{"Subnet": "172.18.0.0/16"}]}});
    s.docker.change(|world| world.networks.push(network));
    let ours = ours.after_creation(docker).await.unwrap();
    assert_eq!(ours.id.as_deref(), Some("n1"));

    let theirs = NetworkOwnership::before_creation(docker, &[]).await.unwrap();
    assert!(!theirs.remove(docker).await.unwrap(), "a network that was there before stays");
    let inherited = NetworkOwnership::before_creation(docker, std::slice::from_ref(&ours)).await.unwrap();
    assert!(inherited.ours);
    let being_made = NetworkOwnership { id: None, ..ours.clone() };
    let beside = NetworkOwnership::before_creation(docker, &[being_made]).await.unwrap();
    assert!(beside.ours, "an environment that comes up at the same time may have made it a moment ago");
    let other = NetworkOwnership { id: Some("n0".into()), ..ours.clone() };
    let unclaimed = NetworkOwnership::before_creation(docker, &[theirs, other]).await.unwrap();
    assert!(!unclaimed.ours);

    s.docker.add_node("someones", "control-plane", None, "exited", false);
    assert!(!ours.remove(docker).await.unwrap(), "a stopped node needs its network");
    fs::remove_file(s.docker.containers().join("someones-control-plane.json")).unwrap();
    assert!(ours.remove(docker).await.unwrap());
    assert!(ours.remove(docker).await.unwrap(), "gone is gone");
}
