//! Clusters by kind: nodes are containers of the local Docker.

pub mod address;
pub mod binary;
pub mod config;
mod creation;
pub mod expiry;
pub mod network;
mod node_network;
pub mod owner;
pub mod prepared;
mod provider;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, Result, ResultExt};
use crate::ports::docker::{ContainerState, Docker};
use crate::ports::machine::Machine;
use crate::ports::process::Program;
use crate::ports::{dirs, kubeconfig};
use crate::providers::ClusterState;
use crate::spec::Spec;
use owner::CLUSTER_LABEL;

pub use binary::KindProgram;
pub use config::{IngressPorts, KindSpec};
pub use network::NetworkOwnership;
pub use owner::{Nodes, OwnedNode, Owner, find_all_owned, nodes_of};
pub use prepared::Prepared;
pub use provider::KindProvider;

/// From kind 0.33's release notes; any kind from 0.30 on runs it.
pub const DEFAULT_NODE_IMAGE: &str =
    "kindest/node:v1.34.11@sha256:44e222ee2132dab25ff87301682f89eb82c7880ea3a1bf543bfe9708fd08d67d";

/// Image of an environment's nodes.
pub fn node_image(spec: &Spec) -> String {
    spec.kind.node_image.clone().unwrap_or_else(|| DEFAULT_NODE_IMAGE.to_owned())
}

/// Says, inside a node, that its creation was carried through.
const WHOLE: &str = "/k8tre/whole";

const CREATE_LIMIT: Duration = Duration::from_secs(600);
const DELETE_LIMIT: Duration = Duration::from_secs(90);
const SHORT: Duration = Duration::from_secs(20);
const READY_LIMIT: Duration = Duration::from_secs(120);

/// kind on one Docker.
pub struct Kind {
    docker: Docker,
    program: Option<KindProgram>,
    machine: Machine,
    /// Variables for the program, which hands them to the nodes that it makes.
    proxies: BTreeMap<String, String>,
}

impl Kind {
    /// Without the program, everything but creating works.
    pub fn new(docker: Docker, program: Option<KindProgram>) -> Kind {
        Kind { docker, program, machine: Machine::this(), proxies: BTreeMap::new() }
    }

    /// With the variables of proxies for the nodes that it makes.
    pub fn proxies(self, proxies: BTreeMap<String, String>) -> Kind {
        Kind { proxies, ..self }
    }

    pub fn docker(&self) -> &Docker {
        &self.docker
    }

    /// What there is under this cluster's name.
    pub async fn observe(&self, cluster: &str, owner: &Owner) -> Result<ClusterState> {
        let nodes = nodes_of(&self.docker, cluster).await?;
        if let Some(why) = foreign(&nodes, owner) {
            return Ok(ClusterState::Foreign(why));
        }
        if nodes.ours.is_empty() {
            return Ok(ClusterState::Absent);
        }
        for node in &nodes.ours {
            if !self.docker.path_exists(&node.container, WHOLE).await? {
                return Ok(ClusterState::Partial(format!("the creation of {} was not finished", node.container)));
            }
        }
        Ok(match nodes.ours.iter().find(|node| node.state != ContainerState::Running) {
            None => ClusterState::Running,
            Some(node) => ClusterState::Stopped(format!("{} is {}", node.container, node.state)),
        })
    }

    /// Makes the cluster and writes its kubeconfig. Nothing of it remains if that fails, unless it is
    /// to be kept for a look inside.
    pub async fn create(&self, spec: &KindSpec, kubeconfig: &Path, keep_on_failure: bool) -> Result<()> {
        let program = self.program.as_ref().ok_or_else(|| Error::failed("kind is needed to create a cluster"))?;
        let config = spec.config()?;
        self.clear_half_made(spec, kubeconfig).await?;
        fresh(kubeconfig)?;
        let mut run = self
            .program(&program.path, kubeconfig)
            .args(["create", "cluster", "--name", &spec.cluster, "--config", "-", "--image", &spec.image])
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .stdin(config)
            .limit(CREATE_LIMIT);
        if keep_on_failure {
            run = run.arg("--retain");
        }
        let made = async {
            run.run().await?;
            let nodes = nodes_of(&self.docker, &spec.cluster).await?;
            for node in &nodes.ours {
                self.docker.exec_ok(&node.container, &["touch", WHOLE], SHORT).await?;
            }
            Ok(())
        }
        .await;
        let Err(error) = made else { return Ok(()) };
        let error: Error = error;
        let error = explained(error.context(format!("kind could not create the cluster {}", spec.cluster)));
        if keep_on_failure {
            return Err(error
                .hint(format!("docker exec -it {}-control-plane journalctl -xeu kubelet", spec.cluster))
                .hint(format!("kind delete cluster --name {}", spec.cluster)));
        }
        match self.remove_nodes(&spec.cluster, &spec.owner).await {
            Ok(()) => Err(error),
            Err(left) => {
                Err(error.hint(format!("{left}")).hint(format!("kind delete cluster --name {}", spec.cluster)))
            }
        }
    }

