//! k8tre: one command from a clone of a K8TRE repository to a healthy environment.
//!
//! `docs/architecture.md` is the map.

pub mod argocd;
pub mod audit;
pub mod bundle;
pub mod capacity;
pub mod causes;
pub mod cli;
pub mod commands;
pub mod completion;
pub mod context;
pub mod engine;
pub mod error;
pub mod expiry;
pub mod gitops;
pub mod journal;
pub mod names;
pub mod needed;
pub mod overlay;
pub mod plan;
pub mod ports;
pub mod preflight;
pub mod prerequisites;
pub mod providers;
pub mod redact;
pub mod report;
pub mod requests;
pub mod sample;
pub mod settings;
pub mod shared;
pub mod spec;
pub mod steps;
pub mod sync;
pub mod text;
pub mod ui;
