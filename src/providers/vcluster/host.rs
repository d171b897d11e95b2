//! What the host says of a vCluster: whose the namespace is, and how the control plane in it does.

use serde_json::{Value, json};

use super::Names;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::expiry;
use crate::ports::kube::{Kube, Type};
use crate::providers::{ClusterState, answering};
use crate::shared::DEVELOPER;
use crate::spec::VclusterSpec;
use crate::steps::objects;

/// Says, on the namespace, that the creation was carried through.
pub const WHOLE: &str = "k8tre.dev/whole";

/// The host, for one environment.
pub struct Host<'a> {
    pub kube: Kube,
    pub spec: &'a VclusterSpec,
    pub names: Names,
}

impl<'a> Host<'a> {
    /// The host, which has answered.
    pub async fn open(cx: &Context, spec: &'a VclusterSpec) -> Result<Host<'a>> {
        let kube = open(spec).await?;
        Ok(Host { kube, spec, names: Names::new(&cx.spec.name, spec) })
    }

    pub async fn namespace(&self) -> Result<Option<Value>> {
        self.kube.get(&namespace_type(), "", &self.names.namespace).await
    }

    /// The control plane: a StatefulSet where it has a volume, else a Deployment.
    pub async fn workload(&self) -> Result<Option<Value>> {
        for kind in ["StatefulSet", "Deployment"] {
            let of = Type::new("apps/v1", kind);
            if let Some(found) = self.kube.get(&of, &self.names.namespace, &self.names.release).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Pods of the host that are pods of the vCluster.
    pub async fn synced_pods(&self) -> Result<Vec<Value>> {
        let selector = format!("vcluster.loft.sh/managed-by={}", self.names.release);
        self.kube.list(&pod_type(), &self.names.namespace, &selector).await
    }

    pub async fn control_plane_pods(&self) -> Result<Vec<Value>> {
        let selector = format!("app=vcluster,release={}", self.names.release);
        self.kube.list(&pod_type(), &self.names.namespace, &selector).await
    }

    pub async fn state(&self, id: &str) -> Result<ClusterState> {
        let namespace = &self.names.namespace;
        let Some(found) = self.namespace().await? else { return Ok(ClusterState::Absent) };
        if let Some(why) = foreign(&found, id) {
            return Ok(ClusterState::Foreign(why));
        }
        if found["metadata"]["deletionTimestamp"].is_string() {
            return Ok(ClusterState::Partial(format!("its namespace {namespace} is being deleted")));
        }
        if found["metadata"]["annotations"][WHOLE] != "true" {
            return Ok(ClusterState::Partial("its creation was not finished".into()));
        }
        let Some(workload) = self.workload().await? else {
            return Ok(ClusterState::Partial(format!("its control plane in the namespace {namespace} is gone")));
        };
        Ok(match workload["spec"]["replicas"].as_u64() {
            Some(0) => ClusterState::Stopped("it is scaled to zero".into()),
            _ => ClusterState::Running,
        })
    }

    /// Scales the control plane, of which there is one at most.
    pub async fn scale(&self, replicas: u8) -> Result<()> {
        let workload = self.workload().await?.ok_or_else(|| Error::failed("the vCluster has no control plane"))?;
        let patch = json!({"spec": {"replicas": replicas}});
        self.kube.merge(&Type::of(&workload)?, &self.names.namespace, &self.names.release, &patch).await?;
        // What waits for the pods would wait in vain.
        match self.workload().await?.map(|workload| workload["spec"]["replicas"] == replicas) {
            Some(true) => Ok(()),
            _ => Err(Error::failed(format!("the host took the change to {replicas} replicas, and does not have it"))),
        }
    }

    /// A command of kubectl's on the host, to be pasted.
    pub fn kubectl(&self, words: &str) -> String {
        format!("kubectl --context {} {words}", self.spec.host_context)
    }
}

/// The host, if it answers.
pub async fn open(spec: &VclusterSpec) -> Result<Kube> {
    answering(&spec.host_kubeconfig, &spec.host_context).await
}

/// The namespace as `up` makes it.
pub fn desired(cx: &Context, spec: &VclusterSpec, whole: bool) -> Value {
    let level = spec.pod_security.label();
    let mut namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": spec.namespace, "labels": {
            "app.kubernetes.io/managed-by": "k8tre",
            DEVELOPER: cx.spec.name,
            "pod-security.kubernetes.io/enforce": level,
            // Worth knowing of, also where it is let through.
            "pod-security.kubernetes.io/warn": "baseline",
        }},
    });
    if whole {
        namespace["metadata"]["annotations"][WHOLE] = json!("true");
    }
    expiry::stamped(objects::owned(namespace, &cx.id), cx.spec.expires)
}

/// What shows that a namespace is not this environment's, if it is not.
pub fn foreign(namespace: &Value, id: &str) -> Option<String> {
    match objects::owner(namespace) {
        Some(owner) if owner == id => None,
        Some(owner) => Some(format!("the namespace is that of the environment with the id {owner}")),
        None => Some("the namespace was not made by k8tre".into()),
    }
}

pub fn namespace_type() -> Type {
    Type::new("v1", "Namespace")
}

pub fn pod_type() -> Type {
    Type::new("v1", "Pod")
}
