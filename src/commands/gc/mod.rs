//! `k8tre dev gc`: what has expired or is orphaned, listed with the reason, then removed as `down` removes it.

mod hosted;
mod local;
mod places;
mod registrations;
mod remote;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;

use crate::cli::GcArgs;
use crate::commands::App;
use crate::error::{Error, Kind, Result};
use crate::report::{SCHEMA, table};
use places::Places;

const AGAIN: &str = "k8tre dev gc";

/// Something that nobody needs any more, as far as its marks tell.
struct Candidate {
    name: String,
    /// Where it is.
    place: String,
    reason: String,
    what: What,
}

enum What {
    /// Recorded on this machine.
    Environment(crate::names::EnvName),
    /// A cluster of k8tre's that is recorded nowhere here.
    Cluster(local::Unrecorded),
    Branch(local::LoneBranch),
    RemoteBranch(remote::RemoteBranch),
    Registration(Box<registrations::Visit>),
    /// On a cluster that carries it.
    Vcluster(Box<hosted::Abandoned>),
}

impl What {
    fn kind(&self) -> &'static str {
        match self {
            What::Environment(_) => "environment",
            What::Cluster(_) => "cluster",
            What::Branch(_) => "branch",
            What::RemoteBranch(_) => "remote branch",
            What::Registration(_) => "registration",
            What::Vcluster(_) => "vcluster",
        }
    }
}

impl What {
    /// The id of the environment that is registered.
    fn registered(&self) -> Option<&str> {
        match self {
            What::Registration(visit) => Some(visit.id()),
            _ => None,
        }
    }

    /// The id of the environment that a remote's branch is of.
    fn branch_of(&self) -> Option<&str> {
        match self {
            What::RemoteBranch(branch) => Some(branch.id()),
            _ => None,
        }
    }
}

/// What stays, and why.
#[derive(Debug, Serialize)]
struct LeftAlone {
    name: String,
    why: String,
}

/// All that was found, in the order in which it is removed.
#[derive(Default)]
struct Found {
    candidates: Vec<Candidate>,
    left_alone: Vec<LeftAlone>,
    /// Docker did not answer, so that nobody knows which branches have a cluster.
    blind: bool,
}

#[derive(Serialize)]
struct Row<'a> {
    kind: &'static str,
    name: &'a str,
    place: &'a str,
    reason: &'a str,
    /// `listed`, `removed`, `kept` or `failed`.
    outcome: &'static str,
    /// What is left of it, or why it stays.
    #[serde(skip_serializing_if = "String::is_empty")]
    detail: String,
}

pub async fn run(app: &App, args: &GcArgs) -> Result<u8> {
    collect(app, args).await.map_err(|error| error.way_on(AGAIN))
}

async fn collect(app: &App, args: &GcArgs) -> Result<u8> {
    let places = Places::of(args)?;
    let found = tokio::select! {
        biased;
        () = app.cancel.cancelled() => return Err(Error::interrupted()),
        found = look(app, args, &places) => found?,
    };
    let rows = found.candidates.iter();
    let rows = rows.map(|one| vec![one.what.kind().into(), one.name.clone(), one.place.clone(), one.reason.clone()]);
    if !app.ui.is_json() && !found.candidates.is_empty() {
        app.ui.data(&table(&["WHAT", "NAME", "WHERE", "WHY"], rows));
    }
    for one in &found.left_alone {
        app.ui.say(&format!("left alone: {}: {}", one.name, one.why));
    }
    if found.candidates.is_empty() {
        app.ui.say("nothing has expired, and nothing is orphaned");
    }
    if !args.dry_run && !args.yes && !found.candidates.is_empty() {
        let question = format!("Remove {}?", counted(found.candidates.len()));
        if !app.ui.confirm(&question, "--yes")? {
            return Err(Error::interrupted());
        }
    }
    let (mut rows, mut failed, mut in_use) = (Vec::new(), false, BTreeSet::new());
    for one in &found.candidates {
        let (outcome, detail) = match args.dry_run {
            true => ("listed", String::new()),
            // Somebody may have moved the end meanwhile.
            false if one.what.branch_of().is_some_and(|id| in_use.contains(id)) => {
                ("kept", "its environment is still there".to_owned())
            }
            false => remove(app, one).await?,
        };
        if let (Some(id), "kept" | "failed") = (one.what.registered(), outcome) {
            in_use.insert(id);
        }
        failed |= outcome == "failed";
        rows.push(Row {
            kind: one.what.kind(),
            name: &one.name,
            place: &one.place,
            reason: &one.reason,
            outcome,
            detail,
        });
    }
    if app.ui.is_json() {
        app.ui.json(&serde_json::json!({
            "schema": SCHEMA, "dryRun": args.dry_run, "found": rows, "leftAlone": found.left_alone,
        }))?;
    }
    Ok(u8::from(failed))
}

