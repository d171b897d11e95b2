//! Hermetic tests of what a user would see: one binary, no Docker, no cluster, no network but loopback.

mod causes;
mod engine;
mod git_branch;
mod git_open;
mod git_push;
mod git_world;
mod journal;
