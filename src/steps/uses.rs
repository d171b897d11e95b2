//! Folders of the developer's branch that come from other branches, as the spec says: part of the branch's step.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::ports::git::{Checkout, CommitId, Part, redacted};
use crate::spec::Use;
use crate::steps::branch;
use crate::text::one_line;

/// The folder of an Application, without the environment's own env folder in it.
pub struct Folder {
    pub folder: String,
    keep: String,
}

impl Folder {
    pub fn new(cx: &Context, folder: &str) -> Folder {
        Folder { folder: folder.to_owned(), keep: format!("{folder}/envs/{}", cx.spec.name.environment()) }
    }

    pub fn part(&self) -> Part<'_> {
        Part { folder: &self.folder, keep: &self.keep }
    }
}

/// The commit at which the branch left its base: whose files are the base's here.
pub fn origin(cx: &Context, checkout: &Checkout, tip: CommitId) -> Result<CommitId> {
    let base = checkout.resolve(&cx.spec.base)?;
    Ok(checkout.common_ancestor(tip, base)?.unwrap_or(base))
}

/// Applications whose folder is not as the spec says. One that the developer went on with is left to them.
pub fn missing(cx: &Context, checkout: &Checkout) -> Result<Vec<String>> {
    let Some(tip) = checkout.tip(&cx.spec.name.branch())? else { return Ok(Vec::new()) };
    let mut missing = Vec::new();
    for (app, wanted) in &cx.spec.uses {
        let folder = Folder::new(cx, &wanted.folder);
        let commit: CommitId = wanted.commit.parse()?;
        let origin = origin(cx, checkout, tip)?;
        let is_in = match checkout.has(commit)? {
            true => checkout.part_differences(commit, tip, folder.part())?.is_empty(),
            // git has cleaned up since: then only the base's files say that it is not in.
            false => !checkout.part_differences(origin, tip, folder.part())?.is_empty(),
        };
        if !is_in && checkout.own_changes(tip, &[origin, wanted.over.parse()?], folder.part())?.is_empty() {
            missing.push(app.clone());
        }
    }
    Ok(missing)
}

/// Puts them in, a commit each.
pub async fn put(cx: &Context, checkout: &Checkout) -> Result<()> {
    for app in missing(cx, checkout)? {
        let Some(wanted) = cx.spec.uses.get(&app) else { continue };
        let commit: CommitId = wanted.commit.parse()?;
        if !checkout.has(commit)? {
            let again = match &wanted.repo {
                Some(repo) => format!("--repo {} --branch {}", redacted(repo), wanted.branch),
                None => format!("--branch {}", wanted.branch),
            };
            return Err(Error::failed(format!("{app} is to be {}, which is no longer here", source(wanted)))
                .hint(format!("k8tre dev use {app} {again} --name {}", cx.spec.name)));
        }
        let message = match wanted.back {
            true => format!("k8tre: {} as in {}", wanted.folder, wanted.branch),
            false => format!("k8tre: {app} {}", source(wanted)),
        };
        let (branch, owner, folder) = (cx.spec.name.branch(), branch::owner(cx), Folder::new(cx, &wanted.folder));
        checkout.put_part(&branch, &owner, commit, folder.part(), &message).await?;
    }
    Ok(())
}

/// Where an Application's files come from, in words.
pub fn source(used: &Use) -> String {
    let commit = used.commit.get(..8).unwrap_or(&used.commit);
    let of = used.repo.as_deref().map(|repo| format!(" of {}", redacted(repo)));
    one_line(&format!("from branch {}{} at {commit}", used.branch, of.unwrap_or_default()), 300)
}
