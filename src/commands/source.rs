//! Where Argo CD is to read the branch: settled, and checked before anything is made.

use crate::commands::App;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::gitops::url;
use crate::journal::Journal;
use crate::ports::git::{Checkout, PushTarget, Readable, redacted};
use crate::spec::{Source, Spec};
use crate::steps::{PUBLISH, branch};

/// Gives a remote the address by which Argo CD reads it.
pub async fn settle(spec: &mut Spec, saved: Option<&Journal>, checkout: Option<&Checkout>) -> Result<()> {
    if let Some(saved) = saved.filter(|saved| saved.steps.contains_key(PUBLISH))
        && !same_place(&saved.spec.source, &spec.source)
    {
        return Err(Error::usage(format!("the environment {} was published to another place", spec.name))
            .hint(format!("remove it first: k8tre dev down {}", spec.name)));
    }
    let shared = spec.argocd.shared().is_some();
    let Source::Remote { remote, url: address } = &mut spec.source else { return Ok(()) };
    let checkout = checkout.ok_or_else(|| {
        Error::usage("the sample has no remote").hint(match shared {
            false => "leave --source away: the sample is read from the cluster",
            true => "a shared Argo CD needs a repository with a remote that it can read: --repo PATH",
        })
    })?;
    checkout.check_remote(remote)?;
    if address.is_empty() {
        let own = checkout.remote_address(remote).await?;
        *address = url::public(&own).ok_or_else(|| {
            let error = Error::usage(format!("Argo CD cannot read {} from the cluster", redacted(&own)))
                .hint("give the address that it can read: --repo-url https://…");
            match shared {
                true => error,
                false => error.hint("or let it read from the git server in the cluster: --source cluster"),
            }
        })?;
    }
    Ok(())
}

fn same_place(one: &Source, other: &Source) -> bool {
    match (one, other) {
        (Source::Cluster, Source::Cluster) => true,
        (Source::Remote { remote: one, .. }, Source::Remote { remote: other, .. }) => one == other,
        _ => false,
    }
}

/// Refuses a remote that cannot take the branch, or that Argo CD could not read it from.
pub async fn check(app: &App, cx: &Context, checkout: &Checkout) -> Result<()> {
    let Source::Remote { remote, url } = &cx.spec.source else { return Ok(()) };
    let target = PushTarget::Remote(remote.clone());
    checkout.check_remote_branch(&target, &cx.spec.name.branch(), &branch::owner(cx)).await?;
    match checkout.readable(url).await? {
        Readable::Yes => {}
        Readable::Refused => {
            match cx.spec.argocd.shared() {
                Some(shared) if shared.repo_credentials => return Ok(()),
                Some(_) => {
                    app.ui.warn(&format!(
                        "{url} cannot be read without a login; if the shared Argo CD has none for it, give it yours: --repo-credentials git"
                    ));
                    return Ok(());
                }
                None => {}
            }
            return Err(Error::preflight(format!("{url} cannot be read without credentials, and Argo CD has none"))
                .hint("let it read from the git server in the cluster: --source cluster"));
        }
        Readable::Unknown(why) => {
            app.ui.warn(&format!("from here {url} cannot be read, and perhaps not from the cluster either: {why}"))
        }
    }
    Ok(())
}
