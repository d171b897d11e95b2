//! `k8tre dev extend`: a later end for an environment that has one.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use crate::cli::ExtendArgs;
use crate::commands::change::Change;
use crate::commands::{App, select};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::expiry;
use crate::providers::ClusterState;
use crate::report::SCHEMA;
use crate::shared::check::secret_type;
use crate::shared::rights::secret_name;
use crate::steps::{EXPIRY, objects};

const LIMIT: Duration = Duration::from_secs(60);

pub async fn run(app: &App, args: &ExtendArgs) -> Result<u8> {
    let (name, length) = args.read().map_err(|why| Error::usage(why).hint("k8tre dev extend NAME 4h"))?;
    let change = Change::begin(app, select::existing_name(app, &name)?, "dev extend")?;
    let (name, now) = (change.name.clone(), Timestamp::now());
    let Some(end) = change.spec().expires else {
        return Err(Error::usage(format!("{name} has no end that could be moved"))
            .hint(format!("give it one, from now on: k8tre dev up {name} --ttl 8h")));
    };
    // What has ended begins anew from now on.
    let expires = expiry::after(end.max(now), length);
    change.record(|spec| spec.expires = Some(expires))?;
    let cx = change.context(LIMIT);
    let told = change.unless_cancelled(tell_argocd(&cx, expires)).await;
    if cx.provider().observe(&cx).await.is_ok_and(|state| state == ClusterState::Running) {
        change.walk(&cx, &[EXPIRY]).await?;
    }
    match told {
        Ok(()) => {}
        // Its own Argo CD hears of it with the next `up` or `resume`, and nobody else looks there.
        Err(_) if cx.spec.argocd.shared().is_none() => {}
        Err(error) => {
            return Err(error
                .context("the later end is recorded here, and not yet on the shared Argo CD, where others look")
                .hint(format!("when that is mended: k8tre dev up {name}")));
        }
    }
    if app.ui.is_json() {
        app.ui.json(&json!({"schema": SCHEMA, "environment": name, "expires": expires}))?;
        return Ok(0);
    }
    app.ui.say(&format!("{} {name} {}", app.ui.tick(), expiry::shown(expires, now)));
    Ok(0)
}

/// The end on the cluster Secret, and no more of it: its token stays as it is.
async fn tell_argocd(cx: &Context, expires: Timestamp) -> Result<()> {
    let argocd = match cx.spec.argocd.shared() {
        Some(_) => crate::shared::answering(cx).await?,
        None => cx.require_argocd().await?,
    };
    let secret = secret_name(&cx.spec.name);
    match argocd.get(&secret_type(), &secret).await? {
        Some(found) if objects::owner(&found) == Some(&cx.id) => {
            let patch = json!({"metadata": {"annotations": {expiry::EXPIRES: expires.to_string()}}});
            argocd.merge(&secret_type(), &secret, &patch).await
        }
        // Not registered yet, or no more: `up` writes it with the Secret.
        _ => Ok(()),
    }
}
