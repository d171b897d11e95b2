//! Hermetic tests of what a user would see: one binary, no Docker, no cluster, no network but loopback.

// The tests are the user: they start programs as a shell would.
#![allow(clippy::disallowed_methods)]

#[path = "../common/made.rs"]
mod made;
mod support;
#[path = "../common/terminal.rs"]
mod terminal;

mod causes;
mod cli_diagnose;
mod cli_input;
mod cli_pause;
mod cli_repair;
mod cli_repository;
mod cli_views;
mod cli_whole;
mod completion;
mod docker;
mod engine;
mod ephemeral;
mod existing;
mod expiry;
mod faults;
mod fetch;
mod generators;
mod git_branch;
mod git_open;
mod git_push;
mod git_rebase;
mod git_snapshot;
mod git_world;
mod guarantees;
mod hold;
mod journal;
mod kind;
mod kind_binary;
mod kind_prepared;
mod lookalikes;
mod onboard;
mod preflight;
mod preflight_more;
mod providers;
mod sample;
mod shared;
mod sync;
mod sync_leaves;
mod use_app;
mod vcluster;
