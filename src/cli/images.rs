//! Arguments of `k8tre images`. Types only.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::UpArgs;

pub(super) const IMAGES_EXAMPLES: &str = "Examples:
  k8tre images list --sample           what it needs, and what of it is here
  k8tre images save tre.tar --sample   all of it, as one file
  k8tre dev up --sample --offline --bundle tre.tar   there, without a network";

#[derive(Debug, Subcommand)]
pub enum Images {
    /// The images and files that an environment needs, whether they are here, and what cannot be known.
    #[command(
        visible_alias = "ls",
        after_help = "Examples:\n  k8tre images list\n  k8tre images list --sample -o json"
    )]
    List(Box<UpArgs>),
    /// Write all that an environment needs into one file, each part with its SHA-256.
    #[command(
        after_help = "Examples:\n  k8tre images save tre.tar\n  k8tre images save tre.tar alice --skip jupyterhub"
    )]
    Save(Box<ImagesSaveArgs>),
    /// Verify such a file, and bring what is in it into this machine's Docker and cache.
    #[command(after_help = "Example:\n  k8tre images load tre.tar")]
    Load {
        /// The file that `k8tre images save` wrote.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

#[derive(Debug, Clone, Args)]
pub struct ImagesSaveArgs {
    /// The file to write; it is there when it is whole.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Leave out images of Applications that cannot be had, and say which.
    #[arg(long)]
    pub allow_missing: bool,
    #[command(flatten)]
    pub up: UpArgs,
}
