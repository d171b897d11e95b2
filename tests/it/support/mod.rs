//! Fakes of the world, shared by all tests.

pub mod desk;
pub mod fake_cluster;
pub mod fake_docker;
pub mod fake_kind;
pub mod gate;
pub mod git_exec;
pub mod http;
pub mod pod_port;
pub mod store;
pub mod tools;
