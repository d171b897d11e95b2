//! provisional
use std::collections::BTreeMap;
use crate::error::Result;
use crate::ports::git::{Checkout, CommitId};
use crate::spec::Spec;
pub struct P { pub applications: Vec<A> }
pub struct A { pub name: String }
pub struct EnvironmentOverlay {
    pub base: CommitId,
    pub files: BTreeMap<String, String>,
    pub seeds: BTreeMap<String, String>,
    pub remove: Vec<String>,
    pub root_application: serde_json::Value,
    pub prediction: P,
}
impl EnvironmentOverlay {
    pub fn of(spec: &Spec, _base: Option<&str>) -> Result<Self> {
        let checkout = Checkout::open(&spec.repo)?;
        Ok(EnvironmentOverlay { base: checkout.resolve(&spec.base)?, files: BTreeMap::from([("overlays/x".into(), "x".into())]), seeds: BTreeMap::new(), remove: vec![],
            root_application: serde_json::json!({"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":{"name":spec.name.root_application(),"namespace":"argocd"},"spec":{"project":"default","source":{"repoURL":crate::steps::git_server::url(),"targetRevision":spec.name.branch(),"path":"apps/identity/envs/dev"},"destination":{"server":"https://kubernetes.default.svc","namespace":"identity"},"syncPolicy":{"automated":{"prune":true,"selfHeal":true},"syncOptions":["CreateNamespace=true"]}}}),
            prediction: P { applications: vec![] } })
    }
    pub fn check(&self, _spec: &Spec) -> Result<()> { Ok(()) }
}
