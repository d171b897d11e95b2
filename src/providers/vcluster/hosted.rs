//! vClusters on a host, whichever machine made them: what their marks tell is all that is known of them.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::Names;
use super::delete;
use super::host::{Host, namespace_type};
use crate::context::{Context, Options, Record};
use crate::engine::Events;
use crate::error::Result;
use crate::expiry;
use crate::journal::Journal;
use crate::names::EnvName;
use crate::ports::dirs::Dirs;
use crate::ports::kube::Kube;
use crate::providers::answering;
use crate::settings;
use crate::shared::DEVELOPER;
use crate::spec::{Expose, PodSecurity, VCLUSTER_KUBERNETES, VCLUSTER_VERSION, VclusterSpec};
use crate::steps::objects;

/// A cluster that carries vClusters.
#[derive(Clone)]
pub struct Carrier {
    kube: Kube,
    spec: VclusterSpec,
}

/// One vCluster there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosted {
    pub name: EnvName,
    pub id: String,
    pub namespace: String,
    pub created: Option<Timestamp>,
    pub expires: Option<Timestamp>,
}

impl Carrier {
    /// The cluster of a context, if it answers.
    pub async fn open(kubeconfig: &Path, context: &str) -> Result<Carrier> {
        let kube = answering(kubeconfig, context).await?;
        let spec = VclusterSpec {
            host_context: context.to_owned(),
            host_kubeconfig: kubeconfig.to_owned(),
            namespace: String::new(),
            version: VCLUSTER_VERSION.into(),
            chart: None,
            kubernetes: VCLUSTER_KUBERNETES.into(),
            values: None,
            persistent: None,
            expose: Expose::default(),
            node_address: None,
            network_policy: false,
            pod_security: PodSecurity::default(),
        };
        Ok(Carrier { kube, spec })
    }

    pub fn context(&self) -> &str {
        &self.spec.host_context
    }

    /// All that carry k8tre's marks, and are not on their way out.
    pub async fn all(&self) -> Result<Vec<Hosted>> {
        let marked = self.kube.list(&namespace_type(), "", "app.kubernetes.io/managed-by=k8tre").await?;
        Ok(marked.iter().filter_map(marks).collect())
    }

    /// The one of a namespace, as it is now.
    pub async fn again(&self, namespace: &str) -> Result<Option<Hosted>> {
        Ok(self.kube.get(&namespace_type(), "", namespace).await?.as_ref().and_then(marks))
    }

    /// Removes one as `down` does on the host, and waits until it is gone.
    pub async fn remove(&self, one: &Hosted, dirs: &Dirs, events: Arc<dyn Events>) -> Result<()> {
        let spec = VclusterSpec { namespace: one.namespace.clone(), ..self.spec.clone() };
        let journal = Journal { id: one.id.clone(), ..Journal::new(settings::of_name(&one.name)?) };
        let cx = Context::new(&journal, Record::Reading(Box::default()), dirs.clone(), Options::default(), events);
        let host = Host { kube: self.kube.clone(), names: Names::new(&one.name, &spec), spec: &spec };
        delete::all(&cx, &host).await
    }
}

/// What the marks of a namespace say; none where it is no vCluster's.
fn marks(namespace: &Value) -> Option<Hosted> {
    let metadata = &namespace["metadata"];
    if metadata["deletionTimestamp"].is_string() {
        return None;
    }
    Some(Hosted {
        name: metadata["labels"][DEVELOPER].as_str()?.parse().ok()?,
        id: objects::owner(namespace)?.to_owned(),
        namespace: metadata["name"].as_str()?.to_owned(),
        created: metadata["creationTimestamp"].as_str().and_then(|at| at.parse().ok()),
        expires: expiry::of(namespace),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_namespace_is_a_vclusters_by_its_marks_alone() {
        let namespace = |labels: Value, annotations: Value| json!({"metadata": {"name": "vc", "labels": labels, "annotations": annotations}});
        let (label, owner) = (json!({"developer": "alice"}), json!({"k8tre.dev/environment-id": "1"}));
        let found = marks(&namespace(label.clone(), owner.clone())).unwrap();
        assert_eq!((found.name.as_str(), found.id.as_str(), found.expires), ("alice", "1", None));
        assert_eq!(marks(&namespace(json!({}), owner.clone())), None);
        assert_eq!(marks(&namespace(label.clone(), json!({}))), None);
        let mut going = namespace(label, owner);
        going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(marks(&going), None);
    }
}
