//! `k8tre dev hold` and `release`: automatic sync off for one Application of an environment, for a time, and on again.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::argocd::side::ArgoCd;
use crate::cli::{HoldArgs, ReleaseArgs};
use crate::commands::change::{Change, refresh_all};
use crate::commands::{App, application, select};
use crate::context::Context;
use crate::engine::StepId;
use crate::error::{Error, Result, ResultExt};
use crate::gitops::windows::{Hold, windows};
use crate::names::EnvName;
use crate::ports::kube::Type;
use crate::report::SCHEMA;
use crate::steps::look::{application_type, is_absent, is_asked, refresh};
use crate::steps::{BRANCH, PROJECT, PUBLISH};

/// How long Argo CD may take to put the branch's AppProject in place.
const LIMIT: Duration = Duration::from_secs(60);
/// How long it may take to begin a sync.
const SYNC_LIMIT: Duration = Duration::from_secs(20);
/// The AppProject comes with the branch, or, on a shared Argo CD, by a step of its own.
const STEPS: &[StepId] = &[BRANCH, PUBLISH, PROJECT];

pub async fn hold(app: &App, args: &HoldArgs) -> Result<u8> {
    let change = Change::begin(app, select::existing_name(app, &args.name.args())?, "dev hold")?;
    let cx = change.context(LIMIT);
    let argocd = change.argocd(&cx).await?;
    let full = change.unless_cancelled(own(&argocd, &change.name, &args.app)).await?;
    change.check_branch(&cx).await?;
    let hold = Hold::new(Timestamp::now(), args.length);
    change.record(|spec| _ = spec.holds.insert(full.clone(), hold))?;
    let again = format!("k8tre dev hold {} --name {}", args.app, change.name);
    bring(&change, &argocd).await.hint(format!("when that is mended, again: {again}"))?;

    if app.ui.is_json() {
        app.ui.json(&json!({"schema": SCHEMA, "environment": change.name, "application": full, "held": hold}))?;
        return Ok(0);
    }
    let until = hold.until.to_zoned(TimeZone::system()).strftime("%H:%M %Z").to_string();
    app.ui.say(&format!("{} {full} is held until {until}: it stays as it is, whatever the branch says", app.ui.tick()));
    app.ui.say(&format!("  end it before: k8tre dev release {} --name {}", args.app, change.name));
    Ok(0)
}

pub async fn release(app: &App, args: &ReleaseArgs) -> Result<u8> {
    let change = Change::begin(app, select::existing_name(app, &args.name.args())?, "dev release")?;
    let cx = change.context(LIMIT);
    let argocd = change.argocd(&cx).await?;
    let holds = change.spec().holds;
    let recorded = [args.app.clone(), format!("{}-{}", args.app, change.name)];
    let recorded = recorded.into_iter().find(|name| holds.contains_key(name));
    let full = match recorded {
        // Also one that is gone meanwhile.
        Some(name) => name,
        None => change.unless_cancelled(own(&argocd, &change.name, &args.app)).await?,
    };
    change.check_branch(&cx).await?;
    let was_held = holds.get(&full).is_some_and(|hold| !hold.is_over(Timestamp::now()));
    change.record(|spec| _ = spec.holds.remove(&full))?;
    let again = format!("k8tre dev release {} --name {}", args.app, change.name);
    bring(&change, &argocd).await.hint(format!("when that is mended, again: {again}"))?;
    let synced = change.unless_cancelled(refresh(&argocd, &full)).await;
    let moving = match synced {
        _ if is_absent(&synced) => true,
        Err(error) => return Err(error.hint(again)),
        // Argo CD may look before it knows of the project's change; then it is asked again.
        Ok(()) => change.until(&argocd, &full, SYNC_LIMIT, async || moves(&argocd, &full).await).await.hint(&again)?,
    };
    if !moving {
        app.ui.warn(&format!("{full} has not begun to sync; see why: k8tre dev status {}", change.name));
    }

    if app.ui.is_json() {
        app.ui
            .json(&json!({"schema": SCHEMA, "environment": change.name, "application": full, "wasHeld": was_held}))?;
        return Ok(0);
    }
    match was_held {
        true => app.ui.say(&format!("{} {full} follows the branch again", app.ui.tick())),
        false => app.ui.say(&format!("{} {full} was not held; it follows the branch", app.ui.tick())),
    }
    Ok(0)
}

/// The full name of an Application of this environment; anybody else's is refused.
async fn own(argocd: &ArgoCd, name: &EnvName, word: &str) -> Result<String> {
    let found = application::find(argocd, name, word).await?;
    let full = found["metadata"]["name"].as_str().unwrap_or(word).to_owned();
    let project = found["spec"]["project"].as_str().unwrap_or("default");
    if project == name.project() {
        return Ok(full);
    }
    let error = Error::usage(format!(
        "{full} is in the project {project}, not in {}: only this environment's own Applications can be held",
        name.project()
    ));
    Err(match full == name.root_application() {
        true => error.hint("it deploys the ApplicationSets; hold the Applications that they make"),
        false => error.hint(format!("see this environment's: k8tre dev status {name}")),
    })
}

/// Whether an Application is as git has it, or on its way there; one that is gone is, too.
async fn moves(argocd: &ArgoCd, full: &str) -> Result<bool> {
    let Some(found) = argocd.get(&application_type(), full).await? else {
        return Ok(true);
    };
    let status = &found["status"];
    Ok(!is_asked(&found) && (status["sync"]["status"] == "Synced" || status["operationState"]["phase"] == "Running"))
}

/// Publishes the branch with the holds as recorded, and waits until Argo CD's project has them.
async fn bring(change: &Change<'_>, argocd: &ArgoCd) -> Result<()> {
    let cx: Context = change.context(LIMIT);
    change.walk(&cx, STEPS).await?;
    change.unless_cancelled(refresh_all(argocd, &change.name)).await?;
    let wanted = windows(&cx.spec.holds);
    let (of, name) = (Type::new("argoproj.io/v1alpha1", "AppProject"), cx.spec.name.project());
    let is_live = async || {
        let project = argocd.get(&of, &name).await?;
        let there = project.as_ref().and_then(|project| project["spec"]["syncWindows"].as_array());
        Ok(there.map_or(&[][..], Vec::as_slice) == wanted)
    };
    let root = cx.spec.name.root_application();
    if change.until(argocd, &root, LIMIT, is_live).await? {
        return Ok(());
    }
    let of = application_type();
    let root = argocd.get(&of, &root).await?.unwrap_or(Value::Null);
    let said = root.pointer("/status/operationState/message").and_then(Value::as_str).unwrap_or_default();
    Err(Error::failed(format!("Argo CD has not changed the project {name} within {} s", LIMIT.as_secs()))
        .detail(said)
        .hint(format!("see why: k8tre dev status {}", cx.spec.name)))
}
