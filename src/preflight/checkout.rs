//! The checkout: who commits there, whether the developer's branch has room, remotes, and what `lint` says.

use async_trait::async_trait;

use super::{Check, Context, Fact, Finding};
use crate::error::Result;
use crate::gitops::finding::Severity;
use crate::gitops::lint::lint;
use crate::gitops::repository::Repository as Tre;
use crate::ports::git::Checkout;

pub struct Repository;

#[async_trait]
impl Check for Repository {
    fn name(&self) -> &'static str {
        "the checkout"
    }

    async fn run(&self, cx: &Context) -> Result<Vec<Finding>> {
        let Some(checkout) = &cx.checkout else { return Ok(Vec::new()) };
        let mut findings = Vec::new();
        if let Err(error) = checkout.identity().await {
            findings
                .push(Finding::of("git-identity", &error).why("each environment is a branch with a commit of yours"));
        }
        let branch = cx.meant.as_ref().map_or("dev/NAME", |meant| &meant.branch);
        if let Err(error) = checkout.check_room(branch) {
            findings.push(Finding::of("branch-clash", &error).why("the environment's branch cannot be made"));
        }
        if checkout.remotes()?.is_empty() {
            findings.push(
                Finding::info("no-remote", format!("{} has no remote", checkout.root().display()))
                    .why("what you commit is on this machine only, and a shared Argo CD cannot read it")
                    .fix(format!("git -C {} remote add origin URL", checkout.root().display())),
            );
        }
        findings.extend(linted(checkout)?);
        Ok(findings)
    }

    async fn facts(&self, cx: &Context) -> Vec<Fact> {
        let Some(checkout) = &cx.checkout else { return Vec::new() };
        let mut what = vec![checkout.root().display().to_string()];
        what.extend(checkout.head_branch().map(|branch| format!("on {branch}")));
        for remote in checkout.remotes().unwrap_or_default() {
            if let Ok(address) = checkout.remote_address(&remote).await {
                what.push(format!("{remote} {}", crate::redact::without_user(&address)));
            }
        }
        vec![Fact::new("checkout", what.join(", "))]
    }
}

/// What is checked out, as `k8tre lint` judges it.
fn linted(checkout: &Checkout) -> Result<Option<Finding>> {
    let tree = checkout.tree(checkout.head()?)?;
    // Whether it is a TRE repository at all is said by who needs one.
    let Ok(repository) = Tre::read(&tree) else { return Ok(None) };
    let errors: Vec<_> =
        lint(&repository, &tree).into_iter().filter(|finding| finding.severity == Severity::Error).collect();
    let Some(first) = errors.first() else { return Ok(None) };
    let place = if first.line > 0 { format!("{}:{}", first.file, first.line) } else { first.file.clone() };
    let more = if errors.len() > 1 { format!(" (and {} more)", errors.len() - 1) } else { String::new() };
    Ok(Some(
        Finding::warning("lint", format!("{place}: {}{more}", first.message))
            .why("Argo CD will stumble over it")
            .fix(format!("k8tre lint {}", checkout.root().display())),
    ))
}
