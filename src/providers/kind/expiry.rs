//! When a cluster ends, written in its nodes: as the time of an empty file, which Docker tells also of a stopped one.

use jiff::Timestamp;

use super::{Kind, OwnedNode, SHORT, nodes_of};
use crate::error::Result;
use crate::ports::docker::{ContainerState, Docker};

const FILE: &str = "/k8tre/expires";

impl Kind {
    /// Writes it in every node of a cluster that runs.
    pub async fn set_expiry(&self, cluster: &str, expires: Timestamp) -> Result<()> {
        let at = format!("@{}", expires.as_second());
        for node in nodes_of(&self.docker, cluster).await?.ours {
            self.docker.exec_ok(&node.container, &["touch", "-d", &at, FILE], SHORT).await?;
        }
        Ok(())
    }

    /// Whether every node of a cluster that runs says so. A stopped one is told when it runs again.
    pub async fn has_expiry(&self, cluster: &str, expires: Timestamp) -> Result<bool> {
        for node in nodes_of(&self.docker, cluster).await?.ours {
            let said = expiry(&self.docker, &node).await?.map(Timestamp::as_second);
            if node.state == ContainerState::Running && said != Some(expires.as_second()) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What a node says of its end; none if it has none.
pub async fn expiry(docker: &Docker, node: &OwnedNode) -> Result<Option<Timestamp>> {
    docker.path_time(&node.container, FILE).await
}
