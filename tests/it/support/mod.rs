//! Fakes of the world, shared by all tests.

pub mod fake_docker;
pub mod fake_kind;
pub mod http;
