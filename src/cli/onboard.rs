//! Arguments of `k8tre onboard`. Types only.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::UpArgs;

pub(super) const ONBOARD_EXAMPLES: &str = "Examples:
  k8tre onboard                              questions, each with a default
  k8tre onboard --sample --yes               the sample TRE, without a question
  k8tre onboard alice --clone https://github.com/alice/k8tre.git
  k8tre onboard --repo . --skip jupyterhub   only the other questions are asked

Nothing but a clone is made before you have seen the plan and said yes.
Interrupted, it goes on with the same command.";

#[derive(Debug, Clone, Args)]
pub struct OnboardArgs {
    #[command(flatten)]
    pub up: UpArgs,
    /// Clone this TRE repository, such as your fork, and use the clone.
    #[arg(long, value_name = "URL", conflicts_with_all = ["repo", "sample"], help_heading = "What to deploy")]
    pub clone: Option<String>,
    /// Where the clone goes [default: a folder of the repository's name, here].
    #[arg(long, value_name = "FOLDER", requires = "clone", help_heading = "What to deploy")]
    pub folder: Option<PathBuf>,
    /// Where answers are kept for other environments [default: nowhere; this environment remembers its own].
    #[arg(long, value_enum, value_name = "FILE", help_heading = "This run")]
    pub settings: Option<SettingsFile>,
    /// Stop when the environment is healthy, without the first edit.
    #[arg(long, help_heading = "This run")]
    pub no_edit: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SettingsFile {
    /// In no file.
    None,
    /// In your own config.toml.
    User,
    /// In k8tre.toml of the repository.
    Repository,
}
