//! Hermetic tests of what a user would see: one binary, no network, no Docker.

mod git_branch;
mod git_open;
mod git_push;
mod git_rebase;
mod git_world;
mod sample;
