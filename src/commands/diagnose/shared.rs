//! What an Argo CD that others use too has of the environment, and nothing of anybody else's.

use serde_json::{Value, json};

use super::archive::Archive;
use super::cluster::{bounded, values_of};
use crate::argocd::side::ArgoCd;
use crate::error::Result;
use crate::journal::Journal;
use crate::names::EnvName;
use crate::ports::kube::secret_text;
use crate::shared::check::{project_type, secret_type};
use crate::shared::rights::{repository_secrets, root_project, secret_name};
use crate::steps::look::{application_set_type, application_type};

/// All of it that could be had.
pub struct OfShared {
    secrets: Vec<Value>,
    others: Vec<(&'static str, Result<Vec<Value>>)>,
}

/// Reads it; none where the environment has its Argo CD to itself.
pub async fn read(journal: &Journal, kubeconfig: &std::path::Path) -> Result<Option<OfShared>> {
    let spec = &journal.spec;
    if spec.argocd.shared().is_none() {
        return Ok(None);
    }
    let argocd = bounded(ArgoCd::open(spec, kubeconfig)).await?;
    bounded(argocd.kube.ready()).await?;
    let mut secrets = Vec::new();
    for name in [secret_name(&spec.name)].iter().chain(&repository_secrets(&spec.name)) {
        // Who gave no login may not ask for the Secret of one.
        secrets.extend(bounded(argocd.get(&secret_type(), name)).await.ok().flatten());
    }
    let others = vec![
        ("Application", bounded(applications(&argocd, &spec.name)).await),
        ("ApplicationSet", bounded(sets(&argocd, &spec.name)).await),
        ("AppProject", bounded(projects(&argocd, &spec.name)).await),
    ];
    Ok(Some(OfShared { secrets, others }))
}

fn is_of(project: &Value, name: &EnvName) -> bool {
    *project == *name.project() || *project == *root_project(name)
}

async fn applications(argocd: &ArgoCd, name: &EnvName) -> Result<Vec<Value>> {
    let all = argocd.list(&application_type(), "").await?;
    Ok(all.into_iter().filter(|app| is_of(&app["spec"]["project"], name)).collect())
}

async fn sets(argocd: &ArgoCd, name: &EnvName) -> Result<Vec<Value>> {
    let all = argocd.list(&application_set_type(), "").await?;
    Ok(all.into_iter().filter(|set| is_of(&set["spec"]["template"]["spec"]["project"], name)).collect())
}

async fn projects(argocd: &ArgoCd, name: &EnvName) -> Result<Vec<Value>> {
    let mut projects = Vec::new();
    for project in [name.project(), root_project(name)] {
        projects.extend(argocd.get(&project_type(), &project).await?);
    }
    Ok(projects)
}

impl OfShared {
    /// The values that are nobody's business.
    pub fn secret_values(&self) -> Vec<String> {
        values_of(&self.secrets)
    }

    /// Puts it into the archive; of a Secret only what is no secret in it.
    pub fn add(self, archive: &mut Archive) -> Result<()> {
        for (kind, objects) in self.others {
            if let Some(objects) = archive.attempt(&format!("shared/{kind}"), objects) {
                archive.json(&format!("shared/{kind}.json"), &objects)?;
            }
        }
        let open = |secret: &Value| {
            let of = |key: &str| secret_text(secret, key);
            json!({
                "metadata": secret["metadata"], "name": of("name"), "server": of("server"), "url": of("url"),
                "project": of("project"), "namespaces": of("namespaces"), "clusterResources": of("clusterResources"),
            })
        };
        archive.json("shared/registration.json", &self.secrets.iter().map(open).collect::<Vec<_>>())
    }
}
