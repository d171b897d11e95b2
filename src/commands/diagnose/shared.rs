//! What an Argo CD that others use too has of the environment, and nothing of anybody else's.

use serde_json::{Value, json};

use super::archive::Archive;
use super::cluster::{bounded, values_of};
use crate::argocd::side::ArgoCd;
use crate::error::Result;
use crate::journal::Journal;
use crate::ports::kube::secret_text;
use crate::shared::remains::Remains;

/// Reads it; none where the environment has its Argo CD to itself.
pub async fn read(journal: &Journal, kubeconfig: &std::path::Path) -> Result<Option<Remains>> {
    let spec = &journal.spec;
    if spec.argocd.shared().is_none() {
        return Ok(None);
    }
    let argocd = bounded(ArgoCd::open(spec, kubeconfig)).await?;
    bounded(argocd.kube.ready()).await?;
    bounded(Remains::of(spec, &journal.id, &argocd)).await.map(Some)
}

/// The values that are nobody's business.
pub fn secret_values(remains: &Remains) -> Vec<String> {
    values_of(remains.secret.iter().chain(&remains.repositories))
}

/// Puts it into the archive; of a Secret only what is no secret in it.
pub fn add(remains: &Remains, archive: &mut Archive) -> Result<()> {
    archive.json("shared/Application.json", &remains.applications)?;
    archive.json("shared/ApplicationSet.json", &remains.sets)?;
    archive.json("shared/AppProject.json", &remains.projects)?;
    let open = |secret: &Value| {
        let of = |key: &str| secret_text(secret, key);
        json!({
            "metadata": secret["metadata"], "name": of("name"), "server": of("server"), "url": of("url"),
            "project": of("project"), "namespaces": of("namespaces"), "clusterResources": of("clusterResources"),
        })
    };
    let secrets = remains.secret.iter().chain(&remains.repositories);
    archive.json("shared/registration.json", &secrets.map(open).collect::<Vec<_>>())
}
