//! Arguments of the commands that look at an environment, or work in it, and change nothing of it.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use super::NameArgs;
use super::values::{duration, environment_name};
use crate::completion;
use crate::names::EnvName;

/// The environment as a flag alone, where the command line's words name something else.
#[derive(Debug, Clone, Default, Args)]
pub struct NameFlag {
    /// Name of the environment; without it, the only one there is.
    #[arg(long = "name", value_name = "NAME", env = "K8TRE_NAME", value_parser = environment_name, add = ArgValueCompleter::new(completion::environments))]
    pub name: Option<EnvName>,
}

impl NameFlag {
    pub fn args(&self) -> NameArgs {
        NameArgs { environment: None, name: self.name.clone() }
    }
}

#[derive(Debug, Clone, Args)]
pub struct StatusArgs {
    #[command(flatten)]
    pub name: NameArgs,
    /// Count an Application that differs from git as unhealthy.
    #[arg(long)]
    pub require_synced: bool,
    /// Keep looking: a live table in a terminal, elsewhere a new block, or JSON document, at each change.
    #[arg(long)]
    pub watch: bool,
}

#[derive(Debug, Clone, Args)]
pub struct KubeconfigArgs {
    #[command(flatten)]
    pub name: NameArgs,
    /// Add the environment's context to your kubeconfig; your current context stays.
    #[arg(long, conflicts_with = "unmerge")]
    pub merge: bool,
    /// Take it out again.
    #[arg(long)]
    pub unmerge: bool,
}

#[derive(Debug, Clone, Args)]
pub struct OpenArgs {
    /// What to open: Applications, with or without the environment's suffix, or argocd; several at once.
    #[arg(value_name = "APP|argocd", default_value = "argocd", add = ArgValueCompleter::new(completion::targets))]
    pub targets: Vec<String>,
    #[command(flatten)]
    pub name: NameFlag,
    /// Local port, where there is one connection to hold [default: a free one].
    #[arg(long)]
    pub port: Option<u16>,
    /// Print the addresses only; open no browser.
    #[arg(long)]
    pub print: bool,
}

#[derive(Debug, Clone, Args)]
pub struct LogsArgs {
    /// The Application, with or without the environment's suffix.
    #[arg(value_name = "APP", add = ArgValueCompleter::new(completion::applications))]
    pub app: String,
    #[command(flatten)]
    pub name: NameFlag,
    /// Last lines of each container to begin with [default: 50; with --since, all].
    #[arg(long, value_name = "LINES")]
    pub tail: Option<u32>,
    /// Only lines newer than this, as 90s or 10m.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub since: Option<Duration>,
    /// Print what there is, in order of time, and end.
    #[arg(long)]
    pub no_follow: bool,
    /// Of each container the last run that ended: what it said before it crashed. Follows nothing.
    #[arg(long)]
    pub previous: bool,
    /// Only containers of this name.
    #[arg(long, value_name = "NAME")]
    pub container: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct ShellArgs {
    #[command(flatten)]
    pub name: NameArgs,
    /// Run this instead of a shell.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

#[derive(Debug, Clone, Args)]
pub struct GraphArgs {
    #[command(flatten)]
    pub name: NameArgs,
    /// A tree for the terminal, or a picture for a document.
    #[arg(long, value_enum, default_value = "tree")]
    pub format: Drawing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Drawing {
    Tree,
    Mermaid,
    Dot,
    Svg,
}

#[derive(Debug, Clone, Args)]
pub struct DiagnoseArgs {
    #[command(flatten)]
    pub name: NameArgs,
    /// Where to write it [default: k8tre-diagnose-NAME-TIME.tar.gz in the current folder].
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}
