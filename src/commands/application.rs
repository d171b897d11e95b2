//! An Application that a person names, with or without the environment's suffix.

use std::time::Duration;

use serde_json::Value;

use crate::argocd::side::{self, ArgoCd};
use crate::commands::{App, select};
use crate::error::{Error, Result, ResultExt};
use crate::names::EnvName;
use crate::ports::kube::Kube;
use crate::steps::look::application_type;
use crate::text::nearest;

/// Finding things out in a cluster takes no longer, whatever it answers.
const FIND_LIMIT: Duration = Duration::from_secs(15);

/// Argo CD's side and the environment's cluster, for streams that last.
pub async fn sides(app: &App, name: &EnvName) -> Result<(ArgoCd, Kube)> {
    let journal = select::journal_of(app, name)?;
    let kubeconfig = app.dirs.kubeconfig(name.as_str());
    side::open_for_streams(&journal.spec, &kubeconfig).await.hint(format!("k8tre dev up {name}"))
}

/// A connection for streams has no limits of its own.
pub async fn answer<T>(name: &EnvName, question: impl Future<Output = Result<T>>) -> Result<T> {
    let answered = tokio::time::timeout(FIND_LIMIT, question).await;
    answered
        .unwrap_or_else(|_| Err(Error::failed("the cluster does not answer")))
        .hint(format!("k8tre dev status {name}"))
}

pub async fn find(argocd: &ArgoCd, name: &EnvName, word: &str) -> Result<Value> {
    let of = application_type();
    for full in [word.to_owned(), format!("{word}-{name}")] {
        if let Some(found) = argocd.get(&of, &full).await? {
            return Ok(found);
        }
    }
    let all = argocd.list(&of, "").await?;
    let mut names: Vec<&str> = all.iter().filter_map(|app| app["metadata"]["name"].as_str()).collect();
    names.sort_unstable();
    let shown: String = crate::text::one_line(word, 60);
    let error = Error::usage(format!("{name} has no Application {shown}"));
    let suffix = format!("-{name}");
    Err(match nearest(word, names.iter().map(|name| name.trim_end_matches(&suffix))) {
        Some(nearest) => error.hint(format!("did you mean {nearest}{suffix}?")),
        _ if names.is_empty() => error.hint(format!("Argo CD has no Applications yet: k8tre dev status {name}")),
        _ => error.hint(format!("there are: {}", crate::text::one_line(&names.join(", "), 300))),
    })
}