fn counted(number: usize) -> String {
    if number == 1 { "this one".into() } else { format!("these {number}") }
}

async fn look(app: &App, args: &GcArgs, places: &Places) -> Result<Found> {
    let (mut here, now) = (Found::default(), Timestamp::now());
    // In a pod there is no journal, no Docker and no repository.
    let local::Known { recorded, clusters } = match args.in_cluster {
        true => local::Known::default(),
        false => local::look(app, args.unrecorded, now, &mut here).await?,
    };
    let mut known = &recorded | &clusters;
    // Registrations first: Argo CD deletes what it deployed while the cluster is there.
    let mut found = Found { blind: here.blind, ..Found::default() };
    if let Some(place) = &places.argocd {
        known.extend(registrations::look(app, place, args.silent, &recorded, now, &mut found).await?);
    }
    if let Some(carrier) = places.carrier().await? {
        known.extend(hosted::look(&carrier, args.without_end, &recorded, now, &mut found).await?);
    }
    found.candidates.append(&mut here.candidates);
    found.left_alone.append(&mut here.left_alone);
    if !args.in_cluster {
        // Last, when it is known what there is of an environment besides its branch.
        local::branches(app, &known, now, &mut found).await?;
        if let Some(remote) = args.remote.as_deref().filter(|_| !found.blind) {
            let gone = found.candidates.iter().filter_map(|one| one.what.registered());
            let known = &known - &gone.map(str::to_owned).collect();
            remote::look(remote, &known, now, &mut found).await?;
        }
    }
    Ok(found)
}

/// Removes one, and looks whether it is gone. An interruption is an error, anything else an outcome.
async fn remove(app: &App, one: &Candidate) -> Result<(&'static str, String)> {
    let work = async {
        match &one.what {
            What::Environment(name) => local::environment(app, name).await,
            What::Cluster(cluster) => local::cluster(app, cluster).await,
            What::Branch(branch) => branch.remove().await,
            What::RemoteBranch(branch) => branch.remove().await,
            What::Registration(guest) => guest.take_back().await,
            What::Vcluster(one) => one.remove(app).await,
        }
    };
    // `down` listens to the signal itself, and ends in order.
    let done = match &one.what {
        What::Registration(_) | What::Vcluster(_) => tokio::select! {
            biased;
            () = app.cancel.cancelled() => return Err(Error::interrupted()),
            done = work => done,
        },
        _ => work.await,
    };
    let (what, name) = (one.what.kind(), &one.name);
    match done {
        Ok(None) => {
            app.ui.say(&format!("{} {what} {name} is gone", app.ui.tick()));
            Ok(("removed", String::new()))
        }
        Ok(Some(kept)) => {
            app.ui.say(&format!("  kept: {what} {name}: {kept}"));
            Ok(("kept", kept))
        }
        Err(error) if error.kind() == Kind::Interrupted => Err(error),
        // One that cannot be removed is no reason to leave the others.
        Err(error) => {
            let error = match &one.what {
                // Its `down` has said how to go on.
                What::Environment(_) => error,
                _ => error.way_on(AGAIN),
            };
            app.ui.error(&error);
            Ok(("failed", error.to_string()))
        }
    }
}
