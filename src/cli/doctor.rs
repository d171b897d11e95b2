//! Arguments of `k8tre doctor`. Types only.

use std::path::PathBuf;

use clap::Args;

use super::NameArgs;

pub(super) const DOCTOR_EXAMPLES: &str = "Examples:
  k8tre doctor            this machine, and the checkout that you are in
  k8tre doctor --sample   what the sample TRE would need
  k8tre doctor --fix      what can be mended safely, each after a question
  k8tre doctor -o json    for scripts

Exit code 5: something stands in the way of `dev up`.";

#[derive(Debug, Clone, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub name: NameArgs,
    /// The TRE repository [default: the one around the current folder].
    #[arg(long, value_name = "PATH", env = "K8TRE_REPO", conflicts_with = "sample")]
    pub repo: Option<PathBuf>,
    /// Check for the embedded sample TRE.
    #[arg(long)]
    pub sample: bool,
    /// Do what mends a finding and harms nobody; each is asked about.
    #[arg(long)]
    pub fix: bool,
    /// Ask nobody on the network; what would have to be fetched is a finding.
    #[arg(long, env = "K8TRE_OFFLINE")]
    pub offline: bool,
    /// Certificates to trust besides the system's when fetching (PEM).
    #[arg(long, value_name = "FILE", env = "K8TRE_CA_BUNDLE")]
    pub ca_bundle: Option<PathBuf>,
    /// Ask nothing.
    #[arg(short = 'y', long)]
    pub yes: bool,
}
