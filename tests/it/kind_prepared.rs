//! Node images with images in them, made in a fake Docker.

use k8tre::ports::docker::Held;
use k8tre::providers::kind::prepared::{Prepared, remove_all};
use serde_json::json;

use crate::support::fake_docker::FakeDocker;

fn held(name: &str) -> Vec<Held> {
    vec![Held { reference: name.to_owned(), name: name.to_owned() }]
}

const NODE: &str = "kindest/node:v1.34.4";
const ARGOCD: &str = "quay.io/argoproj/argocd:v3.6.1";

async fn docker() -> FakeDocker {
    let docker = FakeDocker::start().await;
    docker.change(|world| {
        let config = json!({"Entrypoint": ["/usr/local/bin/entrypoint"], "StopSignal": "SIGRTMIN+3"});
        world.images.insert(NODE.into(), json!({"Id": "sha256:1", "Config": config}));
        world.images.insert(ARGOCD.into(), json!({"Id": "sha256:2", "Config": {}}));
    });
    docker
}

#[tokio::test]
async fn an_image_is_made_once_and_runs_as_the_node_image_does() {
    let fake = docker().await;
    let docker = fake.connect().await;
    let prepared = Prepared::plan(&docker, NODE, held(ARGOCD)).await.unwrap().unwrap();
    assert!(!prepared.is_made(&docker).await.unwrap());
    prepared.make(&docker).await.unwrap();
    assert!(prepared.is_made(&docker).await.unwrap());
    assert_eq!(fake.names(), [] as [&str; 0], "the container it was made in is gone");
    fake.change(|world| {
        let config = &world.images[&prepared.reference()]["Config"];
        assert_eq!(config["Entrypoint"], json!(["/usr/local/bin/entrypoint"]));
        assert_eq!(config["StopSignal"], "SIGRTMIN+3");
        assert!(config.get("Volumes").is_none_or(serde_json::Value::is_null));
    });
}

#[tokio::test]
async fn another_argo_cd_gets_another_image_and_the_older_one_goes() {
    let fake = docker().await;
    let docker = fake.connect().await;
    let old = Prepared::plan(&docker, NODE, held(ARGOCD)).await.unwrap().unwrap();
    old.make(&docker).await.unwrap();
    fake.change(|world| world.images.get_mut(ARGOCD).unwrap()["Id"] = json!("sha256:3"));
    let new = Prepared::plan(&docker, NODE, held(ARGOCD)).await.unwrap().unwrap();
    assert_ne!(old.reference(), new.reference());
    new.make(&docker).await.unwrap();
    assert!(!old.is_made(&docker).await.unwrap());
    assert_eq!(remove_all(&docker).await.unwrap(), [] as [&str; 0]);
    assert!(!new.is_made(&docker).await.unwrap());
}

#[tokio::test]
async fn nothing_is_planned_with_an_image_that_docker_lacks() {
    let fake = docker().await;
    let docker = fake.connect().await;
    assert_eq!(Prepared::plan(&docker, NODE, held("redis:8")).await.unwrap(), None);
}

#[tokio::test]
async fn a_failed_preparation_leaves_no_container_and_no_image() {
    let fake = docker().await;
    fake.change(|world| world.failing = Some(("prepare finish".into(), 3)));
    let docker = fake.connect().await;
    let prepared = Prepared::plan(&docker, NODE, held(ARGOCD)).await.unwrap().unwrap();
    let error = prepared.make(&docker).await.unwrap_err();
    assert!(error.to_string().contains("unpacking") && error.to_string().contains("exited with 3"), "{error}");
    assert_eq!(fake.names(), [] as [&str; 0]);
    assert!(!prepared.is_made(&docker).await.unwrap());
}
