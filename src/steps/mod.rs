//! The steps of an environment, one file each. `plan` puts them together.

use crate::engine::StepId;

pub mod applications;
pub mod argocd;
pub mod branch;
pub mod cluster;
pub mod expiry;
pub mod explain;
pub mod git_server;
pub mod identity;
pub mod images;
pub mod kubeconfig;
pub mod look;
pub mod objects;
pub mod prerequisites;
pub mod project;
pub mod publish;
pub mod publish_remote;
pub mod registration;
pub mod registration_shared;
pub mod repository_access;
pub mod rollout;
pub mod root;
pub mod sample;
pub mod secrets;
pub mod uses;

pub const SAMPLE: StepId = "sample";
pub const CLUSTER: StepId = "cluster";
pub const PREREQUISITES: StepId = "prerequisites";
pub const IMAGES: StepId = "images";
pub const ARGOCD_CONFIG: StepId = "argocd-config";
pub const ARGOCD: StepId = "argocd";
pub const ARGOCD_UI: StepId = "argocd-ui";
pub const GIT_SERVER: StepId = "git-server";
pub const BRANCH: StepId = "branch";
pub const PUBLISH: StepId = "publish";
pub const SECRETS: StepId = "secrets";
pub const IDENTITY: StepId = "identity";
pub const PROJECT: StepId = "project";
pub const REGISTRATION: StepId = "registration";
pub const REPOSITORY_ACCESS: StepId = "repository-access";
pub const ROOT: StepId = "root";
pub const EXPIRY: StepId = "expiry";
pub const APPLICATIONS: StepId = "applications";
pub const KUBECONFIG: StepId = "kubeconfig";