    /// What an interrupted creation of this environment left would make kind refuse.
    async fn clear_half_made(&self, spec: &KindSpec, kubeconfig: &Path) -> Result<()> {
        self.end_abandoned_creation(&spec.cluster, kubeconfig).await;
        let nodes = nodes_of(&self.docker, &spec.cluster).await?;
        if let Some(why) = foreign(&nodes, &spec.owner) {
            return Err(Error::failed(format!(
                "there is a cluster {} already, and it is not ours: {why}",
                spec.cluster
            ))
            .hint("choose another name: k8tre dev up NAME")
            .hint(format!("or, if it is not needed: kind delete cluster --name {}", spec.cluster)));
        }
        if nodes.ours.is_empty() {
            return Ok(());
        }
        tracing::info!(cluster = spec.cluster, "removing what an earlier creation left");
        self.remove_nodes(&spec.cluster, &spec.owner).await
    }

    /// A k8tre that was killed left its kind at work, which would go on making containers after we
    /// have removed them. It is known by our kubeconfig in its command line.
    async fn end_abandoned_creation(&self, cluster: &str, kubeconfig: &Path) {
        for process in self.machine.running(&["create", "cluster", &kubeconfig.to_string_lossy()]) {
            tracing::info!(process.id, "ending the kind of an earlier run");
            self.machine.end(&process);
        }
        // What kind started last makes its container yet; that takes a moment, and then it is seen.
        let label = format!("{CLUSTER_LABEL}={cluster}");
        for _ in 0..100 {
            if self.machine.running(&["run", &label]).is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Removes the cluster, proves it, and removes the kubeconfig file.
    pub async fn delete(&self, cluster: &str, owner: &Owner, kubeconfig: &Path) -> Result<()> {
        self.end_abandoned_creation(cluster, kubeconfig).await;
        let nodes = nodes_of(&self.docker, cluster).await?;
        if let Some(why) = foreign(&nodes, owner) {
            return Err(Error::failed(format!("the cluster {cluster} is not ours and stays: {why}")));
        }
        if let (Some(program), false) = (&self.program, nodes.ours.is_empty()) {
            let run = self.program(&program.path, kubeconfig).args(["delete", "cluster", "--name", cluster]);
            let run = run.arg("--kubeconfig").arg(kubeconfig).limit(DELETE_LIMIT);
            if let Err(error) = run.run().await {
                tracing::warn!(%error, "kind could not delete the cluster; its containers are removed directly");
            }
        }
        self.remove_nodes(cluster, owner).await?;
        for volume in nodes.ours.iter().flat_map(|node| &node.volumes) {
            self.docker.remove_volume(volume).await?;
        }
        kubeconfig::remove(kubeconfig)
    }

    /// Removes our containers of this cluster, and looks whether they are gone.
    async fn remove_nodes(&self, cluster: &str, owner: &Owner) -> Result<()> {
        let ours = |nodes: Nodes| nodes.ours.into_iter().filter(|node| node.owner == *owner);
        for node in ours(nodes_of(&self.docker, cluster).await?) {
            self.docker.remove_container(&node.container).await?;
        }
        let left: Vec<_> = ours(nodes_of(&self.docker, cluster).await?).map(|node| node.container).collect();
        if left.is_empty() {
            return Ok(());
        }
        Err(Error::failed(format!("still there: {}", left.join(", ")))
            .hint(format!("docker rm -f -v {}", left.join(" "))))
    }

    /// Stops the nodes; the cluster keeps its contents.
    pub async fn stop(&self, cluster: &str) -> Result<()> {
        for node in nodes_of(&self.docker, cluster).await?.ours.iter().rev() {
            if node.state == ContainerState::Running {
                self.docker.stop_container(&node.container).await?;
            }
        }
        Ok(())
    }

    /// Starts stopped and paused nodes and waits until the API server is ready. Tells the control plane's
    /// address, which Docker may have changed.
    pub async fn start(&self, cluster: &str) -> Result<Option<String>> {
        for node in nodes_of(&self.docker, cluster).await?.ours {
            match node.state {
                ContainerState::Running => {}
                ContainerState::Paused => self.docker.unpause_container(&node.container).await?,
                _ => self.docker.start_container(&node.container).await?,
            }
        }
        self.wait_until_ready(cluster, READY_LIMIT).await?;
        self.address_in_docker_network(cluster).await
    }

    /// Waits until the API server says that it is ready, asking inside the node.
    pub async fn wait_until_ready(&self, cluster: &str, limit: Duration) -> Result<()> {
        let node = control_plane(cluster);
        let argv = ["kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "get", "--raw=/readyz"];
        let mut last = String::new();
        let wait = async {
            loop {
                match self.docker.exec_ok(&node, &argv, SHORT).await {
                    Ok(_) => return,
                    Err(error) => last = error.detail_text().map_or_else(|| error.to_string(), str::to_owned),
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        };
        tokio::time::timeout(limit, wait).await.map_err(|_| {
            Error::failed(format!("the API server of {cluster} was not ready within {} s", limit.as_secs()))
                .detail(crate::text::printable(&last))
                .hint(format!("docker logs {node} --tail 50"))
        })
    }

    /// Address of the control plane in kind's network, as other clusters' pods reach it.
    pub async fn address_in_docker_network(&self, cluster: &str) -> Result<Option<String>> {
        let node = self.docker.container(&control_plane(cluster)).await?;
        let network = network::name();
        Ok(node.and_then(|node| node.networks.get(&network).cloned().flatten()))
    }

    /// Writes the kubeconfig again, when the file was lost or the port changed.
    pub async fn write_kubeconfig(&self, cluster: &str, kubeconfig: &Path) -> Result<()> {
        let program = self.program.as_ref().ok_or_else(|| Error::failed("kind is needed to write a kubeconfig"))?;
        let run = self.program(&program.path, kubeconfig).args(["get", "kubeconfig", "--name", cluster]).limit(SHORT);
        let output = run.run().await.with_context(|| format!("kind has no kubeconfig for {cluster}"))?;
        dirs::write_private(kubeconfig, &output.stdout)
    }

    /// kind in an environment where it cannot mean another Docker, another cluster or the user's
    /// kubeconfig.
    fn program(&self, path: &Path, kubeconfig: &Path) -> Program {
        let program = Program::new(path)
            .own_group()
            .env("KUBECONFIG", kubeconfig)
            .env("KIND_EXPERIMENTAL_PROVIDER", self.docker.endpoint().program())
            .env_remove("KIND_CLUSTER_NAME");
        let program = self.proxies.iter().fold(program, |program, (name, value)| program.env(name, value));
        self.docker.child_env().into_iter().fold(program, |program, (name, value)| match value {
            Some(value) => program.env(name, value),
            None => program.env_remove(name),
        })
    }
}

fn control_plane(cluster: &str) -> String {
    format!("{cluster}-control-plane")
}

/// What shows that the containers are not this environment's, if they are not.
fn foreign(nodes: &Nodes, owner: &Owner) -> Option<String> {
    if let Some(name) = nodes.foreign.first() {
        return Some(format!("the container {name} was not made by k8tre"));
    }
    let other = nodes.ours.iter().find(|node| node.owner != *owner)?;
    Some(format!("the container {} belongs to the environment {}", other.container, other.owner))
}

/// What kind's words mean, where they are known to puzzle.
fn explained(error: Error) -> Error {
    let words = error.detail_text().unwrap_or_default().to_owned();
    let known = [
        (
            "could not find a log line",
            "sudo sysctl fs.inotify.max_user_instances=512 fs.inotify.max_user_watches=524288",
        ),
        ("too many open files", "sudo sysctl fs.inotify.max_user_instances=512 fs.inotify.max_user_watches=524288"),
        ("port is already allocated", "docker ps --format '{{.Names}} {{.Ports}}'"),
        ("toomanyrequests", "docker login, or preload the node image: docker load -i FILE"),
        ("failed to pull image", "docker pull the node image by hand, or name another one: --node-image IMAGE"),
        ("no space left", "docker system df"),
    ];
    let hints = known.iter().filter(|(said, _)| words.contains(said)).map(|(_, hint)| *hint);
    hints.fold(error, |error, hint| error.hint(hint))
}

/// The folder for the kubeconfig, and no older file in it: kind would merge the two.
fn fresh(kubeconfig: &Path) -> Result<()> {
    if let Some(folder) = kubeconfig.parent() {
        dirs::create_private_dir(folder)?;
    }
    dirs::remove_file(kubeconfig)
}
