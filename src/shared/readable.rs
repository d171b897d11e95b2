//! Whether a shared Argo CD can read the developer's branch: known from what it says of the root Application, before
//! all the others are waited for.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::argocd::side::ArgoCd;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::spec::SharedArgoCd;
use crate::steps::ROOT;
use crate::steps::look::{application_type, is_asked, refresh};
use crate::text::one_line;

/// Argo CD looks at a new Application at once; one that is slow is waited for with all the others.
const LIMIT: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(250);
/// What Argo CD says when a repository wants a login, or another one.
const REFUSALS: [&str; 7] = [
    "authentication required",
    "authorization failed",
    "authentication failed",
    "could not read username",
    "invalid credentials",
    "permission denied",
    "repository not found",
];

/// Waits until the root Application was compared once; an error if its repository wants a login.
pub async fn check(cx: &Context, argocd: &ArgoCd, shared: &SharedArgoCd) -> Result<()> {
    let (root, deadline) = (cx.spec.name.root_application(), Instant::now() + LIMIT);
    cx.detail(ROOT, "waiting until Argo CD has read the branch");
    // What it says from before may have been mended since.
    refresh(argocd, &root).await?;
    while Instant::now() < deadline {
        let found = argocd.get(&application_type(), &root).await?.unwrap_or_default();
        if is_asked(&found) {
            tokio::time::sleep(POLL).await;
            continue;
        }
        if let Some(words) = refusal(&found) {
            return Err(refused(cx, shared, words));
        }
        if found["status"]["sync"]["revision"].as_str().is_some_and(|revision| !revision.is_empty()) {
            return Ok(());
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

/// What an Application says of a repository that wants a login.
fn refusal(app: &Value) -> Option<&str> {
    let conditions = app["status"]["conditions"].as_array().into_iter().flatten();
    let errors = conditions.filter(|condition| condition["type"] == "ComparisonError");
    errors.filter_map(|condition| condition["message"].as_str()).find(|message| {
        let message = message.to_lowercase();
        REFUSALS.iter().any(|words| message.contains(words))
    })
}

fn refused(cx: &Context, shared: &SharedArgoCd, words: &str) -> Error {
    let (url, name) = (cx.spec.source.url(), &cx.spec.name);
    let error = Error::failed(format!("the Argo CD in {} cannot read {url}", shared.place()))
        .detail(one_line(&crate::ports::git::redacted(words), 400));
    match shared.repo_credentials {
        false => error
            .hint(format!("give it your login, for this environment alone: k8tre dev up {name} --repo-credentials git"))
            .hint("or from a file that holds a token: --repo-credentials FILE"),
        true => error.hint(format!(
            "the login that it was given is refused; another one: k8tre dev up {name} --repo-credentials FILE"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_repository_that_wants_a_login_is_said_to() {
        let app = |kind: &str, message: &str| json!({"status": {"conditions": [{"type": kind, "message": message}]}});
        let denied = "Failed to load target state: rpc error: code = Unknown desc = authentication required: Repository not found.";
        assert!(refusal(&app("ComparisonError", denied)).is_some());
        assert!(refusal(&app("SyncError", denied)).is_none());
        assert!(refusal(&app("ComparisonError", "app path does not exist")).is_none());
    }
}
