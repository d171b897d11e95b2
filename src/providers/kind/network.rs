//! The Docker network that kind puts its nodes on: shared by all kind clusters of the machine, so
//! removed only when a k8tre made it and nobody uses it any more.

use serde::{Deserialize, Serialize};

use super::owner::CLUSTER_LABEL;
use crate::error::Result;
use crate::ports::docker::{Docker, Network};
use crate::ports::environment;

/// Who made the network; material of the journal, written before the cluster is created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkOwnership {
    pub name: String,
    /// Docker's ID of it, once it is there.
    pub id: Option<String>,
    /// Whether a k8tre on this machine made it.
    pub ours: bool,
}

/// The network that kind uses, by the same variables as kind.
pub fn name() -> String {
    let variable = match environment::var("KIND_EXPERIMENTAL_PROVIDER").as_deref() {
        Some("podman") => "KIND_EXPERIMENTAL_PODMAN_NETWORK",
        _ => "KIND_EXPERIMENTAL_DOCKER_NETWORK",
    };
    environment::var(variable).unwrap_or_else(|| "kind".to_owned())
}

impl NetworkOwnership {
    /// To be asked before a cluster is created. `claims` are those of the journals on this machine: the last environment to go removes what the first one made.
    pub async fn before_creation(docker: &Docker, claims: &[NetworkOwnership]) -> Result<NetworkOwnership> {
        let name = name();
        let id = docker.network(&name).await?.map(|network| network.id);
        let ours = id.as_ref().is_none_or(|id| claims.iter().any(|claim| claim.covers(&name, id)));
        Ok(NetworkOwnership { name, id, ours })
    }

    /// A claim without an ID is that of an environment that found no network and is making it now.
    fn covers(&self, name: &str, id: &str) -> bool {
        self.ours && self.name == name && self.id.as_deref().is_none_or(|known| known == id)
    }

    /// The same claim, with the ID of the network that is there now.
    pub async fn after_creation(self, docker: &Docker) -> Result<NetworkOwnership> {
        let id = docker.network(&self.name).await?.map(|network| network.id);
        Ok(NetworkOwnership { id, ..self })
    }

    /// Removes the network if it is ours and unused. Tells whether it is gone.
    pub async fn remove(&self, docker: &Docker) -> Result<bool> {
        let Some(found) = docker.network(&self.name).await? else { return Ok(true) };
        // A network of that name with another ID was made by somebody else since.
        let same = self.id.as_ref().is_none_or(|id| *id == found.id);
        if !self.ours || !same || in_use(docker, &found).await? {
            return Ok(false);
        }
        docker.remove_network(&found.id).await?;
        Ok(true)
    }
}

/// A stopped container is not attached, but cannot start again without its network.
pub async fn in_use(docker: &Docker, network: &Network) -> Result<bool> {
    if !network.attached.is_empty() {
        return Ok(true);
    }
    let nodes = docker.containers(&[CLUSTER_LABEL]).await?;
    Ok(nodes.iter().any(|node| node.networks.contains_key(&network.name)))
}

/// The last fifty-six addresses but the very last of an IPv4 network: Docker hands out from the front.
pub fn address_range(subnet: &str) -> Option<String> {
    let (address, prefix) = subnet.split_once('/')?;
    let address: std::net::Ipv4Addr = address.parse().ok()?;
    let prefix: u32 = prefix.parse().ok().filter(|prefix| (1..=24).contains(prefix))?;
    let last = u32::from(address) | (u32::MAX >> prefix);
    Some(format!("{}-{}", std::net::Ipv4Addr::from(last - 55), std::net::Ipv4Addr::from(last - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_for_load_balancers_are_at_the_end_of_the_subnet() {
        assert_eq!(address_range("172.18.0.0/16").as_deref(), Some("172.18.255.200-172.18.255.254"));
        assert_eq!(address_range("192.168.5.0/24").as_deref(), Some("192.168.5.200-192.168.5.254"));
        assert_eq!(address_range("fc00:f853::/64"), None);
        assert_eq!(address_range("10.0.0.0/30"), None);
    }
}
