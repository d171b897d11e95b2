//! What has expired or is orphaned on this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use jiff::Timestamp;

use super::{Candidate, Found, LeftAlone, What};
use crate::cli::{DownArgs, NameArgs};
use crate::commands::{App, down};
use crate::error::{Error, Result};
use crate::expiry;
use crate::journal;
use crate::names::EnvName;
use crate::ports::docker::Docker;
use crate::ports::git::{Checkout, Owner, Removal};
use crate::providers::kind::{self, OwnedNode, find_all_owned};
use crate::sample;

const HERE: &str = "this machine";

/// A cluster whose environment is recorded nowhere here.
pub struct Unrecorded {
    name: EnvName,
    id: String,
}

/// A branch of k8tre's without anything else of its environment.
pub struct LoneBranch {
    repo: PathBuf,
    owner: Owner,
}

/// Ids of environments.
pub type Ids = BTreeSet<String>;

/// The environments that there is something of here.
#[derive(Default)]
pub struct Known {
    /// Those with a journal: `down` takes back all that they have, wherever that is.
    pub recorded: Ids,
    /// Those with a cluster on this Docker.
    pub clusters: Ids,
}

/// Environments that are recorded here, and clusters with k8tre's mark.
pub async fn look(app: &App, unrecorded: bool, now: Timestamp, found: &mut Found) -> Result<Known> {
    let mut known = Known::default();
    let mut names = BTreeSet::new();
    for name in journal::names(&app.dirs)? {
        names.insert(name.to_string());
        let saved = match journal::read(&app.dirs, &name) {
            Ok(Some(saved)) => saved,
            Ok(None) => continue,
            Err(error) => {
                leave(found, &name, error.to_string());
                continue;
            }
        };
        known.recorded.insert(saved.id);
        if let Some(expires) = saved.spec.expires.filter(|expires| expiry::is_over(Some(*expires), now)) {
            found.candidates.push(Candidate {
                name: name.to_string(),
                place: HERE.into(),
                reason: expiry::shown(expires, now),
                what: What::Environment(name),
            });
        }
    }
    let docker = match Docker::open().await {
        Ok(docker) => docker,
        Err(error) => {
            app.ui.warn(&format!("clusters were not looked at: {error}"));
            found.blind = true;
            return Ok(known);
        }
    };
    let mut clusters: BTreeMap<(String, String), OwnedNode> = BTreeMap::new();
    for node in find_all_owned(&docker).await? {
        clusters.entry((node.owner.environment.clone(), node.owner.id.clone())).or_insert(node);
    }
    for ((environment, id), node) in clusters {
        known.clusters.insert(id.clone());
        if known.recorded.contains(&id) {
            continue;
        }
        let Ok(name) = environment.parse::<EnvName>() else { continue };
        if names.contains(&environment) {
            let cluster = &node.cluster;
            leave(
                found,
                &name,
                format!(
                    "its cluster is of another making than the one recorded here; if nobody needs it: kind delete cluster --name {cluster}"
                ),
            );
            continue;
        }
        let expires = kind::expiry::expiry(&docker, &node).await?;
        let reason = match expires {
            Some(expires) if expiry::is_over(Some(expires), now) => {
                format!("{}; recorded nowhere here", expiry::shown(expires, now))
            }
            _ if unrecorded => format!("recorded nowhere here; its node is {}", node.state),
            Some(expires) => {
                leave(
                    found,
                    &name,
                    format!("recorded nowhere here, {}; --unrecorded takes it too", expiry::shown(expires, now)),
                );
                continue;
            }
            None => {
                leave(
                    found,
                    &name,
                    "recorded nowhere here, and perhaps another person's; --unrecorded takes it too".into(),
                );
                continue;
            }
        };
        found.candidates.push(Candidate {
            name: environment,
            place: format!("Docker, cluster {}", node.cluster),
            reason,
            what: What::Cluster(Unrecorded { name, id }),
        });
    }
    Ok(known)
}

fn leave(found: &mut Found, name: &EnvName, why: String) {
    found.left_alone.push(LeftAlone { name: name.to_string(), why });
}

