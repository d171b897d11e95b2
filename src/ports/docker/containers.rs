//! Containers: listed, inspected, started, stopped, removed with their volumes.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use bollard::container::PathStatResponse;
use bollard::models::{ContainerInspectResponse, ContainerSummary, MountPoint, PortMap};
use bollard::query_parameters::{
    ContainerArchiveInfoOptionsBuilder, InspectContainerOptions, ListContainersOptionsBuilder,
    RemoveContainerOptionsBuilder, RemoveVolumeOptions, StartContainerOptions, StatsOptionsBuilder,
    StopContainerOptionsBuilder,
};
use futures::StreamExt;

use super::{ACTION, Docker, present};
use crate::error::Result;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerState {
    Created,
    Running,
    Paused,
    Restarting,
    Stopped,
    Removing,
    Dead,
}

impl ContainerState {
    fn from_word(word: &str) -> ContainerState {
        match word {
            "running" => ContainerState::Running,
            "created" => ContainerState::Created,
            "paused" => ContainerState::Paused,
            "restarting" => ContainerState::Restarting,
            "removing" => ContainerState::Removing,
            "dead" => ContainerState::Dead,
            _ => ContainerState::Stopped,
        }
    }
}

impl fmt::Display for ContainerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ContainerState::Created => "created",
            ContainerState::Running => "running",
            ContainerState::Paused => "paused",
            ContainerState::Restarting => "restarting",
            ContainerState::Stopped => "stopped",
            ContainerState::Removing => "being removed",
            ContainerState::Dead => "dead",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    pub id: String,
    pub name: String,
    pub image: String,
    pub labels: BTreeMap<String, String>,
    pub state: ContainerState,
    pub mounts: Vec<Mount>,
    /// Ports of the host that lead into it.
    pub ports: Vec<HostPort>,
    /// Network name and the container's address there; no address while it is stopped.
    pub networks: BTreeMap<String, Option<String>>,
    /// Known from an inspection only, as are the next three.
    pub started_at: Option<String>,
    pub exit_code: Option<i64>,
    pub health: Option<String>,
    pub fault: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub source: String,
    pub destination: String,
    /// Name of the volume, where it is one.
    pub volume: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    pub address: String,
    pub port: u16,
    pub inside: u16,
}

impl Docker {
    /// All containers, stopped ones too, that carry every one of these labels (`key` or `key=value`).
    pub async fn containers(&self, labels: &[&str]) -> Result<Vec<Container>> {
        let filters = HashMap::from([("label", labels.to_vec())]);
        let mut options = ListContainersOptionsBuilder::new().all(true);
        if !labels.is_empty() {
            options = options.filters(&filters);
        }
        let listed = self.ask("list containers", self.api.list_containers(Some(options.build()))).await?;
        Ok(listed.into_iter().map(from_summary).collect())
    }

    /// One container by name or id, if it exists.
    pub async fn container(&self, name: &str) -> Result<Option<Container>> {
        let call = async { present(self.api.inspect_container(name, None::<InspectContainerOptions>).await) };
        Ok(self.ask(&format!("inspect the container {name}"), call).await?.map(from_inspection))
    }

    pub async fn start_container(&self, name: &str) -> Result<()> {
        let call = self.api.start_container(name, None::<StartContainerOptions>);
        self.bounded(ACTION, &format!("start the container {name}"), call).await
    }

    /// Lets a paused container go on.
    /// Memory that a running container holds, without the cache that Docker gives back by itself.
    pub async fn memory_of(&self, name: &str) -> Option<u64> {
        let options = StatsOptionsBuilder::new().stream(false).one_shot(true).build();
        let mut stats = self.api.stats(name, Some(options));
        let memory = tokio::time::timeout(ACTION, stats.next()).await.ok()??.ok()?.memory_stats?;
        let cache = memory.stats.as_ref().and_then(|stats| stats.get("inactive_file").copied()).unwrap_or(0);
        Some(memory.usage?.saturating_sub(cache))
    }

    pub async fn unpause_container(&self, name: &str) -> Result<()> {
        self.bounded(ACTION, &format!("unpause the container {name}"), self.api.unpause_container(name)).await
    }

    /// Stops it, with 10 s to do so by itself.
    pub async fn stop_container(&self, name: &str) -> Result<()> {
        let options = StopContainerOptionsBuilder::new().t(10).build();
        self.bounded(ACTION, &format!("stop the container {name}"), self.api.stop_container(name, Some(options))).await
    }

    /// Removes it, running or not, with its anonymous volumes. One that is gone already is fine.
    pub async fn remove_container(&self, name: &str) -> Result<()> {
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        let call = async { present(self.api.remove_container(name, Some(options)).await) };
        self.bounded(ACTION, &format!("remove the container {name}"), call).await.map(|_| ())
    }

    /// Whether there is such a path in a container, running or not.
    pub async fn path_exists(&self, container: &str, path: &str) -> Result<bool> {
        Ok(self.path(container, path).await?.is_some())
    }

