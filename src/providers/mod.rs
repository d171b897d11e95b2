//! What makes the cluster of an environment.

pub mod kind;

use std::fmt;

/// What a provider finds under a cluster's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterState {
    Absent,
    Running,
    /// All nodes are there, and at least one does not run: which, and why not.
    Stopped(String),
    /// Ours, but its creation was not finished: what is wrong with it.
    Partial(String),
    /// Not ours: what shows it. Never changed, never deleted.
    Foreign(String),
}

impl fmt::Display for ClusterState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClusterState::Absent => f.write_str("absent"),
            ClusterState::Running => f.write_str("running"),
            ClusterState::Stopped(why) => write!(f, "stopped: {why}"),
            ClusterState::Partial(why) => write!(f, "not whole: {why}"),
            ClusterState::Foreign(why) => write!(f, "not ours: {why}"),
        }
    }
}
