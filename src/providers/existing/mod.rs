//! A cluster that is there already: nothing of it is made or deleted. `up` puts an environment into it, and `down` takes
//! out what `up` put in.

mod check;
pub mod deployed;
pub mod flavour;
mod kubeconfig;
pub mod settle;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::argocd::side::ArgoCd;
use crate::audit::Audit;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::names::EnvName;
use crate::ports::kube::{Kube, Type};
use crate::ports::{dirs, kubeconfig as kubeconfigs};
use crate::providers::{Checked, ClusterState, Provider, answering};
use crate::spec::{ExistingSpec, SharedArgoCd};

pub struct Existing {
    pub spec: ExistingSpec,
}

/// The cluster by the user's own kubeconfig, if it answers.
async fn open(spec: &ExistingSpec) -> Result<Kube> {
    answering(&spec.kubeconfig, &spec.context).await
}

#[async_trait]
impl Provider for Existing {
    fn name(&self) -> &'static str {
        "existing"
    }

    fn describe(&self) -> String {
        let ExistingSpec { context, flavour, .. } = &self.spec;
        format!("kubeconfig of its own for the {flavour} cluster of context {context}, which stays as it is")
    }

    fn cluster(&self, _name: &EnvName) -> String {
        self.spec.context.clone()
    }

    fn context(&self, name: &EnvName) -> String {
        name.cluster()
    }

    fn owns_cluster(&self) -> bool {
        false
    }

    fn ground(&self, name: &EnvName) -> Option<String> {
        let ExistingSpec { context, flavour, has_argocd, .. } = &self.spec;
        let argocd = match has_argocd {
            true => "deployed by the Argo CD that is there",
            false => "with an Argo CD of its own",
        };
        Some(format!("{name} will be put into the {flavour} cluster of context {context}, {argocd}."))
    }

    async fn check(&self, cx: &Context) -> Result<Checked> {
        let kube = open(&self.spec).await.map_err(|error| error.with_kind(crate::error::Kind::Preflight))?;
        Ok(Checked { findings: check::check(cx, &self.spec, kube).await?, nodes: None, absent: false })
    }

    /// There for the environment, or not; of the cluster itself only that it answers.
    async fn observe(&self, cx: &Context) -> Result<ClusterState> {
        if !cx.kubeconfig().exists() {
            return Ok(ClusterState::Absent);
        }
        open(&self.spec).await.map(|_| ClusterState::Running)
    }

    fn not_ours(&self, _cx: &Context, why: &str) -> Error {
        Error::preflight(format!("the cluster of context {} cannot take the environment: {why}", self.spec.context))
    }

    async fn create(&self, cx: &Context) -> Result<()> {
        let kube = open(&self.spec).await?;
        // Before anything is made in it: what comes later is the environment's, if it is one of its Applications'.
        let namespaces = kube.list(&Type::new("v1", "Namespace"), "", "").await?;
        let names = namespaces.iter().filter_map(|one| Some(one["metadata"]["name"].as_str()?.to_owned())).collect();
        cx.note(|facts| _ = facts.namespaces.get_or_insert(names))?;
        self.write_kubeconfig(cx).await
    }

    async fn start(&self, cx: &Context) -> Result<()> {
        self.write_kubeconfig(cx).await
    }

    async fn write_kubeconfig(&self, cx: &Context) -> Result<()> {
        let text = kubeconfig::isolated(&self.spec.kubeconfig, &self.spec.context, &self.context(&cx.spec.name))?;
        dirs::write_private(&cx.kubeconfig(), text.as_bytes())?;
        cx.forget_kube();
        open(&self.spec).await.map(drop)
    }

    fn can_pause(&self) -> Result<()> {
        let context = &self.spec.context;
        Err(Error::usage(format!("the cluster of context {context} is not k8tre's, so it cannot be paused"))
            .hint("what runs in it stops with `k8tre dev down`; one Application rests with `k8tre dev hold APP`"))
    }

    async fn stop(&self, _cx: &Context) -> Result<()> {
        self.can_pause()
    }

    async fn delete(&self, cx: &Context) -> Result<()> {
        kubeconfigs::remove(&cx.kubeconfig())?;
        cx.forget_kube();
        Ok(())
    }

    async fn server_for(&self, _name: &EnvName, _argocd: &ArgoCd, _shared: &SharedArgoCd) -> Result<String> {
        Err(Error::usage("an existing cluster is deployed to by an Argo CD in it, not by a shared one")
            .hint("leave --argocd away"))
    }

    async fn has_expiry(&self, _cx: &Context, _expires: Timestamp) -> Result<bool> {
        // The cluster itself does not end; the environment's end is on its cluster Secret.
        Ok(true)
    }

    async fn set_expiry(&self, _cx: &Context, _expires: Timestamp) -> Result<()> {
        Ok(())
    }

    async fn audit(&self, cx: &Context, _belongings: &[String], audit: &mut Audit) -> Result<()> {
        let kube = open(&self.spec).await?;
        deployed::audit(cx, &kube, &self.spec, audit).await
    }
}
