//! Asking Argo CD to look again: its own next look can be minutes away.

use serde_json::{Value, json};

use crate::argocd::side::ArgoCd;
use crate::error::Result;
use crate::ports::kube::Type;

const REFRESH: &str = "argocd.argoproj.io/refresh";
const REGENERATE: &str = "argocd.argoproj.io/application-set-refresh";

pub fn application_type() -> Type {
    Type::new("argoproj.io/v1alpha1", "Application")
}

pub fn application_set_type() -> Type {
    Type::new("argoproj.io/v1alpha1", "ApplicationSet")
}

/// Has an Application compared with git now.
pub async fn refresh(argocd: &ArgoCd, application: &str) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {REFRESH: "normal"}}});
    argocd.merge(&application_type(), application, &patch).await
}

/// The same, and has it synced at once.
pub async fn begin(argocd: &ArgoCd, application: &str, operation: &Value) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {REFRESH: "normal"}}, "operation": operation});
    argocd.merge(&application_type(), application, &patch).await
}

/// Whether Argo CD has yet to answer: it takes the annotation away with the look that it asked for.
pub fn is_asked(application: &Value) -> bool {
    application["metadata"]["annotations"][REFRESH].is_string()
}

/// Has an ApplicationSet's generators looked at now.
pub async fn regenerate(argocd: &ArgoCd, set: &str) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {REGENERATE: "true"}}});
    argocd.merge(&application_set_type(), set, &patch).await
}

/// Whether what was to be changed is not there.
pub fn is_absent(result: &Result<()>) -> bool {
    result.as_ref().is_err_and(|error| error.to_string().contains("not found"))
}

/// What is to be refreshed may have been replaced since it was listed.
pub fn ignore_absent(result: Result<()>) -> Result<()> {
    if is_absent(&result) { Ok(()) } else { result }
}
