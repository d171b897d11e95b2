//! The inner loop: the work tree as it is, brought to the cluster without a commit of the user's.
//!
//! The files become a tree, are merged with the developer's branch, get k8tre's overlay, and are pushed as a commit
//! on top of the branch to the git server in the cluster. The branch itself stays where it is. Then only those
//! Applications look again that read what changed.

pub mod live;
mod operation;
pub mod watch;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;

use crate::context::Context;
use crate::error::{Error, Result, ResultExt};
use crate::gitops::touched::{Touched, touched};
use crate::journal::Synced;
use crate::overlay::{Deployed, completion};
use crate::ports::git::{Checkout, CommitId, Lease, TreeId};
use crate::steps::{branch, objects, publish};

/// Files larger than this are no manifests, unless the user says so.
pub const SIZE_LIMIT: u64 = 5 << 20;

/// What the git server is to have instead of what it has.
pub struct Change {
    pub commit: CommitId,
    /// Tip of the branch.
    pub tip: CommitId,
    /// Files that differ from what the server has.
    pub files: Vec<String>,
    pub touched: Touched,
    pub deployed: Deployed,
    /// The root Application, where that changes.
    root_application: Option<Value>,
    /// What is not a file of this repository, and was left out.
    pub left_out: Vec<String>,
    /// Time that it took to read the work tree, and to make the commit of it.
    pub took: Duration,
}

impl Change {
    /// Whether the server is to have the branch's own tip.
    pub fn is_branch(&self) -> bool {
        self.commit == self.tip
    }

    /// Names of the Applications that have to show the change.
    pub fn applications(&self, cx: &Context) -> BTreeSet<String> {
        let root = self.touched.root.then(|| cx.spec.name.root_application());
        self.touched.applications.iter().cloned().chain(root).collect()
    }
}

/// What is deployed, kept between syncs: reading it again takes longer than the rest of a small change.
#[derive(Default)]
pub struct Memory {
    deployed: Option<(TreeId, Deployed)>,
}

/// What a sync brings to the cluster: the work tree, or with `reset` the branch alone. None when the server has
/// that already.
pub async fn change(cx: &Context, memory: &mut Memory, limit: u64, reset: bool) -> Result<Option<Change>> {
    let began = Instant::now();
    let checkout = Checkout::open(&cx.spec.repo)?;
    let (name, branch) = (&cx.spec.name, cx.spec.name.branch());
    let published = cx.facts().published;
    let published = published.ok_or_else(|| not_up(cx, "nothing of the environment was published yet"))?;
    let tip = branch::tip(cx, &checkout)?;
    let branch_tree = checkout.tree_id(tip)?;

    let range = cx.address_range().await;
    let cluster = cx.cluster_name();
    let (tree, left_out) = match reset {
        true => (branch_tree, Vec::new()),
        false => {
            let work = checkout.snapshot(limit).await?;
            let merged = checkout.merge(work.tree, &branch, tip)?;
            let base = checkout.tree(checkout.resolve(&cx.spec.base)?)?;
            let files = checkout.files(merged)?;
            let (files, remove) = completion(&cx.spec, &cluster, range.clone(), &files, &base)?;
            (checkout.overlaid(merged, &files, &remove)?, work.left_out)
        }
    };
    let before: CommitId = published.parse()?;
    if !checkout.has(before)? {
        return Err(not_up(cx, &format!("commit {}, which the git server has, is not here any more", before.short())));
    }
    let before = checkout.tree_id(before)?;
    let same_branch = published == tip.to_string() || cx.facts().synced.is_some_and(|s| s.tip == tip.to_string());
    if tree == before && same_branch {
        return Ok(None);
    }
    checkout.check_new_files(branch_tree, tree, limit)?;
    let commit = match tree == branch_tree {
        true => tip,
        false => {
            let message = format!("k8tre: work tree of the environment {name}");
            checkout.commit_work(tree, tip, &message, &branch::owner(cx)).await?
        }
    };
    let files = checkout.changed_paths(before, tree)?;
    let deployed = Deployed::of(&cx.spec, &cluster, range.clone(), checkout.files(tree)?)?;
    let old = match memory.deployed.take() {
        Some((known, deployed)) if known == before => deployed,
        _ => Deployed::of(&cx.spec, &cluster, range, checkout.files(before)?)?,
    };
    let mut touched = touched(&old.side(), &deployed.side(), &files);
    let root_application =
        (old.root_application != deployed.root_application).then(|| deployed.root_application.clone());
    touched.root |= root_application.is_some();
    memory.deployed = Some((before, old));
    Ok(Some(Change { commit, tip, files, touched, deployed, root_application, left_out, took: began.elapsed() }))
}

/// Brings a change to the git server and records it. What comes after this is Argo CD's.
pub async fn publish(cx: &Context, change: &Change) -> Result<()> {
    let checkout = Checkout::open(&cx.spec.repo)?;
    let name = &cx.spec.name;
    if !change.is_branch() {
        checkout.keep(name, change.commit)?;
    }
    // Before the push, so that no look of Argo CD's at the new commit can seem too old.
    let now = Timestamp::now();
    checkout
        .push(&publish::target(cx)?, &name.branch(), change.commit, Lease::Any)
        .await
        .hint(format!("see what is wrong: k8tre dev status {name}; repair it: k8tre dev up {name}"))?;
    let applications = change.applications(cx).into_iter().collect();
    let (commit, tip) = (change.commit.to_string(), change.tip.to_string());
    let synced = (!change.is_branch()).then(|| Synced { commit: commit.clone(), tip, at: now });
    cx.note(|facts| {
        facts.publish_next(&commit, now, applications);
        facts.synced = synced;
    })?;
    if change.is_branch() {
        checkout.forget_kept(name)?;
    }
    if let Some(root) = &change.root_application {
        cx.require_argocd().await?.apply(&objects::owned(root.clone(), &cx.id)).await?;
    }
    Ok(())
}

impl Memory {
    /// The change is deployed: the next one is compared with it.
    pub fn keep(&mut self, checkout: &Checkout, change: Change) -> Result<()> {
        self.deployed = Some((checkout.tree_id(change.commit)?, change.deployed));
        Ok(())
    }
}

fn not_up(cx: &Context, why: &str) -> Error {
    Error::failed(why).hint(format!("bring the environment up first: k8tre dev up {}", cx.spec.name))
}
