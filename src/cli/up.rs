//! Arguments of `k8tre dev up`, and of `plan` and `preview`, which take the same. Types only.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use super::values::{duration, key_value, life};
use super::{NameArgs, SharedArgs, VclusterArgs};
use crate::completion;
use crate::settings::{ProviderKind, SourceKind};
use crate::spec::SecretsMode;

pub(super) const UP_EXAMPLES: &str = "Examples:
  k8tre dev up --sample                      a small TRE that comes up offline
  k8tre dev up alice --repo ~/k8tre          your checkout of a K8TRE repository
  k8tre dev up --argocd team                 by the Argo CD of that context
  k8tre dev up --provider existing --context lab    in a cluster that is there
  k8tre dev up --skip jupyterhub --dry-run   what would be done
  k8tre dev up --ephemeral -- ./smoke-test   for one job of a CI, then gone
  k8tre dev up                               again: repairs what is damaged";

#[derive(Debug, Clone, Default, Args)]
pub struct UpArgs {
    #[command(flatten)]
    pub name: NameArgs,

    /// Use the embedded sample TRE; written to this folder, or to the data folder, as a git repository to edit.
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true, conflicts_with = "repo", help_heading = "What to deploy")]
    pub sample: Option<Option<PathBuf>>,
    /// The TRE repository [default: the one around the current folder].
    #[arg(long, value_name = "PATH", env = "K8TRE_REPO", help_heading = "What to deploy")]
    pub repo: Option<PathBuf>,
    /// Branch that the developer's branch starts from [default: the one checked out].
    #[arg(long, value_name = "BRANCH", env = "K8TRE_BASE", help_heading = "What to deploy")]
    pub base: Option<String>,
    /// Environment folder (envs/ENV) that the developer's build upon [default: dev].
    #[arg(long, value_name = "ENV", env = "K8TRE_BASE_ENVIRONMENT", help_heading = "What to deploy")]
    pub base_environment: Option<String>,
    /// Domain of the TRE [default: NAME.k8tre.internal].
    #[arg(long, value_name = "DOMAIN", env = "K8TRE_DOMAIN", help_heading = "What to deploy")]
    pub domain: Option<String>,
    /// Value of the cluster's vendor label [default: as the repository suggests].
    #[arg(long, value_name = "VENDOR", env = "K8TRE_VENDOR", help_heading = "What to deploy")]
    pub vendor: Option<String>,
    /// How long it is meant to be there, from now on, as 8h or 3d; after that, `k8tre dev gc` removes it [default: until `down`].
    #[arg(long, value_name = "TIME", value_parser = life, help_heading = "What to deploy")]
    pub ttl: Option<Duration>,
    /// Another label of the cluster Secret; can be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = key_value, help_heading = "What to deploy")]
    pub labels: Vec<(String, String)>,
    /// Leave an app out; can be repeated.
    #[arg(long, value_name = "APP", add = ArgValueCompleter::new(completion::apps), value_delimiter = ',', help_heading = "What to deploy")]
    pub skip: Vec<String>,
    /// Deploy an app that the repository's preset leaves out on a laptop; can be repeated.
    #[arg(long, value_name = "APP", add = ArgValueCompleter::new(completion::apps), value_delimiter = ',', help_heading = "What to deploy")]
    pub with: Vec<String>,
    /// Deploy only these apps; can be repeated.
    #[arg(long, value_name = "APP", add = ArgValueCompleter::new(completion::apps), value_delimiter = ',', conflicts_with = "skip", help_heading = "What to deploy")]
    pub only: Vec<String>,

    /// Where Argo CD reads your branch [default: cluster, a git server in it; remote for a shared Argo CD].
    #[arg(long, value_enum, value_name = "WHERE", env = "K8TRE_SOURCE", help_heading = "Branch")]
    pub source: Option<SourceKind>,
    /// The git remote for `--source remote` [default: origin].
    #[arg(long, value_name = "REMOTE", env = "K8TRE_REMOTE", help_heading = "Branch")]
    pub remote: Option<String>,
    /// Address of that remote as Argo CD reads it [default: the remote's own, as https].
    #[arg(long, value_name = "URL", env = "K8TRE_REPO_URL", help_heading = "Branch")]
    pub repo_url: Option<String>,
    /// Carry your branch over to where the base is now, if the base went on.
    #[arg(long, help_heading = "Branch")]
    pub rebase: bool,

    /// What makes the cluster [default: kind].
    #[arg(long, value_enum, value_name = "PROVIDER", env = "K8TRE_PROVIDER", help_heading = "Cluster")]
    pub provider: Option<ProviderKind>,
    /// The cluster for `--provider existing`: a context of your kubeconfig. Nothing of it is made or deleted.
    #[arg(long, value_name = "CONTEXT", add = ArgValueCompleter::new(completion::contexts), env = "K8TRE_CONTEXT", help_heading = "Cluster")]
    pub context: Option<String>,
    /// The kubeconfig that has this context [default: the first of KUBECONFIG that has it].
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    pub vcluster: VclusterArgs,
    /// Image of the nodes of a kind cluster [default: one that k8tre is tested with].
    #[arg(long, value_name = "IMAGE", env = "K8TRE_NODE_IMAGE", help_heading = "Cluster")]
    pub node_image: Option<String>,
    /// kind configuration: single, workers, ingress, or a file [default: single].
    #[arg(long, value_name = "NAME|FILE", env = "K8TRE_KIND_CONFIG", help_heading = "Cluster")]
    pub kind_config: Option<String>,
    /// Add the cluster to your own kubeconfig too; your current context stays.
    #[arg(long, help_heading = "Cluster")]
    pub merge_kubeconfig: bool,

    /// Version of Argo CD [default: v3.6.1].
    #[arg(long, value_name = "VERSION", env = "K8TRE_ARGOCD_VERSION", help_heading = "Argo CD")]
    pub argocd_version: Option<String>,
    /// Argo CD's install manifest as a file, instead of fetching it.
    #[arg(long, value_name = "FILE", env = "K8TRE_ARGOCD_MANIFEST", help_heading = "Argo CD")]
    pub argocd_manifest: Option<PathBuf>,
    /// Open Argo CD's UI and API without login, with all rights, to everybody who reaches them.
    #[arg(long, help_heading = "Argo CD")]
    pub anonymous: bool,
    /// Install Dex (single sign-on) too.
    #[arg(long, help_heading = "Argo CD")]
    pub with_dex: bool,
    /// Install the notifications controller too.
    #[arg(long, help_heading = "Argo CD")]
    pub with_notifications: bool,

    /// Set what an Argo CD in an existing cluster lacks, as build options and rules of health; each change is shown and asked about, and `down` puts it back.
    #[arg(long, help_heading = "Argo CD")]
    pub adjust_argocd: bool,

    #[command(flatten)]
    pub shared: SharedArgs,

    /// What happens to secrets of the repository's list that are there already [default: merge-keys].
    #[arg(long, value_enum, value_name = "MODE", help_heading = "This run")]
    pub secrets: Option<SecretsMode>,

    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// How long to wait for healthy Applications, as 90s or 10m.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration, env = "K8TRE_TIMEOUT", help_heading = "This run")]
    pub timeout: Duration,
    /// Return as soon as the Applications are on their way.
    #[arg(long, help_heading = "This run")]
    pub no_wait: bool,
    /// Count an Application that differs from git after its sync as unhealthy.
    #[arg(long, help_heading = "This run")]
    pub require_synced: bool,
    /// Keep a cluster that could not be created, to look into it.
    #[arg(long, help_heading = "This run")]
    pub keep_on_failure: bool,
    /// Use the node image as it is, without preparing one that has Argo CD's images in it.
    #[arg(long, env = "K8TRE_NO_PREPARE", help_heading = "This run")]
    pub no_prepare: bool,
    /// Fetch nothing; say what is missing and where to put it.
    #[arg(long, env = "K8TRE_OFFLINE", help_heading = "This run")]
    pub offline: bool,
    /// Certificates to trust besides the system's when fetching (PEM).
    #[arg(long, value_name = "FILE", env = "K8TRE_CA_BUNDLE", help_heading = "This run")]
    pub ca_bundle: Option<PathBuf>,
    /// Say what would be done, and do nothing.
    #[arg(long, help_heading = "This run")]
    pub dry_run: bool,
    /// Ask nothing.
    #[arg(short = 'y', long, help_heading = "This run")]
    pub yes: bool,
}

impl Default for RunArgs {
    fn default() -> Self {
        RunArgs {
            timeout: Duration::from_secs(600),
            no_wait: false,
            require_synced: false,
            keep_on_failure: false,
            no_prepare: false,
            offline: false,
            ca_bundle: None,
            dry_run: false,
            yes: false,
        }
    }
}
