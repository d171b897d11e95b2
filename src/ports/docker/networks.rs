//! Networks: which there are, their subnets, who is attached.

use bollard::models::Ipam;
use bollard::query_parameters::{InspectNetworkOptions, ListNetworksOptions};

use super::{ACTION, Docker, present};
use crate::error::Result;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    pub id: String,
    pub name: String,
    pub subnets: Vec<String>,
    /// Names of the running containers on it; known from an inspection only.
    pub attached: Vec<String>,
}

impl Docker {
    pub async fn networks(&self) -> Result<Vec<Network>> {
        let listed = self.ask("list networks", self.api.list_networks(None::<ListNetworksOptions>)).await?;
        let network = |found: bollard::models::Network| Network {
            id: found.id.unwrap_or_default(),
            name: found.name.unwrap_or_default(),
            subnets: subnets(found.ipam),
            attached: Vec::new(),
        };
        Ok(listed.into_iter().map(network).collect())
    }

    /// One network by name or id, if it exists.
    pub async fn network(&self, name: &str) -> Result<Option<Network>> {
        let call = async { present(self.api.inspect_network(name, None::<InspectNetworkOptions>).await) };
        let found = self.ask(&format!("inspect the network {name}"), call).await?;
        Ok(found.map(|found| Network {
            id: found.id.unwrap_or_default(),
            name: found.name.unwrap_or_default(),
            subnets: subnets(found.ipam),
            attached: found.containers.unwrap_or_default().into_values().filter_map(|at| at.name).collect(),
        }))
    }

    /// Removes it; one that is gone already is fine. Docker refuses while something is attached.
    pub async fn remove_network(&self, id: &str) -> Result<()> {
        let call = async { present(self.api.remove_network(id).await) };
        self.bounded(ACTION, &format!("remove the network {id}"), call).await.map(|_| ())
    }
}

fn subnets(ipam: Option<Ipam>) -> Vec<String> {
    let configs = ipam.and_then(|ipam| ipam.config).unwrap_or_default();
    configs.into_iter().filter_map(|config| config.subnet).filter(|subnet| !subnet.is_empty()).collect()
}
