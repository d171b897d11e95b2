//! A vCluster: a cluster in a namespace of another one.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// vCluster's version that k8tre is tested with.
pub const VCLUSTER_VERSION: &str = "0.36.1";
/// Kubernetes inside it: the newest that k8tre is tested with.
pub const VCLUSTER_KUBERNETES: &str = "v1.34.4";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VclusterSpec {
    /// Context of the user's kubeconfig: the cluster that carries it.
    pub host_context: String,
    /// The file that has this context: a later command may run with another KUBECONFIG.
    pub host_kubeconfig: PathBuf,
    /// Namespace of the host that is made for it, and goes with it.
    pub namespace: String,
    /// Version of the chart, and of the program in it.
    pub version: String,
    /// The chart as a file, instead of fetching it.
    pub chart: Option<PathBuf>,
    /// Version of Kubernetes inside it.
    pub kubernetes: String,
    /// Values of the user's, over k8tre's.
    pub values: Option<PathBuf>,
    /// Whether its contents are on a volume; `None` until the host was asked whether it can provide one.
    pub persistent: Option<bool>,
    /// How this machine reaches its API server.
    pub expose: Expose,
    /// Name or address of a node of the host as this machine reaches it, in place of what the nodes say.
    pub node_address: Option<String>,
    /// Whether its pods may only reach each other and the internet.
    pub network_policy: bool,
    /// What the host's admission demands of its pods.
    pub pod_security: PodSecurity,
}

/// How a vCluster's API server is reached from outside the host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Expose {
    /// A port of every node.
    #[default]
    NodePort,
    /// An address from the host's load balancer.
    LoadBalancer,
}

/// A level of the Pod Security Standards, enforced in the namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum PodSecurity {
    /// Nothing is refused; what is not `baseline` is warned of.
    #[default]
    Privileged,
    Baseline,
    Restricted,
}

impl PodSecurity {
    pub fn label(self) -> &'static str {
        match self {
            PodSecurity::Privileged => "privileged",
            PodSecurity::Baseline => "baseline",
            PodSecurity::Restricted => "restricted",
        }
    }
}
