//! The command line: types only. What a flag does is written where it is used.

mod apart;
mod doctor;
mod ephemeral;
mod examples;
mod expiry;
mod onboard;
#[cfg(test)]
mod reference;
mod shared;
mod up;
mod values;
mod vcluster;
mod views;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use crate::completion;
use crate::names::EnvName;
use crate::ui::Format;
pub use apart::{HoldArgs, ReleaseArgs, UseArgs};
pub use doctor::DoctorArgs;
pub use ephemeral::{EphemeralArgs, UpCommand};
pub use expiry::{ExtendArgs, GcArgs};
pub use onboard::{OnboardArgs, SettingsFile};
pub use shared::{GcManifestArgs, RbacArgs, Shared, SharedArgs, SharedListArgs, token_ttl};
use up::UP_EXAMPLES;
pub use up::{RunArgs, UpArgs};
use values::{duration, environment_name};
pub use values::{life, size};
pub use vcluster::{Storage, VclusterArgs};
pub use views::{
    DiagnoseArgs, Drawing, GraphArgs, KubeconfigArgs, LogsArgs, NameFlag, OpenArgs, ShellArgs, StatusArgs,
};

/// Developer environments of K8TRE: a cluster, an Argo CD and a branch, from one command.
#[derive(Debug, Parser)]
#[command(name = "k8tre", version, max_term_width = 100, disable_help_subcommand = true, propagate_version = true)]
#[command(
    after_help = "Start here:\n  k8tre onboard             questions, an environment, a first edit\n  k8tre dev up --sample     a small TRE of your own, no account needed\n  k8tre dev status          what is there, what is wrong and why\n  k8tre dev down            remove every trace"
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
    /// Begin here: questions, each with a default, then a healthy environment and a first edit in it.
    #[command(after_help = onboard::ONBOARD_EXAMPLES)]
    Onboard(Box<OnboardArgs>),

    /// Create, look at and remove environments.
    #[command(subcommand, visible_alias = "env", after_help = DEV_GROUPS)]
    Dev(Box<Dev>),

    /// For administrators of an Argo CD that developers' environments share.
    #[command(subcommand)]
    Shared(Shared),

    /// Check a TRE repository offline: each finding with file, line and fix.
    #[command(after_help = examples::LINT)]
    Lint(LintArgs),

    /// Check this machine, its tools and your checkout: each finding with its fix.
    #[command(after_help = doctor::DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),

    /// What k8tre keeps to be quicker next time, and its removal.
    #[command(after_help = examples::CACHE)]
    Cache(CacheArgs),

    /// Write the completion script of a shell to stdout.
    #[command(alias = "completion", after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },

    /// Write manual pages to a folder.
    #[command(after_help = examples::MAN)]
    Man {
        /// The folder; it is made if need be.
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
    #[command(alias = "create", after_help = UP_EXAMPLES)]
    Up(UpCommand),
    /// What is there, what is wrong and why; the exit code tells (0 healthy, 3 not, 4 no such environment).
    #[command(visible_alias = "st", after_help = examples::STATUS)]
    Status(StatusArgs),
    /// Bring the work tree as it is to the cluster, without a commit, and wait until it is live.
    #[command(after_help = SYNC_EXAMPLES)]
    Sync(SyncArgs),
    /// Remove all that an environment made, and prove that nothing is left.
    #[command(visible_alias = "rm", aliases = ["delete", "destroy", "remove"], after_help = examples::DOWN)]
    Down(DownArgs),
    /// Follow the logs of all pods of an Application, new pods included.
    #[command(alias = "log", after_help = examples::LOGS)]
    Logs(LogsArgs),
    /// Open Argo CD's UI or an Application in the browser; connections of its own last until Ctrl-C.
    #[command(after_help = examples::OPEN)]
    Open(OpenArgs),
    /// Start your shell, or a command, with KUBECONFIG and K8TRE_NAME set.
    #[command(alias = "exec", after_help = examples::SHELL)]
    Shell(ShellArgs),
    /// Print the path of the environment's kubeconfig, or merge it into yours.
    #[command(after_help = examples::KUBECONFIG)]
    Kubeconfig(KubeconfigArgs),
    /// Print Argo CD's first admin password.
    #[command(after_help = examples::PASSWORD)]
    Password(NameArgs),
    /// The secrets that the repository lists: their keys, and their values when asked for.
    #[command(alias = "secret", after_help = examples::SECRETS)]
    Secrets(SecretsArgs),
    /// Take one Application's files from another branch, and the rest from the base.
    #[command(after_help = apart::USE_EXAMPLES)]
    Use(UseArgs),
    /// Keep one Application as it is for a time, whatever the branch says; it ends by itself.
    #[command(after_help = apart::HOLD_EXAMPLES)]
    Hold(HoldArgs),
    /// End a hold: the Application follows the branch again.
    #[command(after_help = examples::RELEASE)]
    Release(ReleaseArgs),
    /// All environments of this user on this machine.
    #[command(visible_alias = "ls", after_help = examples::LIST)]
    List,
    /// Stop the cluster's containers; all it holds stays, and its memory is free.
    #[command(alias = "stop", after_help = examples::PAUSE)]
    Pause(NameArgs),
    /// Start a paused environment and wait until it is healthy again.
    #[command(alias = "start", after_help = examples::RESUME)]
    Resume(ResumeArgs),
    /// List and remove what has expired or is orphaned: environments, clusters, branches, registrations.
    #[command(after_help = expiry::GC_EXAMPLES)]
    Gc(GcArgs),
    /// Let an environment that expires be there for longer.
    #[command(after_help = examples::EXTEND)]
    Extend(ExtendArgs),
    /// What `up` would do: the same as `up --dry-run`.
    #[command(after_help = examples::PLAN)]
    Plan(UpArgs),
    /// Offline: which Applications the ApplicationSets would make here, and why not the others.
    #[command(after_help = examples::PREVIEW)]
    Preview(PreviewArgs),
    /// Draw the environment: cluster, Argo CD, branch, ApplicationSets, Applications and causes.
    #[command(alias = "tree", after_help = examples::GRAPH)]
    Graph(GraphArgs),
    /// The last `up` as bars over time: what ran beside what, and where the time went.
    #[command(alias = "timing", after_help = examples::TIMINGS)]
    Timings(NameArgs),
    /// Write one archive for a bug report, with Secrets and tokens left out.
    #[command(after_help = examples::DIAGNOSE)]
    Diagnose(DiagnoseArgs),
}

