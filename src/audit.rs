//! The proof after `down`: looks at the world, not at what was done, and names what is left.

use std::path::Path;

use serde::Serialize;

use crate::context::Context;
use crate::error::Result;
use crate::ports::git::{Checkout, PushTarget, Remains, kept_ref};
use crate::ports::kubeconfig;
use crate::shared::remains;
use crate::shared::{answering, search};
use crate::spec::Source;
use crate::steps::{self, branch};

/// One thing that should not be there any more, and the command that removes it.
#[derive(Debug, Clone, Serialize)]
pub struct Leftover {
    pub what: String,
    pub remove: String,
}

/// What was looked at, what is left, and what stays on purpose.
#[derive(Debug, Default, Serialize)]
pub struct Audit {
    pub checked: Vec<&'static str>,
    pub left: Vec<Leftover>,
    pub kept: Vec<Leftover>,
}

/// What only exists before the removal, and has to be gone after it.
#[derive(Debug, Default)]
pub struct Before {
    pub belongings: Vec<String>,
}

pub async fn before(cx: &Context) -> Before {
    Before { belongings: cx.provider().belongings(cx).await }
}

pub async fn after(cx: &Context, before: &Before) -> Result<Audit> {
    let mut audit = Audit::default();
    cx.provider().audit(cx, &before.belongings, &mut audit).await?;
    users_kubeconfig(cx, &mut audit);
    git(cx, &mut audit).await?;
    remote(cx, &mut audit).await;
    sample(cx, &mut audit).await?;
    shared(cx, &mut audit).await;
    Ok(audit)
}

fn users_kubeconfig(cx: &Context, audit: &mut Audit) {
    audit.checked.push("kubeconfig");
    let name = cx.provider().context(&cx.spec.name);
    if let Ok(users) = kubeconfig::users()
        && kubeconfig::mentions(&name, &users)
    {
        let command = format!("k8tre dev kubeconfig {} --unmerge", cx.spec.name);
        audit.left.push(Leftover { what: format!("context {name} in {}", users.display()), remove: command });
    }
}

async fn git(cx: &Context, audit: &mut Audit) -> Result<()> {
    if !Path::new(&cx.spec.repo).exists() {
        return Ok(());
    }
    audit.checked.push("branch");
    let Ok(checkout) = Checkout::open(&cx.spec.repo) else { return Ok(()) };
    let branch = cx.spec.name.branch();
    let repo = cx.spec.repo.display();
    if checkout.kept(&cx.spec.name)?.is_some() {
        let kept = kept_ref(&cx.spec.name);
        let remove = format!("git -C {repo} update-ref -d {kept}");
        audit.left.push(Leftover { what: format!("reference {kept} in {repo}"), remove });
    }
    if checkout.tip(&branch)?.is_none() {
        return Ok(());
    }
    let entry = |what: String| Leftover { what, remove: format!("git -C {repo} branch -D {branch}") };
    match checkout.kept_because(&branch, &branch::owner(cx)).await? {
        _ if cx.options.keep_branch => audit.kept.push(entry(format!("branch {branch}: --keep-branch"))),
        Some(reason) => audit.kept.push(entry(format!("branch {branch}: {reason}"))),
        None => audit.left.push(entry(format!("branch {branch} in {repo}"))),
    }
    Ok(())
}

/// The branch on the remote that it was published to. A remote that does not answer is named, with the
/// command for later.
async fn remote(cx: &Context, audit: &mut Audit) {
    let Source::Remote { remote, .. } = &cx.spec.source else { return };
    let Ok(checkout) = cx.checkout().await else { return };
    audit.checked.push("remote branch");
    let (branch, repo) = (cx.spec.name.branch(), cx.spec.repo.display());
    let entry = |why: String| Leftover {
        what: format!("branch {branch} on {remote}{why}"),
        remove: format!("git -C {repo} push {remote} --delete {branch}"),
    };
    match checkout.remote_remains(&PushTarget::Remote(remote.clone()), &branch, &branch::owner(cx)).await {
        Ok(Remains::Nothing) => {}
        Ok(_) if cx.options.keep_branch => audit.kept.push(entry(": --keep-branch".into())),
        Ok(Remains::Kept(reason)) => audit.kept.push(entry(format!(": {reason}"))),
        Ok(Remains::Ours(_)) => audit.left.push(entry(String::new())),
        Err(error) => audit.left.push(entry(format!(", perhaps: {error}"))),
    }
}

/// What a shared Argo CD still has, read from there. One that does not answer is named, with the ways to look later.
async fn shared(cx: &Context, audit: &mut Audit) {
    let Some(shared) = cx.spec.argocd.shared() else { return };
    audit.checked.push("shared Argo CD");
    let (name, place) = (&cx.spec.name, shared.place());
    let read = async { remains::Remains::read(cx, &answering(cx).await?).await };
    let remains = match read.await {
        Ok(remains) => remains,
        Err(error) => {
            let what = format!("Applications, AppProjects and cluster Secret of {name} in {place}, perhaps: {error}");
            return audit.left.push(Leftover {
                what,
                remove: format!(
                    "k8tre dev down {name}, once it answers, or --unreachable-is-gone; look: {}",
                    search(shared, name)
                ),
            });
        }
    };
    let kubectl = |kind: &str, object: &str| {
        format!("kubectl --context {} -n {} delete {kind} {object}", shared.context, shared.namespace)
    };
    audit.left.extend(
        remains.named().into_iter().map(|(kind, object)| Leftover {
            what: format!("{kind} {object} in {place}"),
            remove: kubectl(kind, object),
        }),
    );
}

async fn sample(cx: &Context, audit: &mut Audit) -> Result<()> {
    if !cx.spec.sample {
        return Ok(());
    }
    audit.checked.push("sample repository");
    if !cx.spec.repo.exists() {
        return Ok(());
    }
    let repo = cx.spec.repo.display();
    let entry = |what: String| Leftover { what, remove: format!("rm -r {repo}") };
    match steps::sample::kept_because(cx).await? {
        Some(reason) => audit.kept.push(entry(format!("sample TRE in {repo}: {reason}"))),
        None => audit.left.push(entry(format!("sample TRE in {repo}"))),
    }
    Ok(())
}
