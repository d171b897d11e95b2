//! Of each object that k8tre makes in a cluster of other people's, one of the same name that is somebody's: it stays as it
//! is, byte for byte, whether `up` stops because of it or goes on beside it. Which objects these are, an `up` tells.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Value, json};

use super::faults::{self, Repository};
use super::support::desk::Desk;
use super::support::store::Key;
use super::support::{existing, shared, vcluster};

/// What a look-alike says of whose it is.
#[derive(Debug, Clone, Copy)]
enum Mark {
    Nothing,
    /// Another environment's, of the same name.
    OtherId,
}

#[derive(Debug, Clone)]
struct Cell {
    repository: Repository,
    cluster: &'static str,
    key: Key,
    /// What k8tre makes there.
    made: Value,
    mark: Mark,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Key { plural, namespace, name, .. } = &self.key;
        write!(f, "{:?}: {plural}/{namespace}/{name} {:?}", self.repository, self.mark)
    }
}

fn keys(desk: &Desk, cluster: &str) -> BTreeSet<Key> {
    desk.clusters.keys(cluster).into_iter().collect()
}

fn names(text: &str, name: &str) -> bool {
    !name.is_empty() && text.contains(name)
}

fn look_alike(made: &Value, mark: Mark) -> Value {
    let mut object = json!({
        "apiVersion": made["apiVersion"], "kind": made["kind"], "theirs": "yes",
        "metadata": {"name": made["metadata"]["name"], "namespace": made["metadata"]["namespace"]},
    });
    if made["metadata"]["namespace"].is_null() {
        object["metadata"].as_object_mut().unwrap().remove("namespace");
    }
    // The labels are what Argo CD, or whoever looks for things of its kind, knows it by.
    object["metadata"]["labels"] = made["metadata"]["labels"].clone();
    if let Mark::OtherId = mark {
        object["metadata"]["annotations"]["k8tre.dev/environment-id"] = json!("0123456789ab");
    }
    object
}

/// Without what controllers write.
fn seen(desk: &Desk, cluster: &str, key: &Key) -> Option<Value> {
    let mut object = desk.clusters.at(cluster, key)?;
    object.as_object_mut().unwrap().remove("status");
    object["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    Some(object)
}

async fn survives(Cell { repository, cluster, key, made, mark }: Cell) -> Result<(), String> {
    let desk = repository.on_a_desk().await;
    let namespace =
        Key { group: "v1".into(), plural: "namespaces".into(), namespace: String::new(), name: key.namespace.clone() };
    if !key.namespace.is_empty() && desk.clusters.at(cluster, &namespace).is_none() {
        let theirs = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": key.namespace}});
        desk.clusters.plant_at(cluster, &namespace, &theirs);
    }
    desk.clusters.plant_at(cluster, &key, &look_alike(&made, mark));
    let before = seen(&desk, cluster, &key);
    let up = desk.run(&repository.up()).await;
    let between = seen(&desk, cluster, &key);
    let down = desk.run(&["dev", "down", "alice", "-v"]).await;
    let after = seen(&desk, cluster, &key);
    let said = format!("up {:?}, down {:?}\n{}\n{}", up.code, down.code, up.stderr, down.stderr);
    if before != between {
        return Err(format!("changed by up: {between:#?}\n{said}"));
    }
    if before != after {
        return Err(format!("changed by down: {after:#?}\n{said}"));
    }
    match (up.code, down.code) {
        // It is in the way, or where it is, and named.
        (Some(1 | 2 | 3 | 5), _) if ![&key.name, &key.namespace].iter().any(|name| names(&up.stderr, name)) => {
            Err(format!("it is not named:\n{said}"))
        }
        (Some(0), Some(0)) | (Some(1 | 2 | 3 | 5), Some(0 | 4)) => Ok(()),
        _ => Err(said),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn somebodys_object_of_each_name_stays_as_it_is() {
    let mut cells = Vec::new();
    for (repository, cluster) in [
        (Repository::Existing, existing::LAB),
        (Repository::Adjusted, existing::LAB),
        (Repository::Shared, shared::HUB),
        (Repository::Guarded, shared::HUB),
        (Repository::Vcluster, vcluster::HOST),
    ] {
        let desk = repository.on_a_desk().await;
        let before = keys(&desk, cluster);
        desk.run(&repository.up()).await.code(0);
        for key in keys(&desk, cluster).difference(&before) {
            let made = desk.clusters.at(cluster, key).unwrap();
            let mark = if cells.len() % 2 == 0 { Mark::Nothing } else { Mark::OtherId };
            cells.push(Cell { repository, cluster, key: key.clone(), made, mark });
        }
    }
    assert!(cells.len() > 40, "{}", cells.len());
    faults::run(cells, survives).await;
}