    /// The time that a file in a container carries, running or not; none if it is not there.
    pub async fn path_time(&self, container: &str, path: &str) -> Result<Option<jiff::Timestamp>> {
        let found = self.path(container, path).await?;
        Ok(found.and_then(|found| found.modification_time).and_then(|at| at.parse().ok()))
    }

    async fn path(&self, container: &str, path: &str) -> Result<Option<PathStatResponse>> {
        let options = ContainerArchiveInfoOptionsBuilder::new().path(path).build();
        let call = async { present(self.api.get_container_archive_info(container, Some(options)).await) };
        self.ask(&format!("look into the container {container}"), call).await
    }

    /// Removes a volume; one that is gone already is fine.
    pub async fn remove_volume(&self, name: &str) -> Result<()> {
        let call = async { present(self.api.remove_volume(name, None::<RemoveVolumeOptions>).await) };
        self.bounded(ACTION, &format!("remove the volume {name}"), call).await.map(|_| ())
    }

    /// Whether a volume of this name exists: what an audit after a removal asks.
    pub async fn volume_exists(&self, name: &str) -> Result<bool> {
        let call = async { present(self.api.inspect_volume(name).await) };
        // Docker answers when the removal of volumes that it is at has ended.
        Ok(self.bounded(ACTION, &format!("inspect the volume {name}"), call).await?.is_some())
    }
}

fn from_summary(summary: ContainerSummary) -> Container {
    let names = summary.names.unwrap_or_default();
    let networks = summary.network_settings.and_then(|settings| settings.networks).unwrap_or_default();
    Container {
        id: summary.id.unwrap_or_default(),
        // A name with a second slash is a legacy link, not the container's own.
        name: names.iter().map(|n| n.trim_start_matches('/')).find(|n| !n.contains('/')).unwrap_or_default().to_owned(),
        image: summary.image.unwrap_or_default(),
        labels: summary.labels.unwrap_or_default().into_iter().collect(),
        state: ContainerState::from_word(&summary.state.map(|state| state.to_string()).unwrap_or_default()),
        mounts: mounts(summary.mounts),
        ports: summary
            .ports
            .unwrap_or_default()
            .into_iter()
            .filter_map(|port| {
                let address = port.ip.unwrap_or_default();
                port.public_port.map(|public| HostPort { address, port: public, inside: port.private_port })
            })
            .collect(),
        networks: networks.into_iter().map(|(name, at)| (name, address(at.ip_address))).collect(),
        started_at: None,
        exit_code: None,
        health: None,
        fault: None,
    }
}

fn from_inspection(found: ContainerInspectResponse) -> Container {
    let state = found.state.unwrap_or_default();
    let settings = found.network_settings.unwrap_or_default();
    // A stopped container's ports are known to its host configuration alone.
    let configured = found.host_config.and_then(|host| host.port_bindings);
    let ports = settings.ports.filter(|ports| !ports.is_empty()).or(configured).map(ports).unwrap_or_default();
    let networks = settings.networks.unwrap_or_default();
    let config = found.config.unwrap_or_default();
    Container {
        id: found.id.unwrap_or_default(),
        name: found.name.unwrap_or_default().trim_start_matches('/').to_owned(),
        image: config.image.unwrap_or_default(),
        labels: config.labels.unwrap_or_default().into_iter().collect(),
        state: ContainerState::from_word(&state.status.map(|status| status.to_string()).unwrap_or_default()),
        mounts: mounts(found.mounts),
        ports,
        networks: networks.into_iter().map(|(name, at)| (name, address(at.ip_address))).collect(),
        started_at: state.started_at.filter(|time| !time.starts_with("0001")),
        exit_code: state.exit_code,
        health: state.health.and_then(|health| health.status).map(|status| status.to_string()),
        fault: state.error.filter(|error| !error.is_empty()),
    }
}

fn address(address: Option<String>) -> Option<String> {
    address.filter(|address| !address.is_empty())
}

fn mounts(mounts: Option<Vec<MountPoint>>) -> Vec<Mount> {
    let mounts = mounts.unwrap_or_default().into_iter();
    mounts
        .map(|mount| Mount {
            source: mount.source.unwrap_or_default(),
            destination: mount.destination.unwrap_or_default(),
            volume: mount.name.filter(|name| !name.is_empty()),
        })
        .collect()
}

fn ports(map: PortMap) -> Vec<HostPort> {
    let mut found = Vec::new();
    for (inside, bindings) in map {
        let inside: u16 = inside.split('/').next().and_then(|port| port.parse().ok()).unwrap_or_default();
        for binding in bindings.unwrap_or_default() {
            if let Some(port) = binding.host_port.and_then(|port| port.parse().ok()) {
                found.push(HostPort { address: binding.host_ip.unwrap_or_default(), port, inside });
            }
        }
    }
    found
}
