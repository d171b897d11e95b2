//! The command line of `--provider vcluster`. Types only.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;

use crate::completion;
use crate::spec::{Expose, PodSecurity};

/// Where the vCluster's contents are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Storage {
    /// On a volume of the host.
    Volume,
    /// In its pod: gone when that restarts.
    None,
}

#[derive(Debug, Clone, Default, Args)]
pub struct VclusterArgs {
    /// The cluster that carries it: a context of your kubeconfig.
    #[arg(long, value_name = "CONTEXT", env = "K8TRE_HOST_CONTEXT", add = ArgValueCompleter::new(completion::contexts), help_heading = "vCluster")]
    pub host_context: Option<String>,
    /// Namespace that is made for it there [default: k8tre-NAME].
    #[arg(long, value_name = "NAMESPACE", help_heading = "vCluster")]
    pub host_namespace: Option<String>,
    /// Version of vCluster [default: 0.36.1].
    #[arg(long, value_name = "VERSION", env = "K8TRE_VCLUSTER_VERSION", help_heading = "vCluster")]
    pub vcluster_version: Option<String>,
    /// vCluster's Helm chart as a file, instead of fetching it.
    #[arg(long, value_name = "FILE", env = "K8TRE_VCLUSTER_CHART", help_heading = "vCluster")]
    pub vcluster_chart: Option<PathBuf>,
    /// Values for the chart, over those of k8tre.
    #[arg(long, value_name = "FILE", help_heading = "vCluster")]
    pub vcluster_values: Option<PathBuf>,
    /// Version of Kubernetes inside it [default: v1.34.4].
    #[arg(long, value_name = "VERSION", help_heading = "vCluster")]
    pub vcluster_kubernetes: Option<String>,
    /// Where its contents are [default: volume, where the host provides one].
    #[arg(long, value_enum, value_name = "WHERE", env = "K8TRE_VCLUSTER_STORAGE", help_heading = "vCluster")]
    pub vcluster_storage: Option<Storage>,
    /// How this machine reaches it [default: node-port].
    #[arg(long, value_enum, value_name = "HOW", env = "K8TRE_VCLUSTER_EXPOSE", help_heading = "vCluster")]
    pub vcluster_expose: Option<Expose>,
    /// Name or address of a node of the host as it is reached from here [default: what the nodes say].
    #[arg(long, value_name = "HOST", env = "K8TRE_VCLUSTER_NODE_ADDRESS", help_heading = "vCluster")]
    pub vcluster_node_address: Option<String>,
    /// Let its pods reach only each other and the internet, by NetworkPolicies.
    #[arg(long, help_heading = "vCluster")]
    pub vcluster_network_policy: bool,
    /// Level of the Pod Security Standards that the host enforces for its pods [default: privileged].
    #[arg(long, value_enum, value_name = "LEVEL", help_heading = "vCluster")]
    pub vcluster_pod_security: Option<PodSecurity>,
}
