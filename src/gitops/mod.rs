//! GitOps repositories: read, predicted, overlaid. Pure: nothing here talks to the world.

pub mod tree;