const DEV_GROUPS: &str = "In groups:
  every day               up, status, sync, down
  into the environment    logs, open, shell, kubeconfig, password, secrets
  one app on its own      use, hold, release
  all environments        list, pause, resume, gc, extend
  before and behind it    plan, preview, graph, timings, diagnose";

const SYNC_EXAMPLES: &str = "Examples:
  k8tre dev sync              what you have edited, live in about a second
  k8tre dev sync --watch      the same after each change, until Ctrl-C
  k8tre dev sync --reset      back to the branch as it is committed

Your files, index, HEAD, stash and branches stay as they are. Files that git ignores stay here.";

#[derive(Debug, Clone, Default, Args)]
pub struct NameArgs {
    /// Name of the environment; without it, the only one there is.
    #[arg(value_name = "NAME", value_parser = environment_name, add = ArgValueCompleter::new(completion::environments))]
    pub environment: Option<EnvName>,

    /// The same as a flag.
    #[arg(long = "name", value_name = "NAME", env = "K8TRE_NAME", value_parser = environment_name, conflicts_with = "environment", add = ArgValueCompleter::new(completion::environments))]
    pub name: Option<EnvName>,
}

impl NameArgs {
    pub fn get(&self) -> Option<&EnvName> {
        self.environment.as_ref().or(self.name.as_ref())
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
    /// Take a shared Argo CD, or a cluster that carries this one, for gone with all that was in it, if it does not answer.
    #[arg(long)]
    pub unreachable_is_gone: bool,
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
    #[arg(long, value_name = "CONTEXT", add = ArgValueCompleter::new(completion::contexts))]
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_an_example() {
        fn without(command: &clap::Command, path: &str, found: &mut Vec<String>) {
            let inner: Vec<_> = command.get_subcommands().filter(|command| !command.is_hide_set()).collect();
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            if inner.is_empty() && !help.contains("k8tre ") {
                found.push(path.to_owned());
            }
            // Broken in the middle, an example cannot be pasted.
            found.extend(help.lines().filter(|line| line.starts_with("  ") && line.len() > 80).map(str::to_owned));
            inner.into_iter().for_each(|command| without(command, &format!("{path} {}", command.get_name()), found));
        }
        let mut found = Vec::new();
        without(&Cli::command(), "k8tre", &mut found);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_newcomer_reads_first_what_is_needed_first() {
        let cli = Cli::command();
        let dev = cli.find_subcommand("dev").unwrap();
        let names: Vec<&str> = dev.get_subcommands().map(clap::Command::get_name).collect();
        assert_eq!(names[..4], ["up", "status", "sync", "down"]);
        // The groups below the list name each command once, in the list's order.
        let groups = dev.get_after_help().unwrap().to_string();
        let grouped: Vec<&str> = groups
            .lines()
            .filter_map(|line| line.strip_prefix("  ")?.split_once("  "))
            .flat_map(|(_, line)| line.trim().split(", "))
            .collect();
        assert_eq!(grouped, names);
    }
}
