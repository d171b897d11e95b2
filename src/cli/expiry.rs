//! The command line of what ends by itself. Types only.

use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use super::{NameArgs, environment_name, life};
use crate::completion;
use crate::names::EnvName;

#[derive(Debug, Clone, Args)]
#[command(override_usage = "k8tre dev extend [NAME] <TIME>")]
pub struct ExtendArgs {
    /// Name of the environment, and how much longer, as 4h or 2d; without a name, the only environment there is.
    #[arg(value_name = "NAME TIME", num_args = 1..=2, required = true, add = ArgValueCompleter::new(completion::environments))]
    words: Vec<String>,
    /// The name as a flag.
    #[arg(long = "name", value_name = "NAME", env = "K8TRE_NAME", value_parser = environment_name, add = ArgValueCompleter::new(completion::environments))]
    name: Option<EnvName>,
}

impl ExtendArgs {
    /// Which environment, and for how much longer.
    pub fn read(&self) -> Result<(NameArgs, Duration), String> {
        match self.words.as_slice() {
            [name, time] => Ok((NameArgs { environment: Some(environment_name(name)?), name: None }, life(time)?)),
            [time] => Ok((NameArgs { environment: None, name: self.name.clone() }, life(time)?)),
            _ => Err("k8tre dev extend [NAME] TIME".to_owned()),
        }
    }
}

pub(super) const GC_EXAMPLES: &str = "Examples:
  k8tre dev gc --dry-run       what has expired or is orphaned here, and why
  k8tre dev gc --argocd team   also on an Argo CD that others use too
  k8tre dev gc --host team     also vClusters on a cluster of your kubeconfig
  k8tre dev gc --yes           for a job that runs each night; in the cluster
                               itself: k8tre shared gc-manifest

What carries no mark of k8tre's stays, and so does another machine's environment
that has not expired: that its cluster does not answer is said, and enough of a
reason with --silent alone.";

#[derive(Debug, Clone, Args)]
pub struct GcArgs {
    /// Look on an Argo CD that others use too: a context of your kubeconfig, and its namespace; with --in-cluster, the namespace alone.
    #[arg(long, value_name = "CONTEXT[/NAMESPACE]", add = ArgValueCompleter::new(completion::contexts))]
    pub argocd: Option<String>,
    /// Also clusters of k8tre's on this Docker that are recorded nowhere here and have not expired; on a Docker that others use too, they may be theirs.
    #[arg(long)]
    pub unrecorded: bool,
    /// Also environments on that Argo CD that are an hour old or older, have not expired, and whose cluster does not answer; a colleague's laptop that sleeps looks the same.
    #[arg(long, requires = "argocd")]
    pub silent: bool,
    /// Look for vClusters on a cluster that carries them: a context of your kubeconfig.
    #[arg(long, value_name = "CONTEXT")]
    pub host: Option<String>,
    /// Look only in the cluster around this pod, as the ServiceAccount that it runs as: for vClusters, and with --argocd at an Argo CD.
    #[arg(long, conflicts_with_all = ["host", "unrecorded"])]
    pub in_cluster: bool,
    /// Also vClusters there that have no end, and are an hour old or older; they may be somebody's.
    #[arg(long)]
    pub without_end: bool,
    /// Also branches of ended environments on this remote of the repository here, whichever machine pushed them, as long as they hold no other commits than k8tre's. A later end is known to that Argo CD alone.
    #[arg(long, value_name = "REMOTE", requires = "argocd", conflicts_with = "in_cluster")]
    pub remote: Option<String>,
    /// Say what would be removed, and remove nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Ask nothing.
    #[arg(short = 'y', long)]
    pub yes: bool,
}
