//! `k8tre dev pause` and `resume`: the cluster's containers stopped, and started again until all is healthy.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::json;

use crate::cli::{NameArgs, ResumeArgs, UpArgs};
use crate::commands::change::Change;
use crate::commands::{App, select, up};
use crate::context::Context;
use crate::error::{Error, Result, ResultExt};
use crate::ports::docker::ContainerState;
use crate::providers::ClusterState;
use crate::providers::kind::nodes_of;
use crate::report::SCHEMA;
use crate::steps::cluster;

/// A node gets ten seconds to stop by itself before Docker ends it.
const LIMIT: Duration = Duration::from_secs(120);

pub async fn pause(app: &App, args: &NameArgs) -> Result<u8> {
    let name = select::existing_name(app, args)?;
    let change = Change::begin(app, name.clone(), "dev pause")?;
    let cx = change.context(LIMIT);
    match cluster::observe(&cx).await? {
        ClusterState::Running => {}
        ClusterState::Stopped(_) if cx.facts().paused_at.is_some() => {
            return said(app, &name, "was paused already", None);
        }
        // Halfway stopped, as by an interrupted pause.
        ClusterState::Stopped(_) => {}
        ClusterState::Foreign(why) => return Err(cluster::not_ours(&cx, &why)),
        state @ (ClusterState::Absent | ClusterState::Partial(_)) => {
            return Err(Error::failed(format!("the cluster of {name} is {state}, there is nothing to pause"))
                .hint(format!("k8tre dev up {name}")));
        }
    }
    let start = Instant::now();
    let freed = memory(&cx).await;
    // Before the stop: an interruption in the middle of it is a pause too, and `resume` mends it.
    cx.note(|facts| facts.paused_at = Some(Timestamp::now()))?;
    let kind = cluster::kind_at_hand(&cx).await?;
    let cluster = name.cluster();
    let stop = tokio::time::timeout(LIMIT, kind.stop(&cluster));
    tokio::select! {
        () = app.cancel.cancelled() => return Err(Error::interrupted().hint(format!("go on: k8tre dev pause {name}"))),
        stopped = stop => stopped
            .unwrap_or_else(|_| Err(Error::failed(format!("the nodes did not stop within {} s", LIMIT.as_secs()))))
            .hint(format!("docker stop {cluster}-control-plane"))?,
    }
    let seconds = start.elapsed().as_secs_f64();
    said(app, &name, &format!("is paused, {seconds:.1} s"), freed)
}

fn said(app: &App, name: &crate::names::EnvName, what: &str, freed: Option<u64>) -> Result<u8> {
    if app.ui.is_json() {
        app.ui.json(&json!({"schema": SCHEMA, "environment": name, "paused": true, "freedBytes": freed}))?;
        return Ok(0);
    }
    let memory = freed.map(|bytes| format!("; {} MiB of memory are free again", bytes >> 20)).unwrap_or_default();
    app.ui.say(&format!("{} {name} {what}{memory}", app.ui.tick()));
    app.ui.say(&format!("  go on with it: k8tre dev resume {name}"));
    Ok(0)
}

/// What the running nodes use, if Docker tells.
async fn memory(cx: &Context) -> Option<u64> {
    let docker = cx.docker().await.ok()?;
    let nodes = nodes_of(docker, &cx.spec.name.cluster()).await.ok()?.ours;
    let mut sum = None;
    for node in nodes.iter().filter(|node| node.state == ContainerState::Running) {
        if let Some(bytes) = docker.memory_of(&node.container).await {
            sum = Some(sum.unwrap_or(0) + bytes);
        }
    }
    sum
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
