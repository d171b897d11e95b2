//! What `k8tre dev up` takes besides the arguments that say what an environment is. Types only.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::UpArgs;

#[derive(Debug, Clone, Args)]
pub struct UpCommand {
    #[command(flatten)]
    pub up: UpArgs,
    #[command(flatten)]
    pub ephemeral: EphemeralArgs,
}

/// An environment for one job of a CI.
#[derive(Debug, Clone, Args)]
pub struct EphemeralArgs {
    /// For one job of a CI: a name of its own, an end (2h without --ttl), no questions, and removed if it does not come up.
    #[arg(long, help_heading = "CI")]
    pub ephemeral: bool,
    /// Append a table of the Applications with their causes, in Markdown.
    #[arg(long, value_name = "FILE", env = "GITHUB_STEP_SUMMARY", requires = "ephemeral", help_heading = "CI")]
    pub summary: Option<PathBuf>,
    /// Run this at the environment with KUBECONFIG and K8TRE_NAME set, then remove the environment, whatever happened.
    #[arg(last = true, value_name = "COMMAND", requires = "ephemeral", help_heading = "CI")]
    pub command: Vec<OsString>,
}