/// Branches whose environments are not among the known ones, in the repositories that are known here.
pub async fn branches(app: &App, known: &Ids, now: Timestamp, found: &mut Found) -> Result<()> {
    if found.blind {
        return Ok(());
    }
    let mut repositories: BTreeSet<PathBuf> = BTreeSet::new();
    let journals = journal::names(&app.dirs)?.into_iter();
    repositories.extend(journals.filter_map(|name| Some(journal::read(&app.dirs, &name).ok()??.spec.repo)));
    repositories.insert(sample::default_folder(&app.dirs));
    repositories.extend(std::env::current_dir().ok());
    let opened = repositories.iter().filter_map(|repo| Checkout::open(repo).ok());
    // Several folders may be of one work tree.
    let opened: BTreeMap<PathBuf, Checkout> = opened.map(|one| (one.root().to_owned(), one)).collect();
    for (repo, checkout) in opened {
        for branch in checkout.branches()?.into_iter().filter(|branch| branch.starts_with("dev/")) {
            let Some(owner) = orphan(&checkout, &branch, known, now).await? else { continue };
            found.candidates.push(Candidate {
                name: branch,
                place: repo.display().to_string(),
                reason: format!("neither a journal nor a cluster of {} ({}) is here", owner.name, owner.id),
                what: What::Branch(LoneBranch { repo: repo.clone(), owner }),
            });
        }
    }
    Ok(())
}

/// Whose a branch was, if nobody needs it any more and nobody's work would be lost with it.
async fn orphan(checkout: &Checkout, branch: &str, known: &Ids, now: Timestamp) -> Result<Option<Owner>> {
    let Some(tip) = checkout.tip(branch)? else { return Ok(None) };
    let Some(owner) = checkout.owner(tip)?.filter(|owner| owner.name.branch() == branch) else { return Ok(None) };
    let end = checkout.trailer(tip, expiry::TRAILER)?.and_then(|end| end.parse().ok());
    let lives = end.is_some() && !expiry::is_over(end, now);
    if lives || known.contains(&owner.id) || !checkout.is_by_this_person(tip).await? {
        return Ok(None);
    }
    Ok(checkout.kept_because(branch, &owner).await?.is_none().then_some(owner))
}

/// As `down` does, if it has expired still.
pub async fn environment(app: &App, name: &EnvName) -> Result<Option<String>> {
    let saved = journal::read(&app.dirs, name)?;
    match saved {
        None => Ok(None),
        Some(saved) if !expiry::is_over(saved.spec.expires, Timestamp::now()) => {
            Ok(Some("it was extended meanwhile".into()))
        }
        Some(_) => take_down(app, name).await,
    }
}

/// As `down` does without a journal.
pub async fn cluster(app: &App, cluster: &Unrecorded) -> Result<Option<String>> {
    if journal::names(&app.dirs)?.contains(&cluster.name) {
        return Ok(Some("it is recorded here meanwhile".into()));
    }
    let nodes = find_all_owned(&Docker::open().await?).await?;
    if !nodes.iter().any(|node| node.owner.id == cluster.id) {
        return Ok(None);
    }
    take_down(app, &cluster.name).await
}

async fn take_down(app: &App, name: &EnvName) -> Result<Option<String>> {
    let args = DownArgs {
        name: NameArgs::default(),
        all: false,
        keep_branch: false,
        unreachable_is_gone: false,
        dry_run: false,
        yes: true,
    };
    match down::down(app, &args, name).await? {
        (_, 0) => Ok(None),
        (audit, _) => {
            let left: Vec<&str> = audit.left.iter().map(|left| left.what.as_str()).collect();
            Err(Error::failed(format!("{name} is not gone")).detail(left.join("\n")))
        }
    }
}

impl LoneBranch {
    pub async fn remove(&self) -> Result<Option<String>> {
        let checkout = Checkout::open(&self.repo)?;
        checkout.forget_kept(&self.owner.name)?;
        match checkout.delete_branch(&self.owner.name.branch(), &self.owner).await? {
            Removal::Deleted(_) | Removal::Absent => Ok(None),
            Removal::Kept(why) => Ok(Some(why)),
        }
    }
}
