//! The command line: types only. What a flag does is written where it is used.

mod apart;
mod expiry;
mod shared;
mod views;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::names::EnvName;
use crate::settings::SourceKind;
use crate::spec::SecretsMode;
use crate::ui::Format;
pub use apart::{HoldArgs, ReleaseArgs, UseArgs};
pub use expiry::{ExtendArgs, GcArgs};
pub use shared::{RbacArgs, Shared, SharedArgs, SharedListArgs, token_ttl};
pub use views::{
    DiagnoseArgs, Drawing, GraphArgs, KubeconfigArgs, LogsArgs, NameFlag, OpenArgs, ShellArgs, StatusArgs,
};

/// Developer environments of K8TRE: a cluster, an Argo CD and a branch, from one command.
#[derive(Debug, Parser)]
#[command(name = "k8tre", version, max_term_width = 100, disable_help_subcommand = true, propagate_version = true)]
#[command(
    after_help = "Start here:\n  k8tre dev up --sample     a small TRE of your own, no account needed\n  k8tre dev status          what is there, what is wrong and why\n  k8tre dev down            remove every trace"
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,

    #[command(flatten)]
    pub global: Global,
}

#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Print data as text or as JSON.
    #[arg(short = 'o', long = "output", value_enum, default_value = "text", global = true, value_name = "FORMAT")]
    pub output: Format,

    /// Say more: each step's start and what it waits for; twice, also every program that is run.
    #[arg(short = 'v', long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create, look at and remove environments.
    #[command(subcommand, visible_alias = "env")]
    Dev(Box<Dev>),

    /// For administrators of an Argo CD that developers' environments share.
    #[command(subcommand)]
    Shared(Shared),

    /// Check a TRE repository offline: each finding with file, line and fix.
    Lint(LintArgs),

    /// Check this machine: each finding with its fix.
    Doctor(DoctorArgs),

    /// What k8tre keeps to be quicker next time, and its removal.
    Cache(CacheArgs),

    /// Write the completion script of a shell to stdout.
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },

    /// Write manual pages to a folder.
    Man {
        /// The folder, which must exist.
        folder: PathBuf,
    },

    /// For k8tre itself.
    #[command(subcommand, hide = true)]
    Internal(Internal),
}

#[derive(Debug, Subcommand)]
pub enum Internal {
    /// Carry one git connection into the cluster; git runs this in place of ssh.
    GitTransport { host: String, command: String },
}

#[derive(Debug, Subcommand)]
pub enum Dev {
    /// Create an environment or repair it; goes on where an earlier run stopped.
    #[command(after_help = UP_EXAMPLES)]
    Up(UpArgs),
    /// Remove all that an environment made, and prove that nothing is left.
    #[command(visible_alias = "rm")]
    Down(DownArgs),
    /// What is there, what is wrong and why; the exit code tells (0 healthy, 3 not, 4 no such environment).
    Status(StatusArgs),
    /// Bring the work tree as it is to the cluster, without a commit, and wait until it is live.
    #[command(after_help = SYNC_EXAMPLES)]
    Sync(SyncArgs),
    /// All environments of this user on this machine.
    #[command(visible_alias = "ls")]
    List,
    /// What `up` would do: the same as `up --dry-run`.
    Plan(UpArgs),
    /// Offline: which Applications the ApplicationSets would make here, and why not the others.
    Preview(PreviewArgs),
    /// Stop the cluster's containers; all it holds stays, and its memory is free.
    Pause(NameArgs),
    /// Start a paused environment and wait until it is healthy again.
    Resume(ResumeArgs),
    /// Print Argo CD's first admin password.
    Password(NameArgs),
    /// The secrets that the repository lists: their keys, and their values when asked for.
    Secrets(SecretsArgs),
    /// Print the path of the environment's kubeconfig, or merge it into yours.
    Kubeconfig(KubeconfigArgs),
    /// Open Argo CD's UI or an Application in the browser; connections of its own last until Ctrl-C.
    Open(OpenArgs),
    /// Follow the logs of all pods of an Application, new pods included.
    Logs(LogsArgs),
    /// Start your shell, or a command, with KUBECONFIG and K8TRE_NAME set.
    Shell(ShellArgs),
    /// Draw the environment: cluster, Argo CD, branch, ApplicationSets, Applications and causes.
    Graph(GraphArgs),
    /// Write one archive for a bug report, with Secrets and tokens left out.
    Diagnose(DiagnoseArgs),
    /// Keep one Application as it is for a time, whatever the branch says; it ends by itself.
    #[command(after_help = apart::HOLD_EXAMPLES)]
    Hold(HoldArgs),
    /// List and remove what has expired or is orphaned: environments, clusters, branches, registrations.
    #[command(after_help = expiry::GC_EXAMPLES)]
    Gc(GcArgs),
    /// Let an environment that expires be there for longer.
    Extend(ExtendArgs),
    /// End a hold: the Application follows the branch again.
    Release(ReleaseArgs),
    /// Take one Application's files from another branch, and the rest from the base.
    #[command(after_help = apart::USE_EXAMPLES)]
    Use(UseArgs),
    /// The last `up` as bars over time: what ran beside what, and where the time went.
    Timings(NameArgs),
}

