//! GitOps repositories: read, predicted, overlaid. Pure: nothing here talks to the world but through a [`tree::Tree`].
//!
//! `repository` reads what the root Application deploys; `predict` says which Applications Argo CD's ApplicationSet
//! controller (v3.6.1) will make of it; `overlay` makes a developer's branch; `lint` and `preset` know K8TRE's habits.

pub mod appset;
mod blocks;
pub mod ci_secrets;
pub mod environment;
pub mod finding;
mod functions;
mod generate;
mod glob;
pub mod kinds;
pub mod kustomize;
pub mod labels;
pub mod lint;
pub mod named;
pub mod overlay;
mod params;
mod patches;
mod plan;
pub mod planned;
pub mod predict;
pub mod preset;
mod reason;
pub mod repository;
pub mod scope;
pub mod selector;
pub mod template;
mod template_patch;
mod templates;
#[cfg(test)]
mod testing;
pub mod touched;
pub mod tree;
pub mod url;
pub mod vendor;
pub mod windows;
pub mod world;
pub mod yaml;
