//! The two sides of an environment: where Argo CD keeps its objects, and where the workloads run. Co-located they
//! are one cluster; with a shared Argo CD they are two.

use std::path::Path;

use serde_json::Value;

use crate::error::Result;
use crate::ports::kube::{Kube, Type};
use crate::spec::Spec;

/// An Argo CD: its cluster, and the namespace of its objects.
#[derive(Clone)]
pub struct ArgoCd {
    pub kube: Kube,
    pub namespace: String,
}

impl ArgoCd {
    /// The environment's Argo CD; `own` is the kubeconfig of the environment's cluster.
    pub async fn open(spec: &Spec, own: &Path) -> Result<ArgoCd> {
        let place = spec.argocd.place(own);
        let kube = Kube::open(place.kubeconfig, place.context).await?;
        Ok(ArgoCd { kube, namespace: place.namespace.to_owned() })
    }

    pub async fn get(&self, of: &Type, name: &str) -> Result<Option<Value>> {
        self.kube.get(of, &self.namespace, name).await
    }

    pub async fn list(&self, of: &Type, selector: &str) -> Result<Vec<Value>> {
        self.kube.list(of, &self.namespace, selector).await
    }

    pub async fn apply(&self, object: &Value) -> Result<Value> {
        self.kube.apply(object, &self.namespace).await
    }

    pub async fn merge(&self, of: &Type, name: &str, patch: &Value) -> Result<()> {
        self.kube.merge(of, &self.namespace, name, patch).await
    }

    pub async fn delete(&self, of: &Type, name: &str) -> Result<()> {
        self.kube.delete(of, &self.namespace, name).await
    }
}

/// Both sides, as far as they can be reached: of an environment whose cluster is gone, Argo CD's may remain.
#[derive(Clone)]
pub struct Sides {
    pub argocd: ArgoCd,
    pub workloads: Option<Kube>,
}

/// Both, without limits on reading, for streams that last.
pub async fn open_for_streams(spec: &Spec, own: &Path) -> Result<(ArgoCd, Kube)> {
    let workloads = Kube::open_for_streams(own, None).await?;
    let place = spec.argocd.place(own);
    let kube = match place.context {
        None => workloads.clone(),
        context => Kube::open_for_streams(place.kubeconfig, context).await?,
    };
    Ok((ArgoCd { kube, namespace: place.namespace.to_owned() }, workloads))
}
