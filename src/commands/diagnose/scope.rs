//! What of a cluster is in the archive: all of one that is the environment's own, and of one that stays only what is the
//! environment's.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::cluster::bounded;
use crate::argocd::NAMESPACE;
use crate::argocd::side::ArgoCd;
use crate::error::Result;
use crate::journal::Journal;
use crate::providers;
use crate::providers::existing::deployed::Deployed;
use crate::shared::remains::{Remains, called};
use crate::steps::objects;

pub enum Scope {
    Everything,
    Of {
        id: String,
        /// Where its Applications deploy to, and its own Argo CD's.
        namespaces: BTreeSet<String>,
        /// Its Applications, ApplicationSets and AppProjects, by name.
        names: BTreeSet<String>,
    },
}

impl Scope {
    pub async fn of(journal: &Journal, kubeconfig: &Path) -> Result<Scope> {
        let spec = &journal.spec;
        if providers::of(spec).owns_cluster() {
            return Ok(Scope::Everything);
        }
        let argocd = bounded(ArgoCd::open(spec, kubeconfig)).await?;
        let remains = bounded(Remains::of(spec, &journal.id, &argocd)).await?;
        let mut deployed = Deployed::default();
        deployed.add(&remains.applications);
        let mut namespaces = deployed.namespaces;
        // Of somebody else's Argo CD only what is marked.
        namespaces.remove(NAMESPACE);
        namespaces.extend(spec.installs_argocd().then(|| NAMESPACE.to_owned()));
        let all = remains.applications.iter().chain(&remains.sets).chain(&remains.projects);
        Ok(Scope::Of { id: journal.id.clone(), namespaces, names: all.map(|one| called(one).to_owned()).collect() })
    }

    /// Nothing but what carries the environment's mark.
    pub fn marked(journal: &Journal) -> Scope {
        Scope::Of { id: journal.id.clone(), namespaces: BTreeSet::new(), names: BTreeSet::new() }
    }

    pub fn has(&self, kind: &str, object: &Value) -> bool {
        let Scope::Of { id, namespaces, names } = self else { return true };
        let inside = |namespace: &Value| namespace.as_str().is_some_and(|namespace| namespaces.contains(namespace));
        let metadata = &object["metadata"];
        match kind {
            // What it runs on.
            "Node" | "StorageClass" => true,
            "Namespace" => inside(&metadata["name"]),
            "PersistentVolume" => inside(&object["spec"]["claimRef"]["namespace"]),
            "Application" | "ApplicationSet" | "AppProject" => names.contains(called(object)),
            _ => inside(&metadata["namespace"]) || objects::owner(object) == Some(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_a_cluster_that_stays_nothing_of_others_is_taken() {
        let scope = Scope::Of {
            id: "1".into(),
            namespaces: ["portal".to_owned()].into(),
            names: ["portal-alice".to_owned()].into(),
        };
        let object = |name: &str, namespace: &str, id: &str| json!({"metadata": {"name": name, "namespace": namespace, "annotations": {"k8tre.dev/environment-id": id}}});
        assert!(scope.has("Pod", &object("a", "portal", "")) && !scope.has("Pod", &object("a", "theirs", "2")));
        assert!(scope.has("Service", &object("k8tre-git", "argocd", "1")));
        assert!(scope.has("Application", &object("portal-alice", "argocd", "")));
        assert!(!scope.has("Application", &object("theirs", "argocd", "")));
        assert!(
            scope.has("Namespace", &object("portal", "", "")) && !scope.has("Namespace", &object("theirs", "", ""))
        );
        assert!(Scope::Everything.has("Pod", &object("a", "theirs", "2")));
    }
}
