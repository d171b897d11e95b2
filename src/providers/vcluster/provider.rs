//! vCluster behind the interface of all providers.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::host::{Host, namespace_type, open, pod_type};
use super::{Names, access, chart, create, delete, helm, preflight};
use crate::argocd::side::ArgoCd;
use crate::audit::{Audit, Leftover};
use crate::capacity::requested_by;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::expiry;
use crate::names::EnvName;
use crate::ports::kubeconfig;
use crate::providers::{Checked, ClusterState, Provider};
use crate::shared::fence;
use crate::spec::{SharedArgoCd, VclusterSpec};

/// For pods to end, and for the syncer to see what has gone.
const SETTLE_LIMIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(500);

pub struct VclusterProvider {
    pub spec: VclusterSpec,
}

impl VclusterProvider {
    fn names(&self, name: &EnvName) -> Names {
        Names::new(name, &self.spec)
    }
}

#[async_trait]
impl Provider for VclusterProvider {
    fn name(&self) -> &'static str {
        "vcluster"
    }

    fn describe(&self) -> String {
        format!(
            "vCluster in the namespace {} of {}, with a kubeconfig of its own",
            self.spec.namespace, self.spec.host_context
        )
    }

    fn context(&self, name: &EnvName) -> String {
        access::context(&name.cluster())
    }

    fn ground(&self, name: &EnvName) -> Option<String> {
        let VclusterSpec { host_context, namespace, .. } = &self.spec;
        Some(format!(
            "{name} will be a vCluster in the namespace {namespace} of the cluster of context {host_context}."
        ))
    }

    async fn check(&self, cx: &Context) -> Result<Checked> {
        fence::refuse_protected(cx, &self.spec.host_context)?;
        let host = Host::open(cx, &self.spec).await.map_err(|error| error.with_kind(crate::error::Kind::Preflight))?;
        match host.state(&cx.id).await? {
            ClusterState::Foreign(why) => Err(self.not_ours(cx, &why)),
            ClusterState::Absent | ClusterState::Partial(_) => {
                Ok(Checked { findings: preflight::findings(cx, &host).await?, absent: true, ..Checked::default() })
            }
            ClusterState::Running | ClusterState::Stopped(_) => Ok(Checked::default()),
        }
    }

    async fn fetch(&self, cx: &Context) -> Result<()> {
        helm::program()?;
        chart::get(cx, &self.spec).await.map(drop)
    }

    async fn observe(&self, cx: &Context) -> Result<ClusterState> {
        Host::open(cx, &self.spec).await?.state(&cx.id).await
    }

    fn not_ours(&self, _cx: &Context, why: &str) -> Error {
        let (namespace, context) = (&self.spec.namespace, &self.spec.host_context);
        Error::preflight(format!("there is a namespace {namespace} in {context} already: {why}"))
            .hint("choose another name: k8tre dev up NAME")
            .hint("or another namespace: --host-namespace NAMESPACE")
            .hint(format!("or, if nobody needs it: kubectl --context {context} delete namespace {namespace}"))
    }

    async fn create(&self, cx: &Context) -> Result<()> {
        create::create(cx, &self.spec).await
    }

    async fn start(&self, cx: &Context) -> Result<()> {
        let host = Host::open(cx, &self.spec).await?;
        host.scale(1).await?;
        create::ready(cx, &host).await?;
        access::write(cx, &host).await?;
        await_sync(cx, &host).await
    }

    async fn write_kubeconfig(&self, cx: &Context) -> Result<()> {
        let host = Host::open(cx, &self.spec).await?;
        create::ready(cx, &host).await?;
        access::write(cx, &host).await
    }

    fn can_pause(&self) -> Result<()> {
        if self.spec.persistent == Some(true) {
            return Ok(());
        }
        Err(Error::usage(
            "this vCluster cannot be paused: it has no volume, and scaled to zero it would lose all that is in it",
        )
        .hint("where the host has storage: k8tre dev down, then up --vcluster-storage volume"))
    }

    async fn stop(&self, cx: &Context) -> Result<()> {
        let host = Host::open(cx, &self.spec).await?;
        host.scale(0).await?;
        // What would put them back has to be gone before.
        within("the control plane to end", async {
            while !host.control_plane_pods().await?.is_empty() {
                tokio::time::sleep(POLL).await;
            }
            Ok(())
        })
        .await?;
        for pod in host.synced_pods().await? {
            if let Some(name) = pod["metadata"]["name"].as_str() {
                host.kube.delete(&pod_type(), &host.names.namespace, name).await?;
            }
        }
        within("its pods to end", async {
            while !host.synced_pods().await?.is_empty() {
                tokio::time::sleep(POLL).await;
            }
            Ok(())
        })
        .await
    }

    async fn survey(&self, cx: &Context) -> Result<(ClusterState, Option<String>)> {
        let host = Host::open(cx, &self.spec).await?;
        let state = host.state(&cx.id).await?;
        let pods = match state {
            ClusterState::Running => host.kube.list(&pod_type(), &host.names.namespace, "").await.ok(),
            _ => None,
        };
        Ok((state, pods.map(|pods| requested_by(&pods).to_string())))
    }

    async fn delete(&self, cx: &Context) -> Result<()> {
        let host = Host::open(cx, &self.spec)
            .await
            .map_err(|error| error.hint(format!("the namespace {} may still be there", self.spec.namespace)))?;
        delete::all(cx, &host).await?;
        kubeconfig::remove(&cx.kubeconfig())?;
        cx.forget_kube();
        Ok(())
    }

    async fn server_for(&self, name: &EnvName, argocd: &ArgoCd, shared: &SharedArgoCd) -> Result<String> {
        let host = open(&self.spec).await?;
        if host.server() == argocd.kube.server() {
            return Ok(format!("https://{}:443", self.names(name).inside()));
        }
        Err(Error::preflight(format!(
            "the Argo CD in {} does not run in the cluster that carries the vCluster, and nobody says how it reaches it",
            shared.place()
        ))
        .hint("name the address: --server https://HOST:PORT, a node and its port or a load balancer of the host")
        .hint(format!("or use an Argo CD on the host: --argocd {}", self.spec.host_context)))
    }

    async fn has_expiry(&self, cx: &Context, expires: Timestamp) -> Result<bool> {
        let host = Host::open(cx, &self.spec).await?;
        Ok(host.namespace().await?.is_some_and(|found| expiry::of(&found) == Some(expires)))
    }

    async fn set_expiry(&self, cx: &Context, expires: Timestamp) -> Result<()> {
        let host = Host::open(cx, &self.spec).await?;
        let patch = json!({"metadata": {"annotations": {(expiry::EXPIRES): expires.to_string()}}});
        host.kube.merge(&namespace_type(), "", &self.spec.namespace, &patch).await
    }

    /// Volumes of the host.
    async fn belongings(&self, cx: &Context) -> Vec<String> {
        match Host::open(cx, &self.spec).await {
            Ok(host) => delete::volumes(&host).await,
            Err(_) => Vec::new(),
        }
    }

    async fn audit(&self, cx: &Context, volumes: &[String], audit: &mut Audit) -> Result<()> {
        audit.checked.extend(["host's namespace", "host's cluster roles", "host's volumes"]);
        let namespace = &self.spec.namespace;
        let host = match Host::open(cx, &self.spec).await {
            Ok(host) => host,
            Err(error) => {
                let what = format!("namespace {namespace} in {}, perhaps: {error}", self.spec.host_context);
                let remove = format!("k8tre dev down {}, once it answers, or --unreachable-is-gone", cx.spec.name);
                audit.left.push(Leftover { what, remove });
                return Ok(());
            }
        };
        let entry = |kind: &str, name: &str| Leftover {
            what: format!("{kind} {name} in {}", self.spec.host_context),
            remove: host.kubectl(&format!("delete {kind} {name}")),
        };
        if host.namespace().await?.is_some_and(|found| super::host::foreign(&found, &cx.id).is_none()) {
            audit.left.push(entry("namespace", namespace));
        }
        for (of, name) in delete::cluster_scoped(&host).await {
            audit.left.push(entry(&of.kind().to_lowercase(), &name));
        }
        for volume in delete::remaining(&host, volumes).await {
            let left = entry("persistentvolume", &volume.name);
            let left = Leftover { what: format!("{}: {}", left.what, volume.why), ..left };
            match volume.kept {
                true => audit.kept.push(left),
                false => audit.left.push(left),
            }
        }
        Ok(())
    }
}

