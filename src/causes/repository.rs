//! The repository that an Application is made from: not answering, refusing, or without that revision or path.

use super::view::View;
use super::words::{group, innermost, pattern, quoted, unreadable};
use super::{Cause, Family};

pub const FAMILY: Family =
    Family { codes: &["revision-missing", "path-missing", "repository-denied", "repository-unreachable"], explain };

/// Argo CD's own part that reads repositories, before all that one can only see through it.
pub const SERVER: Family = Family { codes: &["repo-server-unavailable"], explain: server };

fn server(view: &View) -> Option<Cause> {
    let form = pattern!(r"code = Unavailable desc = connection error|(?:lookup|dial tcp:?) argocd-repo-server");
    let message = view.comparison_errors().find(|message| form.is_match(message))?;
    let cause = Cause::new("repo-server-unavailable").because("Argo CD's repo-server does not answer");
    // Its words stand in quotes, within which the last one is what counts.
    let reason = message.trim_end_matches('"').rsplit(": ").next().unwrap_or(message);
    Some(cause.because(reason).hint("kubectl -n argocd get pods -l app.kubernetes.io/name=argocd-repo-server"))
}

fn explain(view: &View) -> Option<Cause> {
    view.comparison_errors().find_map(|message| {
        let source = &view.app["spec"]["source"];
        let url = source["repoURL"].as_str().unwrap_or("the repository");
        if let Some(revision) = group(pattern!(r"unable to resolve '([^']*)' to a commit SHA"), message) {
            let cause = Cause::new("revision-missing").because(format!("{url} has no branch, tag or commit \"{revision}\""));
            return Some(cause.hint(format!("git ls-remote {}", quoted(url))));
        }
        if message.contains("app path does not exist") {
            let path = group(pattern!(r"(\S+): app path does not exist"), message)?;
            let revision = source["targetRevision"].as_str().unwrap_or("HEAD");
            let cause = Cause::new("path-missing").because(format!("{revision} of {url} has no folder \"{path}\""));
            return Some(cause.hint(format!("git ls-tree -d --name-only {} {}", quoted(revision), quoted(path))));
        }
        let reading = pattern!(r"failed to list refs|failed to fetch|unable to ls-remote|git fetch|failed to initialize repo|repository not (?:found|accessible)|failed to get git client");
        if !reading.is_match(message) {
            return None;
        }
        let denied = pattern!(r"(?i)authentication required|authorization failed|permission denied|could not read username|invalid credentials|host key|handshake failed");
        let (code, hint) = match denied.is_match(message) {
            true => ("repository-denied", "kubectl -n argocd get secrets -l argocd.argoproj.io/secret-type=repository".to_owned()),
            false => ("repository-unreachable", format!("kubectl -n argocd exec deploy/argocd-repo-server -- git ls-remote {}", quoted(url))),
        };
        Some(Cause::new(code).because(unreadable(view.app, message)).because(innermost(message)).hint(hint))
    })
}