const UP_EXAMPLES: &str = "Examples:
  k8tre dev up --sample                       a small TRE that comes up offline
  k8tre dev up alice --repo ~/k8tre           your checkout of a K8TRE repository
  k8tre dev up --argocd team                  deployed by the Argo CD of that kubeconfig context
  k8tre dev up --skip jupyterhub --dry-run    what would be done, without doing it
  k8tre dev up                                again: repairs what is damaged, else changes nothing";

const SYNC_EXAMPLES: &str = "Examples:
  k8tre dev sync              what you have edited, live in about a second
  k8tre dev sync --watch      the same after each change, until Ctrl-C
  k8tre dev sync --reset      back to the branch as it is committed

Your files, index, HEAD, stash and branches stay as they are. Files that git ignores stay here.";

#[derive(Debug, Clone, Default, Args)]
pub struct NameArgs {
    /// Name of the environment; without it, the only one there is.
    #[arg(value_name = "NAME", value_parser = environment_name)]
    pub environment: Option<EnvName>,

    /// The same as a flag.
    #[arg(long = "name", value_name = "NAME", env = "K8TRE_NAME", value_parser = environment_name, conflicts_with = "environment")]
    pub name: Option<EnvName>,
}

impl NameArgs {
    pub fn get(&self) -> Option<&EnvName> {
        self.environment.as_ref().or(self.name.as_ref())
    }
}

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
    #[arg(long, value_name = "APP", value_delimiter = ',', help_heading = "What to deploy")]
    pub skip: Vec<String>,
    /// Deploy an app that the repository's preset leaves out on a laptop; can be repeated.
    #[arg(long, value_name = "APP", value_delimiter = ',', help_heading = "What to deploy")]
    pub with: Vec<String>,
    /// Deploy only these apps; can be repeated.
    #[arg(long, value_name = "APP", value_delimiter = ',', conflicts_with = "skip", help_heading = "What to deploy")]
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

    /// Image of the cluster's nodes [default: one that k8tre is tested with].
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

#[derive(Debug, Clone, Args)]
pub struct DownArgs {
    #[command(flatten)]
    pub name: NameArgs,
    /// Every environment of this user on this machine.
    #[arg(long, conflicts_with_all = ["environment", "name"])]
    pub all: bool,
    /// Leave the developer's branch.
    #[arg(long)]
    pub keep_branch: bool,
    /// Say what would be removed, and remove nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Ask nothing.
    #[arg(short = 'y', long)]
    pub yes: bool,
}

#[derive(Debug, Clone, Args)]
pub struct ResumeArgs {
    #[command(flatten)]
    pub name: NameArgs,
    /// How long to wait for healthy Applications, as 90s or 10m.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration, env = "K8TRE_TIMEOUT")]
    pub timeout: Duration,
    /// Return as soon as the cluster runs and the Applications are on their way.
    #[arg(long)]
    pub no_wait: bool,
}

