//! k8tre: one command from a clone of a K8TRE repository to a healthy environment.
//!
//! `docs/architecture.md` is the map.

pub mod engine;
pub mod error;
pub mod gitops;
pub mod names;
pub mod ports;
pub mod sample;
pub mod text;
