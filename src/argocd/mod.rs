//! Argo CD as k8tre uses it: its manifest made fit for a laptop, and its Applications judged. Pure.

pub mod application;
pub mod held;
pub mod manifest;
pub mod network;
pub mod plugin;
pub mod side;
pub mod source;

/// Namespace that Argo CD is installed in.
pub const NAMESPACE: &str = "argocd";
