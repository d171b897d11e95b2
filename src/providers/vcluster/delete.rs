//! A vCluster taken away: its namespace with all that is in it, and what its chart may have made beside.
//!
//! Helm is not needed for it: an uninstall would leave claims and the namespace, and returns while pods still end.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::host::{Host, foreign, namespace_type};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::ports::kube::{Type, name_of};
use crate::steps::CLUSTER;

const LIMIT: Duration = Duration::from_secs(150);
const POLL: Duration = Duration::from_millis(300);
/// Provisioners delete a volume after its claim.
const VOLUME_LIMIT: Duration = Duration::from_secs(30);

/// All of it; fine when nothing is there. What is not ours stays, with an error.
pub async fn all(cx: &Context, host: &Host<'_>) -> Result<()> {
    let volumes = volumes(host).await;
    if let Some(found) = host.namespace().await? {
        if let Some(why) = foreign(&found, &cx.id) {
            return Err(Error::failed(format!(
                "the namespace {} in {} is not this environment's and stays: {why}",
                host.names.namespace, host.spec.host_context
            )));
        }
        namespace(cx, host).await?;
    }
    for (of, name) in cluster_scoped(host).await {
        host.kube.delete(&of, "", &name).await?;
    }
    let deadline = Instant::now() + VOLUME_LIMIT;
    while Instant::now() < deadline && remaining(host, &volumes).await.iter().any(|volume| volume.going) {
        cx.detail(CLUSTER, "waiting for the host to give its volumes back");
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

/// Deletes the namespace, and waits until it is gone.
pub async fn namespace(cx: &Context, host: &Host<'_>) -> Result<()> {
    let (of, name) = (namespace_type(), &host.names.namespace);
    host.kube.delete(&of, "", name).await?;
    let deadline = Instant::now() + LIMIT;
    while let Some(found) = host.kube.get(&of, "", name).await? {
        // Somebody made another one of that name meanwhile.
        if foreign(&found, &cx.id).is_some() {
            return Ok(());
        }
        let why = holding(&found);
        cx.detail(CLUSTER, &format!("waiting until the namespace {name} is gone{why}"));
        if Instant::now() >= deadline {
            return Err(Error::failed(format!(
                "the namespace {name} in {} was not gone within {} s{why}",
                host.spec.host_context,
                LIMIT.as_secs()
            ))
            .hint(host.kubectl(&format!("get namespace {name} -o yaml"))));
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

/// What keeps a namespace from going, in the host's words.
fn holding(namespace: &Value) -> String {
    let conditions = namespace["status"]["conditions"].as_array().into_iter().flatten();
    let mut held = conditions.filter(|one| one["status"] == "True").filter_map(|one| one["message"].as_str());
    held.next().map(|why| format!(": {}", crate::text::one_line(why, 300))).unwrap_or_default()
}

/// Names of the volumes that its claims hold; none where nobody may ask.
pub async fn volumes(host: &Host<'_>) -> Vec<String> {
    let volumes = host.kube.list(&Type::new("v1", "PersistentVolume"), "", "").await.unwrap_or_default();
    let ours = volumes.iter().filter(|one| one["spec"]["claimRef"]["namespace"] == *host.names.namespace);
    ours.filter_map(|one| name_of(one).ok().map(str::to_owned)).collect()
}

/// A volume that is still there after its claim.
pub struct Remaining {
    pub name: String,
    /// Whether its class keeps it on purpose.
    pub kept: bool,
    /// Whether it is on its way.
    pub going: bool,
    pub why: String,
}

pub async fn remaining(host: &Host<'_>, volumes: &[String]) -> Vec<Remaining> {
    let mut left = Vec::new();
    for name in volumes {
        if let Ok(Some(volume)) = host.kube.get(&Type::new("v1", "PersistentVolume"), "", name).await {
            left.push(still_there(name, &volume));
        }
    }
    left
}

fn still_there(name: &str, volume: &Value) -> Remaining {
    let kept = volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain";
    let failed = volume["status"]["phase"] == "Failed";
    let why = match (kept, failed) {
        (true, _) => "its reclaim policy is Retain".to_owned(),
        (false, true) => {
            let said = volume["status"]["message"].as_str().unwrap_or("nobody says why");
            format!("the host could not delete it: {}", crate::text::one_line(said, 200))
        }
        (false, false) => "the host has not deleted it yet".to_owned(),
    };
    Remaining { name: name.to_owned(), kept, going: !kept && !failed, why }
}

/// What the chart makes outside of the namespace if the user's values ask for it; Helm marks it.
pub async fn cluster_scoped(host: &Host<'_>) -> Vec<(Type, String)> {
    let mut found = Vec::new();
    for kind in ["ClusterRole", "ClusterRoleBinding"] {
        let of = Type::new("rbac.authorization.k8s.io/v1", kind);
        // Who may not list them could not have made any.
        for object in host.kube.list(&of, "", "app=vcluster").await.unwrap_or_default() {
            let annotations = &object["metadata"]["annotations"];
            let ours = annotations["meta.helm.sh/release-name"] == *host.names.release
                && annotations["meta.helm.sh/release-namespace"] == *host.names.namespace;
            if let (true, Ok(name)) = (ours, name_of(&object)) {
                found.push((of.clone(), name.to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_volume_that_stays_says_why_and_one_that_is_on_its_way_is_waited_for() {
        let volume = |policy: &str, phase: &str| json!({"spec": {"persistentVolumeReclaimPolicy": policy}, "status": {"phase": phase, "message": "no plugin"}});
        let retained = still_there("a", &volume("Retain", "Released"));
        assert!(retained.kept && !retained.going && retained.why.contains("Retain"));
        let failed = still_there("a", &volume("Delete", "Failed"));
        assert!(!failed.kept && !failed.going && failed.why.contains("no plugin"));
        let going = still_there("a", &volume("Delete", "Released"));
        assert!(!going.kept && going.going);
    }

    #[test]
    fn what_holds_a_namespace_is_said_in_the_hosts_words() {
        let held = json!({"status": {"conditions": [
            {"type": "NamespaceDeletionContentFailure", "status": "False", "message": "fine"},
            {"type": "NamespaceFinalizersRemaining", "status": "True", "message": "a finalizer of x in 1 resource"},
        ]}});
        assert_eq!(holding(&held), ": a finalizer of x in 1 resource");
        assert_eq!(holding(&json!({})), "");
    }
}
