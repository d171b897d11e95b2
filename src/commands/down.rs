//! `k8tre dev down`: remove what is ours, go on past failures, then look whether it is gone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::audit::{self, Audit};
use crate::cli::{DownArgs, UpArgs};
use crate::commands::{App, ground, select};
use crate::context::{Context, Options, Record};
use crate::engine::{Engine, Ledger, StepId};
use crate::error::{Error, Kind, Result};
use crate::journal::{self, Facts, Journal, Lock, Writer};
use crate::names::EnvName;
use crate::ports::docker::Docker;
use crate::ports::git::Checkout;
use crate::providers::kind::find_all_owned;
use crate::report::SCHEMA;
use crate::sample;
use crate::settings::{self, Found};
use crate::shared::answering;
use crate::steps;

/// Docker may be busy with the removal for a while; it is not waited for without end.
const AUDIT_LIMIT: Duration = Duration::from_secs(90);

pub async fn run(app: &App, args: &DownArgs) -> Result<u8> {
    let names = match args.all {
        true => every_name(app).await?,
        false => vec![select::existing_name(app, &args.name)?],
    };
    if names.is_empty() {
        app.ui.say("there is no environment, so there is nothing to remove");
        return Ok(0);
    }
    if !args.all && !args.yes && !args.dry_run {
        leave_behind(app, &names[0])?;
    }
    if args.all && !args.yes && !args.dry_run {
        let list: Vec<&str> = names.iter().map(EnvName::as_str).collect();
        if !app.ui.confirm(&format!("Remove {} environments ({})?", names.len(), list.join(", ")), "--yes")? {
            return Err(Error::interrupted());
        }
    }
    let mut documents = Vec::new();
    let mut worst = None;
    for name in &names {
        match down(app, args, name).await {
            Ok((audit, code)) => {
                documents.push(serde_json::json!({"environment": name, "left": audit.left, "kept": audit.kept}));
                if code != 0 {
                    worst = Some(code);
                }
            }
            Err(error) if error.kind() == Kind::Interrupted || names.len() == 1 => return Err(error),
            // One environment that cannot be removed is no reason to leave the others.
            Err(error) => {
                app.ui.error(&error);
                worst = Some(error.exit_code());
            }
        }
    }
    if app.ui.is_json() {
        app.ui.json(&serde_json::json!({"schema": SCHEMA, "environments": documents}))?;
    }
    Ok(worst.unwrap_or(0))
}

/// Environments that are recorded here. Others that owner marks in Docker tell of may be somebody
/// else's: they are named, and removed only by name.
async fn every_name(app: &App) -> Result<Vec<EnvName>> {
    let names = journal::names(&app.dirs)?;
    if let Ok(docker) = Docker::open().await {
        let mut others: Vec<String> =
            find_all_owned(&docker).await?.into_iter().map(|node| node.owner.environment).collect();
        others.retain(|other| !names.iter().any(|name| name.as_str() == other));
        others.sort();
        others.dedup();
        for other in others {
            app.ui
                .say(&format!("not recorded here, and left alone: {other}  (if it is yours: k8tre dev down {other})"));
        }
    }
    Ok(ground::last(&app.dirs, names))
}

/// Whoever takes down what others stand on is asked first.
fn leave_behind(app: &App, name: &EnvName) -> Result<()> {
    let guests = ground::guests(&app.dirs, name)?;
    let Some(first) = guests.first() else { return Ok(()) };
    let list: Vec<&str> = guests.iter().map(EnvName::as_str).collect();
    let question =
        format!("{} would lose Argo CD or the cluster, which {name} carries. Remove it all the same?", list.join(", "));
    match app.ui.confirm(&question, "--yes").map_err(|error| error.hint(format!("or first: k8tre dev down {first}")))? {
        true => Ok(()),
        false => Err(Error::interrupted()),
    }
}

/// Removes one environment, and looks whether it is gone; the code is 0 if it is.
pub async fn down(app: &App, args: &DownArgs, name: &EnvName) -> Result<(Audit, u8)> {
    let recorded = journal::read(&app.dirs, name);
    let journal = match recorded {
        Ok(Some(journal)) => journal,
        Ok(None) => rebuilt(app, name).await?,
        Err(error) => {
            app.ui.warn(&format!("{error}; going by the owner marks instead"));
            rebuilt(app, name).await?
        }
    };
    let journal = ground::without_gone(&app.dirs, journal, args.unreachable_is_gone).await;
    let options = Options { keep_branch: args.keep_branch, offline: true, ..Options::default() };
    if args.dry_run {
        return plan(app, &journal).map(|()| (Audit::default(), 0));
    }
    let lock = Lock::take(&app.dirs, name, "dev down")?;
    let writer = Arc::new(Writer::new(&lock, journal.clone()));
    let cx = Context::new(&journal, Record::Writing(Arc::clone(&writer)), app.dirs.clone(), options, app.ui.clone());
    if cx.spec.sample {
        // Whichever environment wrote it, the last one that uses it takes it along.
        writer.intend(steps::SAMPLE)?;
    }
    let steps = crate::plan::steps(&cx.spec);
    app.ui.expect(steps.iter().map(|step| (step.id(), step.describe())));
    if !cx.provider().owns_cluster() && !cx.kubeconfig().exists() && !journal.steps.is_empty() {
        // Without it, the steps would find nothing of theirs, and leave it.
        cx.provider().write_kubeconfig(&cx).await?;
    }
    let before = audit::before(&cx).await;
    let engine = Engine { steps: &steps, ledger: &*writer, events: &*app.ui, cancel: app.cancel.clone() };
    let walked = walk(&engine, &cx).await;
    let failures = walked.map_err(|error| match error.kind() {
        Kind::Interrupted => error.hint(format!("go on: k8tre dev down {name}")),
        _ => error,
    })?;
    let look_again = |error: Error| {
        error.context("could not look whether anything is left").hint(format!("look again: k8tre dev down {name}"))
    };
    let audit = tokio::select! {
        biased;
        () = app.cancel.cancelled() => return Err(Error::interrupted().hint(format!("go on: k8tre dev down {name}"))),
        audit = tokio::time::timeout(AUDIT_LIMIT, audit::after(&cx, &before)) => {
            audit.unwrap_or_else(|_| Err(Error::failed("it took too long"))).map_err(look_again)?
        }
    };
    let gone = failures.is_empty() && audit.left.is_empty();
    if gone {
        lock.remove_folder()?;
    }
    say(app, name, &failures, &audit);
    Ok((audit, u8::from(!gone)))
}

