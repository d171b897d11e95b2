//! A vCluster made, or mended from what a creation that was cut short left.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::host::{Host, desired};
use super::{access, chart, delete, helm, values};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::ports::dirs;
use crate::ports::kube::Type;
use crate::spec::VclusterSpec;
use crate::steps::{CLUSTER, objects, rollout};

/// What the control plane gets to become ready, its images to be pulled included.
const READY_LIMIT: Duration = Duration::from_secs(400);
const POLL: Duration = Duration::from_millis(200);

pub async fn create(cx: &Context, spec: &VclusterSpec) -> Result<()> {
    let chart = chart::get(cx, spec).await?;
    let host = Host::open(cx, spec).await?;
    if let Some(found) = host.namespace().await?
        && found["metadata"]["deletionTimestamp"].is_string()
    {
        delete::namespace(cx, &host).await?;
    }
    objects::refuse_foreign(&host.kube, &desired(cx, spec, false), "", &cx.id).await?;
    let made = make(cx, &host, &chart).await;
    let Err(error) = made else { return Ok(()) };
    if cx.options.keep_on_failure {
        return Err(error.hint(host.kubectl(&format!("-n {} get pods,events", host.names.namespace))));
    }
    match delete::all(cx, &host).await {
        Ok(()) => Err(error),
        Err(left) => Err(error.hint(format!("{left}"))),
    }
}

async fn make(cx: &Context, host: &Host<'_>, chart: &Path) -> Result<()> {
    host.kube.apply(&desired(cx, host.spec, false), "").await?;
    release_lock(host).await?;
    cx.detail(CLUSTER, "installing vCluster by Helm");
    let folder = cx.dirs.environment(cx.spec.name.as_str());
    // They hold nothing secret, but go with the environment's folder even if this process is killed here.
    let files = tempfile::Builder::new().prefix(".helm-").tempdir_in(&folder)?;
    let values = write_values(cx, host, files.path())?;
    let release = helm::Release { spec: host.spec, name: &host.names.release, folder: files.path() };
    release.install(chart, &values).await?;
    ready(cx, host).await?;
    access::write(cx, host).await?;
    host.kube.apply(&desired(cx, host.spec, true), "").await.map(drop)
}

/// A Helm that was killed leaves its release locked, and every later one would refuse. What it had installed stays, and
/// is taken over by the next: objects are found by name.
async fn release_lock(host: &Host<'_>) -> Result<()> {
    let of = Type::new("v1", "Secret");
    let selector = format!("owner=helm,name={}", host.names.release);
    for secret in host.kube.list(&of, &host.names.namespace, &selector).await? {
        let pending = secret["metadata"]["labels"]["status"].as_str().is_some_and(|s| s.starts_with("pending-"));
        if let (true, Some(name)) = (pending, secret["metadata"]["name"].as_str()) {
            host.kube.delete(&of, &host.names.namespace, name).await?;
        }
    }
    Ok(())
}

/// The values in the order in which Helm lays them over each other.
fn write_values(cx: &Context, host: &Host<'_>, folder: &Path) -> Result<Vec<PathBuf>> {
    let file = |name: &str, content: &str| -> Result<PathBuf> {
        let path = folder.join(name);
        dirs::write_private(&path, content.as_bytes()).map(|()| path)
    };
    let mut own = Value::Null;
    let mut all =
        vec![file("common.yaml", values::COMMON)?, file("settled.yaml", &values::settled(host.spec).to_string())?];
    if let Some((content, values)) = values::users(host.spec)? {
        all.push(file("users.yaml", &content)?);
        own = values;
    }
    let server = cx.spec.argocd.shared().and_then(|shared| shared.server.parse::<http::Uri>().ok());
    let others = [server.as_ref().and_then(http::Uri::host), host.spec.node_address.as_deref()];
    let certificate = values::certificate(&host.names, &own, others.into_iter().flatten());
    all.push(file("demanded.yaml", &values::demanded(&host.names, &certificate).to_string())?);
    Ok(all)
}

/// Waits until the control plane runs; says meanwhile what it waits for.
pub async fn ready(cx: &Context, host: &Host<'_>) -> Result<()> {
    let deadline = Instant::now() + READY_LIMIT;
    loop {
        let workload = host.workload().await?;
        if workload.as_ref().is_some_and(rollout::is_done) {
            return Ok(());
        }
        let why = rollout::waits_for(&host.control_plane_pods().await?);
        cx.detail(CLUSTER, &format!("waiting for the control plane: {why}"));
        if Instant::now() >= deadline {
            let namespace = &host.names.namespace;
            return Err(Error::failed(format!(
                "the vCluster's control plane was not ready within {} s: {why}",
                READY_LIMIT.as_secs()
            ))
            .hint(host.kubectl(&format!("-n {namespace} describe pods -l app=vcluster"))));
        }
        tokio::time::sleep(POLL).await;
    }
}
