//! Claims that stay Pending, and volumes that cannot be attached.

use serde_json::Value;

use super::evidence::{Evidence, items, name_of, namespace_of};
use super::view::View;
use super::words::{group, pattern};
use super::{Cause, Family};

pub const FAMILY: Family = Family {
    codes: &[
        "storage-class-missing",
        "storage-class-default-missing",
        "storage-provisioner-missing",
        "claim-missing",
        "claim-pending",
    ],
    explain,
};

const REASONS: [&str; 5] =
    ["ProvisioningFailed", "FailedBinding", "ExternalProvisioning", "WaitForPodScheduled", "WaitForFirstConsumer"];

fn explain(view: &View) -> Option<Cause> {
    let of_pods = view.pods.iter().flat_map(|pod| claims_of(pod.object).map(move |name| (pod, name)));
    let missing = of_pods.clone().find_map(|(pod, name)| {
        let said = format!("persistentvolumeclaim \"{name}\" not found");
        scheduling_message(pod.object).filter(|message| message.contains(&said))?;
        let cause = Cause::new("claim-missing").because_all(pod.links());
        Some(cause.because(format!("no PVC \"{name}\"")).hint(format!("kubectl -n {} get pvc", pod.namespace)))
    });
    // A claim explains more than the pod that waits for it, and is shorter to say.
    let of_pods = of_pods.filter_map(|(pod, name)| view.evidence.claim(pod.namespace, name));
    let is_pending = |claim: &&Value| claim["status"]["phase"] == "Pending";
    let declared = view.evidence.claims.iter().filter(is_pending).filter(|claim| view.owns(claim));
    let pending = of_pods.filter(is_pending).chain(declared);
    missing.or_else(|| pending.into_iter().find_map(|claim| of_claim(view.evidence, claim, waits(view, claim))))
}

/// Whether a pod of this Application waits for the claim.
fn waits(view: &View, claim: &Value) -> bool {
    view.pods
        .iter()
        .any(|pod| pod.namespace == namespace_of(claim) && claims_of(pod.object).any(|name| name == name_of(claim)))
}

fn of_claim(evidence: &Evidence, claim: &Value, waited_for: bool) -> Option<Cause> {
    let (namespace, name) = (namespace_of(claim), name_of(claim));
    let message = evidence.event_message("PersistentVolumeClaim", namespace, name, &REASONS).unwrap_or_default();
    let made = |code| Cause::new(code).because(format!("PVC {name} Pending"));
    let classes = "kubectl get storageclass";
    let class = claim["spec"]["storageClassName"].as_str();
    let known = class.and_then(|class| evidence.storage_classes.iter().find(|one| name_of(one) == class));

    if let Some(class) = group(pattern!(r#"storageclass\.storage\.k8s\.io "([^"]+)" not found"#), message) {
        return Some(made("storage-class-missing").because(format!("no StorageClass \"{class}\"")).hint(classes));
    }
    if let (Some(class), None) = (class.filter(|class| !class.is_empty()), known)
        && !evidence.storage_classes.is_empty()
    {
        return Some(made("storage-class-missing").because(format!("no StorageClass \"{class}\"")).hint(classes));
    }
    if message.contains("no storage class is set") || (class.is_none() && !evidence.storage_classes.is_empty()) {
        let root = match class {
            Some("") => "it names no StorageClass (\"\"), and no PersistentVolume fits",
            _ => "it names no StorageClass, and none is the default",
        };
        return Some(made("storage-class-default-missing").because(root).hint(classes));
    }
    let describe = format!("kubectl -n {namespace} describe pvc {name}");
    let provisioner = known.and_then(|class| class["provisioner"].as_str());
    let waiting = pattern!(r"(?i)external provisioner '?([^'\s]+)'?").captures(message);
    if let Some(found) = &waiting {
        let root = format!("provisioner {} does not answer", &found[1]);
        return Some(
            made("storage-provisioner-missing").because(root).hint("kubectl get pods -A | grep -i provisioner"),
        );
    }
    if provisioner == Some("kubernetes.io/no-provisioner") && waited_for {
        let class = class.unwrap_or_default();
        let root = format!("StorageClass {class} makes no volumes, and no PersistentVolume fits");
        return Some(made("storage-provisioner-missing").because(root).hint("kubectl get pv"));
    }
    // A claim that only waits for a pod that is not there yet is not what holds it up.
    if message.is_empty() || message.contains("waiting for first consumer") || message.contains("waiting for pod") {
        return None;
    }
    Some(made("claim-pending").because(message).hint(describe))
}

fn claims_of(pod: &Value) -> impl Iterator<Item = &str> + Clone {
    let volumes = pod["spec"]["volumes"].as_array().map(Vec::as_slice).unwrap_or_default();
    volumes.iter().filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str())
}

fn scheduling_message(pod: &Value) -> Option<&str> {
    items(&pod["status"]["conditions"]).find(|c| c["type"] == "PodScheduled" && c["status"] == "False")?["message"]
        .as_str()
}