type Failures = Vec<(StepId, Error)>;

/// What waits on a shared Argo CD for a cluster that does not answer it need not wait any more once that is gone.
async fn walk(engine: &Engine<'_, Context>, cx: &Context) -> Result<Failures> {
    let failures = engine.down(cx).await?;
    let waited = failures.iter().any(|(id, _)| *id == steps::ROOT) && !engine.ledger.owns(steps::CLUSTER);
    match cx.spec.argocd.shared() {
        Some(_) if waited && answering(cx).await.is_ok() => engine.down(cx).await,
        _ => Ok(failures),
    }
}

fn say(app: &App, name: &EnvName, failures: &[(StepId, Error)], audit: &Audit) {
    let ui = &app.ui;
    for (_, error) in failures {
        ui.error(error);
    }
    for kept in &audit.kept {
        ui.say(&format!("  kept: {}", kept.what));
        ui.say(&format!("        {}", kept.remove));
    }
    if failures.is_empty() && audit.left.is_empty() {
        return ui.say(&format!(
            "{} {name} is gone; nothing left among: {}, journal",
            ui.tick(),
            audit.checked.join(", ")
        ));
    }
    ui.say(&format!("{} {name} is not gone", ui.cross()));
    for left in &audit.left {
        ui.say(&format!("  left: {}", left.what));
        ui.say(&format!("        {}", left.remove));
    }
    ui.say(&format!("  try again: k8tre dev down {name}"));
}

fn plan(app: &App, journal: &Journal) -> Result<()> {
    let steps = crate::plan::steps(&journal.spec);
    app.ui.say(&format!("down would remove, in this order, of the environment {}:", journal.spec.name));
    for step in crate::engine::in_order(&steps)?.iter().rev().filter(|step| journal.steps.contains_key(step.id())) {
        match step.inside().filter(|outer| journal.steps.contains_key(*outer)) {
            Some(outer) => app.ui.data(&format!("  {:<13} {} (with the {outer})", step.id(), step.describe())),
            None => app.ui.data(&format!("  {:<13} {}", step.id(), step.describe())),
        }
    }
    Ok(())
}

/// An environment whose journal is lost: what the marks on its containers and its branch still tell.
async fn rebuilt(app: &App, name: &EnvName) -> Result<Journal> {
    let docker = Docker::open().await?;
    let marked = find_all_owned(&docker).await?;
    let node = marked.iter().find(|node| node.owner.environment == name.as_str());
    let sample = sample::default_folder(&app.dirs);
    let here = std::env::current_dir().ok().and_then(|here| Some(Checkout::open(&here).ok()?.root().to_owned()));
    let branch = [Some(sample.clone()), here].into_iter().flatten().find_map(|repo| {
        let checkout = Checkout::open(&repo).ok()?;
        let tip = checkout.tip(&name.branch()).ok().flatten()?;
        let owner = checkout.owner(tip).ok().flatten().filter(|owner| owner.name == *name)?;
        Some((owner.id, repo))
    });
    let id = node.map(|node| node.owner.id.clone()).or(branch.as_ref().map(|(id, _)| id.clone()));
    let id = id.ok_or_else(|| select::unknown(app, name))?;
    // Written before all else, so it may be there without the branch.
    let repo = branch.map_or_else(|| sample.clone(), |(_, repo)| repo);
    let found =
        Found { sample: repo == sample, repo, head: Some("main".into()), vendor: "kind".into(), lists_secrets: false };
    let spec = settings::settle(name, &UpArgs::default(), None, &[], found)?;
    let record = journal::Record { intended: Timestamp::now(), done: None };
    let steps: BTreeMap<_, _> = crate::plan::steps(&spec)
        .iter()
        .filter(|step| !step.leaves_nothing())
        .map(|step| (step.id().to_owned(), record.clone()))
        .collect();
    Ok(Journal { schema: journal::SCHEMA, id, created: Timestamp::now(), spec, steps, facts: Facts::default() })
}
