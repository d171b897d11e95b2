//! The command line of an Argo CD that others use too. Types only.

use std::time::Duration;

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use super::values::{duration, environment_name};
use crate::completion;
use crate::names::EnvName;

/// Kubernetes gives no token for less.
const SHORTEST: Duration = Duration::from_secs(600);
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

#[derive(Debug, Clone, Default, Args)]
pub struct SharedArgs {
    /// An Argo CD that others use too: a context of your kubeconfig, and its namespace [default: an Argo CD of its own, in the environment's cluster].
    #[arg(long, value_name = "CONTEXT[/NAMESPACE]", env = "K8TRE_ARGOCD", help_heading = "Shared Argo CD", add = ArgValueCompleter::new(completion::contexts))]
    pub argocd: Option<String>,
    /// Address of the environment's cluster as that Argo CD reaches it [default: the node's name, on kind's network].
    #[arg(long, value_name = "URL", env = "K8TRE_SERVER", help_heading = "Shared Argo CD")]
    pub server: Option<String>,
    /// How long the token is valid that it gets, from 10m to 720h [default: 24h].
    #[arg(long, value_name = "TIME", value_parser = token_ttl, env = "K8TRE_TOKEN_TTL", help_heading = "Shared Argo CD")]
    pub token_ttl: Option<Duration>,
    /// Where it gets a login for the repository from, if it has none itself: `git` (your credential helpers), `-` (standard input), or a file; kept only in repository Secrets for this environment's projects.
    #[arg(long, value_name = "git|-|FILE", help_heading = "Shared Argo CD")]
    pub repo_credentials: Option<String>,
    /// For an Argo CD that may manage only these namespaces of the environment's cluster, and nothing that is in none; `*` is all again [default: all].
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',', help_heading = "Shared Argo CD")]
    pub namespaced: Vec<String>,
    /// Let it give rights in the environment's cluster that it has not itself, as charts of operators need; with that, it can do anything there [default: false].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = "Shared Argo CD")]
    pub argocd_may_escalate: Option<bool>,
}

/// A token's length of life, within what is of use.
pub fn token_ttl(text: &str) -> Result<Duration, String> {
    let length = duration(text)?;
    if (SHORTEST..=LONGEST).contains(&length) {
        return Ok(length);
    }
    Err("a token is valid for at least 10m and at most 720h".to_owned())
}

#[derive(Debug, Subcommand)]
pub enum Shared {
    /// Print the Role and the RoleBinding that a developer needs there, for an administrator to apply.
    #[command(after_help = "Example:\n  k8tre shared rbac --name alice --for alice@example.org | kubectl apply -f -")]
    Rbac(RbacArgs),
    /// Every developer's environment on an Argo CD: whose, how old, until when, reachable, how healthy.
    #[command(visible_alias = "ls", after_help = "Example:\n  k8tre shared list --argocd team/argocd")]
    List(SharedListArgs),
    /// Print a CronJob, and what it may do, that removes in the cluster itself what has expired; for an administrator to apply.
    #[command(after_help = GC_MANIFEST_EXAMPLES)]
    GcManifest(GcManifestArgs),
}

const GC_MANIFEST_EXAMPLES: &str = "Examples:
  k8tre shared gc-manifest --image IMAGE | kubectl --context team apply -f -
  k8tre shared gc-manifest --image IMAGE --argocd argocd   at the Argo CD, too

The image has k8tre as its entry point. There is none to be pulled; the static binary is enough for one:
  FROM scratch
  COPY k8tre /k8tre
  ENTRYPOINT [\"/k8tre\"]";

#[derive(Debug, Clone, Args)]
pub struct GcManifestArgs {
    /// The image to run, with k8tre as its entry point.
    #[arg(long, value_name = "IMAGE")]
    pub image: String,
    /// Namespace that is made for it.
    #[arg(long, value_name = "NAMESPACE", default_value = "k8tre-gc")]
    pub namespace: String,
    /// When it runs, as cron has it.
    #[arg(long, value_name = "SCHEDULE", default_value = "17 * * * *")]
    pub schedule: String,
    /// Also take expired environments off the Argo CD in this namespace. To find them it may read all Secrets there, those of other clusters included.
    #[arg(long, value_name = "NAMESPACE")]
    pub argocd: Option<String>,
    /// Let it ask from Argo CD's network which clusters still answer, by a command in Argo CD's pods: without, it cannot take off what a cluster that is gone has left.
    #[arg(long, requires = "argocd")]
    pub probe: bool,
    /// Also remove vClusters that have no end, and are an hour old or older.
    #[arg(long)]
    pub without_end: bool,
}

#[derive(Debug, Clone, Args)]
pub struct SharedListArgs {
    /// The Argo CD: a context of your kubeconfig, and its namespace.
    #[arg(long, value_name = "CONTEXT[/NAMESPACE]", env = "K8TRE_ARGOCD", add = ArgValueCompleter::new(completion::contexts))]
    pub argocd: String,
    /// Do not ask from Argo CD's network whether the clusters can be reached.
    #[arg(long)]
    pub no_probe: bool,
}

#[derive(Debug, Clone, Args)]
pub struct RbacArgs {
    /// Name of the environment that it is for.
    #[arg(long, value_name = "NAME", env = "K8TRE_NAME", value_parser = environment_name)]
    pub name: EnvName,
    /// The user, as the API server of the shared Argo CD knows them.
    #[arg(long = "for", value_name = "USER", required_unless_present = "group", conflicts_with = "group")]
    pub user: Option<String>,
    /// A group of users instead.
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
    /// Namespace of Argo CD.
    #[arg(long, value_name = "NAMESPACE", default_value = "argocd")]
    pub namespace: String,
    /// Add the rights on the repository Secrets of this environment, for `up --repo-credentials`.
    #[arg(long)]
    pub repo_credentials: bool,
    /// Add a ValidatingAdmissionPolicy that holds the developer to the names, projects and labels of this environment.
    #[arg(long)]
    pub policy: bool,
    /// Add the right to run a command in Argo CD's pods, by which `up` asks whether a cluster can be reached. It is the right to read all that Argo CD can read.
    #[arg(long)]
    pub probe: bool,
}
