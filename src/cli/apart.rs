//! The command line of what sets one Application apart from the others. Types only.

use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::completion;

use super::NameFlag;
use super::values::duration;

pub(super) const USE_EXAMPLES: &str = "Examples:
  k8tre dev use portal --branch feature-x   its folder as that branch has it now
  k8tre dev use portal --branch feature-x   again, when the branch went on
  k8tre dev use portal --repo https://git.example.org/bob/tre.git --branch page
  k8tre dev use portal --reset              the base's folder again

The Application's folder on your branch is replaced by a commit; its folder envs/dev-NAME stays yours.";

pub(super) const HOLD_EXAMPLES: &str = "Examples:
  k8tre dev hold portal             for two hours
  k8tre dev hold portal --for 30m   again, from now on: it replaces the other
  k8tre dev release portal          the end, and a sync

Argo CD goes on comparing the Application with git, and a sync that you ask for in its UI works.";

#[derive(Debug, Clone, Args)]
pub struct HoldArgs {
    /// The Application, with or without the environment's suffix.
    #[arg(value_name = "APP", add = ArgValueCompleter::new(completion::applications))]
    pub app: String,
    #[command(flatten)]
    pub name: NameFlag,
    /// How long, as 30m or 4h, at most 24h; rounded up to minutes.
    #[arg(long = "for", value_name = "TIME", default_value = "2h", value_parser = hold_time)]
    pub length: Duration,
}

#[derive(Debug, Clone, Args)]
pub struct ReleaseArgs {
    /// The Application, with or without the environment's suffix.
    #[arg(value_name = "APP", add = ArgValueCompleter::new(completion::applications))]
    pub app: String,
    #[command(flatten)]
    pub name: NameFlag,
}

#[derive(Debug, Clone, Args)]
pub struct UseArgs {
    /// The Application, with or without the environment's suffix.
    #[arg(value_name = "APP", add = ArgValueCompleter::new(completion::applications))]
    pub app: String,
    #[command(flatten)]
    pub name: NameFlag,
    /// The branch: a local one, else origin's.
    #[arg(long, value_name = "BRANCH", required_unless_present_any = ["repo", "reset"])]
    pub branch: Option<String>,
    /// Address or folder of another repository; without --branch, what is checked out there.
    #[arg(long, value_name = "URL")]
    pub repo: Option<String>,
    /// The base's files again.
    #[arg(long, conflicts_with_all = ["branch", "repo"])]
    pub reset: bool,
    /// How long to wait for a healthy Application, as 90s or 10m.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration, env = "K8TRE_TIMEOUT")]
    pub timeout: Duration,
}

/// A time as above, of which a hold can last that long.
fn hold_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        time if time.is_zero() => Err("a hold lasts at least a minute; the end of one: k8tre dev release".to_owned()),
        time if time > Duration::from_secs(24 * 3600) => {
            Err("a hold lasts at most 24h, so that it is not forgotten; hold again when it has ended".to_owned())
        }
        time => Ok(time),
    }
}
