//! `k8tre dev pause` and `resume`: the cluster stopped, and started again until all is healthy.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::json;

use crate::cli::{NameArgs, ResumeArgs, UpArgs};
use crate::commands::change::Change;
use crate::commands::{App, select, up};
use crate::error::{Error, Result};
use crate::names::EnvName;
use crate::providers::ClusterState;
use crate::report::SCHEMA;

const LIMIT: Duration = Duration::from_secs(120);

pub async fn pause(app: &App, args: &NameArgs) -> Result<u8> {
    let name = select::existing_name(app, args)?;
    let again = format!("k8tre dev pause {name}");
    paused(app, name).await.map_err(|error| error.way_on(&again))
}

async fn paused(app: &App, name: EnvName) -> Result<u8> {
    let change = Change::begin(app, name.clone(), "dev pause")?;
    let cx = change.context(LIMIT);
    cx.provider().can_pause()?;
    match cx.provider().observe(&cx).await? {
        ClusterState::Running => {}
        ClusterState::Stopped(_) if cx.facts().paused_at.is_some() => {
            return said(app, &name, "was paused already", None);
        }
        // Halfway stopped, as by an interrupted pause.
        ClusterState::Stopped(_) => {}
        ClusterState::Foreign(why) => return Err(cx.provider().not_ours(&cx, &why)),
        state @ (ClusterState::Absent | ClusterState::Partial(_)) => {
            return Err(Error::failed(format!("the cluster of {name} is {state}, there is nothing to pause"))
                .hint(format!("k8tre dev up {name}")));
        }
    }
    let start = Instant::now();
    let freed = cx.provider().memory(&cx).await;
    // Before the stop: an interruption in the middle of it is a pause too, and `resume` mends it.
    cx.note(|facts| facts.paused_at = Some(Timestamp::now()))?;
    tokio::select! {
        () = app.cancel.cancelled() => return Err(Error::interrupted()),
        stopped = cx.provider().stop(&cx) => stopped?,
    }
    match cx.provider().observe(&cx).await? {
        ClusterState::Stopped(_) => {}
        state => return Err(Error::failed(format!("the cluster of {name} was stopped, and is {state}"))),
    }
    let seconds = start.elapsed().as_secs_f64();
    said(app, &name, &format!("is paused, {seconds:.1} s"), freed)
}

fn said(app: &App, name: &EnvName, what: &str, freed: Option<u64>) -> Result<u8> {
    if app.ui.is_json() {
        app.ui.json(&json!({"schema": SCHEMA, "environment": name, "paused": true, "freedBytes": freed}))?;
        return Ok(0);
    }
    let memory = freed.map(|bytes| format!("; {} MiB of memory are free again", bytes >> 20)).unwrap_or_default();
    app.ui.say(&format!("{} {name} {what}{memory}", app.ui.tick()));
    app.ui.say(&format!("  go on with it: k8tre dev resume {name}"));
    Ok(0)
}

/// The same walk as `up`, of an environment that is there: the cluster's step starts its containers, and
/// every other step mends what the stop changed.
pub async fn resume(app: &App, args: &ResumeArgs) -> Result<u8> {
    let name = select::existing_name(app, &args.name)?;
    select::journal_of(app, &name)?;
    let mut up = UpArgs { name: NameArgs { environment: Some(name), name: None }, ..UpArgs::default() };
    up.run.timeout = args.timeout;
    up.run.no_wait = args.no_wait;
    up::run(app, &up).await
}
