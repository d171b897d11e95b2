//! Whose a node is.
//!
//! kind offers no way to label a container, so each of our nodes carries a mount of nothing whose
//! path is the label. Docker shows it from the moment the container exists, also when it is stopped.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::ports::docker::{Container, ContainerState, Docker};

/// kind's own labels on the containers it makes.
pub const CLUSTER_LABEL: &str = "io.x-k8s.kind.cluster";
pub const ROLE_LABEL: &str = "io.x-k8s.kind.role";

const MARK: &str = "/k8tre/owner/";

/// The environment that owns a cluster, and an id that no other creation of it has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Owner {
    pub environment: String,
    pub id: String,
}

impl Owner {
    /// Path of the mount that marks a node as this owner's.
    pub fn mark(&self) -> String {
        format!("{MARK}{}/{}", self.environment, self.id)
    }

    fn of(container: &Container) -> Option<Owner> {
        container.mounts.iter().find_map(|mount| {
            let (environment, id) = mount.destination.strip_prefix(MARK)?.split_once('/')?;
            Some(Owner { environment: environment.to_owned(), id: id.to_owned() })
        })
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.environment, self.id)
    }
}

/// A node container that k8tre had made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedNode {
    pub container: String,
    pub cluster: String,
    pub role: String,
    pub owner: Owner,
    pub state: ContainerState,
    /// Anonymous volumes that go with it.
    pub volumes: Vec<String>,
    /// Network name and address there.
    pub networks: BTreeMap<String, Option<String>>,
}

/// The containers under one cluster's name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Nodes {
    pub ours: Vec<OwnedNode>,
    /// Names of containers without our mark.
    pub foreign: Vec<String>,
}

/// Every node that any k8tre on this Docker made: what `list` shows and what `down` finds without a
/// journal.
pub async fn find_all_owned(docker: &Docker) -> Result<Vec<OwnedNode>> {
    let containers = docker.containers(&[CLUSTER_LABEL]).await?;
    Ok(sorted(containers.iter().filter_map(owned).collect()))
}

/// The containers of a cluster, ours and others'.
pub async fn nodes_of(docker: &Docker, cluster: &str) -> Result<Nodes> {
    let containers = docker.containers(&[&format!("{CLUSTER_LABEL}={cluster}")]).await?;
    let mut nodes = Nodes::default();
    for container in &containers {
        match owned(container) {
            Some(node) => nodes.ours.push(node),
            None => nodes.foreign.push(container.name.clone()),
        }
    }
    nodes.ours = sorted(nodes.ours);
    Ok(nodes)
}

fn owned(container: &Container) -> Option<OwnedNode> {
    Some(OwnedNode {
        owner: Owner::of(container)?,
        container: container.name.clone(),
        cluster: container.labels.get(CLUSTER_LABEL)?.clone(),
        role: container.labels.get(ROLE_LABEL).cloned().unwrap_or_default(),
        state: container.state,
        volumes: container.mounts.iter().filter_map(|mount| mount.volume.clone()).collect(),
        networks: container.networks.clone(),
    })
}

/// Control planes first, as they start first and stop last.
fn sorted(mut nodes: Vec<OwnedNode>) -> Vec<OwnedNode> {
    nodes.sort_by_key(|node| (node.cluster.clone(), node.role != "control-plane", node.container.clone()));
    nodes
}
