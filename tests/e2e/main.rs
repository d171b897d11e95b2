//! The real thing: k8tre against a real Docker, kind and Argo CD, with nothing mocked.
//!
//! Run through `.ci/run e2e` (or `just e2e`), one test at a time. `docs/contributing.md` says more.

// Tests start programs and read variables directly: the adapters are part of what is tested.
#![allow(clippy::disallowed_methods)]

mod edit;
mod existing;
mod guests;
mod hold;
mod interrupt;
mod janitor;
mod lifecycle;
#[path = "../common/made.rs"]
mod made;
mod neighbours;
mod network;
mod offline;
mod onboard;
mod pair;
mod pause;
mod prediction;
mod refusals;
mod repair;
mod repository;
mod scale;
mod shared;
mod smoke;
mod status;
mod support;
mod sync;
#[path = "../common/terminal.rs"]
mod terminal;
mod vcluster;