/// After a start, the vCluster's API server still shows the pods from before the stop, until its syncer has seen that the
/// host has them no more. What follows must not take them for the present.
async fn await_sync(cx: &Context, host: &Host<'_>) -> Result<()> {
    let kube = cx.require_kube().await?;
    within("its pods to be made anew", async {
        loop {
            let there: BTreeSet<String> = host.synced_pods().await?.iter().filter_map(uid_inside).collect();
            let shown = kube.list(&pod_type(), "", "").await?;
            if !shown.iter().any(|pod| is_stale(pod, &there)) {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
    })
    .await
}

/// The id that a pod of the host has inside the vCluster.
fn uid_inside(pod: &Value) -> Option<String> {
    pod["metadata"]["annotations"]["vcluster.loft.sh/uid"].as_str().map(str::to_owned)
}

/// Shown as running on a node, though the host has no such pod.
fn is_stale(pod: &Value, there: &BTreeSet<String>) -> bool {
    pod["spec"]["nodeName"].is_string()
        && pod["metadata"]["deletionTimestamp"].is_null()
        && !matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
        && pod["metadata"]["uid"].as_str().is_some_and(|uid| !there.contains(uid))
}

async fn within(what: &str, wait: impl Future<Output = Result<()>>) -> Result<()> {
    let waited = tokio::time::timeout(SETTLE_LIMIT, wait).await;
    waited.unwrap_or_else(|_| Err(Error::failed(format!("waited {} s for {what}, in vain", SETTLE_LIMIT.as_secs()))))
}