#[derive(Debug, Clone, Args)]
pub struct SecretsArgs {
    #[command(flatten)]
    pub name: NameArgs,
    /// Print the values of one secret, or of one of its keys; without a name, of all.
    #[arg(long, value_name = "SECRET[/KEY]", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub reveal: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct SyncArgs {
    #[command(flatten)]
    pub name: NameArgs,
    /// Go on with each change of a file, until Ctrl-C.
    #[arg(short, long, conflicts_with = "reset")]
    pub watch: bool,
    /// Deploy the branch as it is committed again, without the work tree.
    #[arg(long)]
    pub reset: bool,
    /// How long to wait until a change is live, as 90s or 10m.
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = duration)]
    pub timeout: Duration,
    /// Return as soon as Argo CD was told.
    #[arg(long)]
    pub no_wait: bool,
    /// Refuse new files that are larger, as 500K or 20M [default: 5M].
    #[arg(long, value_name = "SIZE", value_parser = size, env = "K8TRE_MAX_FILE_SIZE")]
    pub max_file_size: Option<u64>,
}

#[derive(Debug, Clone, Args)]
pub struct PreviewArgs {
    #[command(flatten)]
    pub up: UpArgs,
    /// Compare with the Applications that a live Argo CD holds, in this context of your kubeconfig.
    #[arg(long, value_name = "CONTEXT")]
    pub against: Option<String>,
    /// Build each Application with kustomize and show how it differs from its base.
    #[arg(long)]
    pub render: bool,
}

#[derive(Debug, Clone, Args)]
pub struct LintArgs {
    /// The repository, or a folder in its layout [default: the one around the current folder].
    #[arg(value_name = "PATH")]
    pub path: Option<PathBuf>,
    /// Count warnings as errors.
    #[arg(long)]
    pub strict: bool,
}

#[derive(Debug, Clone, Args)]
pub struct CacheArgs {
    /// Remove all of it; it is made or fetched again when it is needed.
    #[arg(long)]
    pub clear: bool,
}

#[derive(Debug, Clone, Args)]
pub struct DoctorArgs {
    /// Fetch nothing: what would have to be fetched is a finding.
    #[arg(long, env = "K8TRE_OFFLINE")]
    pub offline: bool,
}

fn environment_name(text: &str) -> Result<EnvName, String> {
    text.parse().map_err(|error: crate::error::Error| {
        let hints: String = error.hints().iter().map(|hint| format!("\n  hint: {hint}")).collect();
        format!("{error}{hints}")
    })
}

/// `KEY=VALUE`, each in the form that Kubernetes labels have.
fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a label is written KEY=VALUE")?;
    if key.is_empty() {
        return Err("a label needs a key: KEY=VALUE".into());
    }
    Ok((key.to_owned(), value.to_owned()))
}

/// `90s`, `10m`, `1h 30m`; a bare number is seconds.
fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let signed: jiff::SignedDuration = text.parse().map_err(|_| "times are written as 90s, 10m or 1h 30m")?;
    Duration::try_from(signed).map_err(|_| "a time cannot be negative".to_owned())
}

/// How long an environment may be there.
pub fn life(text: &str) -> Result<Duration, String> {
    let days = text.trim().strip_suffix('d').and_then(|days| days.trim().parse::<u32>().ok());
    let length = days.map_or_else(|| duration(text), |days| Ok(Duration::from_secs(u64::from(days) * 86_400)))?;
    if (Duration::from_secs(60)..=Duration::from_secs(90 * 24 * 3600)).contains(&length) {
        return Ok(length);
    }
    Err("an environment is meant to be there for at least 1m and at most 90d (2160h)".to_owned())
}

/// `500K`, `20M`, `1G`; a bare number is bytes.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || "sizes are written as 500K, 20M or 1G".to_owned();
    let text = text.trim().trim_end_matches(['b', 'B']).trim_end_matches('i').trim_end();
    let (number, shift) = match text.char_indices().next_back().ok_or_else(wrong)? {
        (end, 'k' | 'K') => (&text[..end], 10),
        (end, 'm' | 'M') => (&text[..end], 20),
        (end, 'g' | 'G') => (&text[..end], 30),
        _ => (text, 0),
    };
    number.trim_end().parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [("10", 10), ("5M", 5 << 20), ("5 MiB", 5 << 20), ("500k", 500 << 10), ("1GB", 1 << 30)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "-1", "5X", "99999999999G", "large", "1.5M"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(duration("1h 30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(life("3d"), Ok(Duration::from_secs(3 * 86_400)));
        assert!(life("30s").is_err() && life("91d").is_err() && life("d").is_err());
        assert!(duration("soon").is_err());
        assert!(duration("-5m").is_err());
    }
}
