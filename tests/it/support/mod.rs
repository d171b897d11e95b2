//! Fakes of the world, shared by all tests.

pub mod access;
pub mod desk;
pub mod existing;
pub mod fake_argocd;
pub mod fake_cluster;
pub mod fake_discovery;
pub mod fake_docker;
pub mod fake_hosts;
pub mod fake_kind;
pub mod gate;
pub mod git_exec;
pub mod http;
pub mod pod_port;
pub mod probe_exec;
pub mod shared;
pub mod store;
pub mod tools;
pub mod vcluster;
