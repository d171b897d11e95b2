//! The hermetic tests: no Docker, no cluster, no network but loopback.

mod engine;
mod journal;
