//! The command line of what ends by itself. Types only.

use std::time::Duration;

use clap::Args;

use super::{NameArgs, environment_name, life};
use crate::names::EnvName;

#[derive(Debug, Clone, Args)]
#[command(override_usage = "k8tre dev extend [NAME] <TIME>")]
pub struct ExtendArgs {
    /// Name of the environment, and how much longer, as 4h or 2d; without a name, the only environment there is.
    #[arg(value_name = "NAME TIME", num_args = 1..=2, required = true)]
    words: Vec<String>,
    /// The name as a flag.
    #[arg(long = "name", value_name = "NAME", env = "K8TRE_NAME", value_parser = environment_name)]
    name: Option<EnvName>,
}

impl ExtendArgs {
    /// Which environment, and for how much longer.
    pub fn read(&self) -> Result<(NameArgs, Duration), String> {
        match self.words.as_slice() {
            [name, time] => {
                Ok((NameArgs { environment: Some(environment_name(name)?), name: None }, life(time)?))
            }
            [time] => Ok((NameArgs { environment: None, name: self.name.clone() }, life(time)?)),
            _ => Err("k8tre dev extend [NAME] TIME".to_owned()),
        }
    }
}
