//! The Docker port against a fake engine.

use std::time::{Duration, Instant};

use k8tre::ports::docker::{ContainerState, Docker};
use serde_json::json;

use crate::support::fake_docker::FakeDocker;

#[tokio::test]
async fn an_engine_that_hangs_is_given_up_and_named() {
    let fake = FakeDocker::start().await;
    fake.change(|world| world.hang_on = Some("/_ping".into()));
    let start = Instant::now();
    let error = Docker::connect(fake.endpoint()).await.err().unwrap();
    assert!(start.elapsed() < Duration::from_secs(14));
    assert!(error.to_string().contains(&fake.endpoint().host), "{error}");
    assert!(error.to_string().contains("within 10 s"), "{error}");
}

#[tokio::test]
async fn an_older_engine_is_spoken_to_in_its_own_version_and_not_asked_what_takes_it_long() {
    let fake = FakeDocker::start().await;
    fake.change(|world| world.hang_on = Some("/version".into()));
    assert!(fake.connect().await.containers(&[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn containers_are_found_by_label_stopped_ones_too() {
    let fake = FakeDocker::start().await;
    fake.add_node("a", "control-plane", Some("/k8tre/owner/alice/1"), "exited", true);
    fake.add(json!({"name": "web", "labels": {}, "state": "running", "ports": [{"public": 8080, "private": 80}]}));
    let docker = fake.connect().await;
    let nodes = docker.containers(&["io.x-k8s.kind.cluster=a"]).await.unwrap();
    assert_eq!(nodes.len(), 1);
    assert_eq!((nodes[0].name.as_str(), nodes[0].state), ("a-control-plane", ContainerState::Stopped));
    assert_eq!(nodes[0].mounts[0].destination, "/k8tre/owner/alice/1");
    let all = docker.containers(&[]).await.unwrap();
    let web = all.iter().find(|container| container.name == "web").unwrap();
    assert_eq!((web.ports[0].port, web.ports[0].inside), (8080, 80));
}

#[tokio::test]
async fn what_is_not_there_is_no_error() {
    let docker = FakeDocker::start().await;
    let docker = docker.connect().await;
    assert_eq!(docker.container("nobody").await.unwrap(), None);
    assert_eq!(docker.network("nothing").await.unwrap(), None);
    docker.remove_container("nobody").await.unwrap();
    docker.remove_network("nothing").await.unwrap();
    docker.remove_volume("nothing").await.unwrap();
}

#[tokio::test]
async fn a_refusal_of_the_engine_is_shown_in_its_own_words() {
    let fake = FakeDocker::start().await;
    fake.add_node("a", "control-plane", None, "running", true);
    fake.change(|world| world.stuck.push("a-control-plane".into()));
    let error = fake.connect().await.remove_container("a-control-plane").await.unwrap_err();
    assert!(error.to_string().contains("device or resource busy"), "{error}");
    assert!(error.to_string().contains("remove the container a-control-plane"), "{error}");
}
