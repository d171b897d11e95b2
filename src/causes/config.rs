//! Secrets, ConfigMaps and keys that a pod names and that are not there, and what should have made them.

use serde_json::Value;

use super::evidence::{Evidence, items, name_of, namespace_of};
use super::view::{Pod, View};
use super::words::{group, pattern, quoted};
use super::{Cause, Family};

pub const FAMILY: Family = Family {
    codes: &[
        "secret-missing",
        "external-secret",
        "config-map-missing",
        "config-key-missing",
        "volume-mount",
        "pod-sandbox",
        "container-config",
    ],
    explain,
};

fn explain(view: &View) -> Option<Cause> {
    let of_pods = view.pods.iter().find_map(|pod| of_container(view, pod).or_else(|| of_start(view, pod)));
    of_pods.or_else(|| {
        let failing = view.evidence.external_secrets.iter().filter(|one| view.owns(one));
        failing.into_iter().find_map(|one| external(Cause::new("external-secret"), one))
    })
}

fn of_container(view: &View, pod: &Pod) -> Option<Cause> {
    let (reason, message) = pod.containers().find_map(|container| container.waiting())?;
    if reason != "CreateContainerConfigError" {
        return None;
    }
    // What pod and container it is was said already.
    let said = message.split(" (pod: ").next().unwrap_or(message);
    let other = || Cause::new("container-config").because_all(pod.links()).because(said).hint(pod.describe());
    Some(absent(view.evidence, pod, message).unwrap_or_else(other))
}

/// A pod that has a node but does not get as far as its containers.
fn of_start(view: &View, pod: &Pod) -> Option<Cause> {
    let status = &pod.object["status"];
    let all = || items(&status["initContainerStatuses"]).chain(items(&status["containerStatuses"]));
    let starting = status["phase"] == "Pending"
        && all()
            .all(|c| matches!(c["state"]["waiting"]["reason"].as_str(), Some("ContainerCreating" | "PodInitializing")));
    if !starting || all().next().is_none() {
        return None;
    }
    let event = |reasons: &[&str]| view.evidence.event_message("Pod", pod.namespace, pod.name, reasons);
    if let Some(message) = event(&["FailedMount", "FailedAttachVolume"]) {
        let volume = group(pattern!(r#"for volume "([^"]+)""#), message).unwrap_or("of the pod");
        let reason = pattern!(r#"^.*?for volume "[^"]+" ?: ?"#).replace(message, "");
        let other = || {
            let cause = Cause::new("volume-mount")
                .because_all(pod.links())
                .because(format!("volume {volume} cannot be mounted"));
            cause.because(reason).hint(pod.describe())
        };
        return Some(absent(view.evidence, pod, message).unwrap_or_else(other));
    }
    let message = event(&["FailedCreatePodSandBox"])?;
    let reason = message.rsplit("failed to setup network for sandbox").next().unwrap_or(message);
    let cause = Cause::new("pod-sandbox").because_all(pod.links()).because("its network cannot be set up");
    Some(cause.because(super::words::innermost(reason)).hint(pod.describe()))
}

/// The Secret, ConfigMap or key which a message says is not there.
fn absent(evidence: &Evidence, pod: &Pod, message: &str) -> Option<Cause> {
    let made = |code| Cause::new(code).because_all(pod.links());
    let get = |kind: &str| format!("kubectl -n {} get {kind}", pod.namespace);
    if let Some(name) = group(pattern!(r#"secrets? "([^"]+)" not found"#), message) {
        let cause = made("secret-missing").because(format!("no Secret \"{name}\""));
        let producer = evidence.external_secrets.iter().find(|one| {
            let target = one["spec"]["target"]["name"].as_str().unwrap_or(name_of(one));
            namespace_of(one) == pod.namespace && target == name
        });
        return Some(
            match producer
                .and_then(|one| external(made("external-secret").because(format!("no Secret \"{name}\"")), one))
            {
                Some(cause) => cause,
                None => cause.hint(get("secrets,externalsecrets")),
            },
        );
    }
    if let Some(name) = group(pattern!(r#"configmaps? "([^"]+)" not found"#), message) {
        return Some(made("config-map-missing").because(format!("no ConfigMap \"{name}\"")).hint(get("configmaps")));
    }
    if let Some(found) = pattern!(r"couldn't find key (\S+) in (Secret|ConfigMap) [^/\s]+/(\S+)").captures(message) {
        let cause =
            made("config-key-missing").because(format!("{} \"{}\" has no key \"{}\"", &found[2], &found[3], &found[1]));
        return Some(cause.hint(format!(
            "kubectl -n {} describe {} {}",
            pod.namespace,
            found[2].to_lowercase(),
            quoted(&found[3])
        )));
    }
    let key = group(pattern!(r"references non-existent (?:secret|config) key: (\S+)"), message)?;
    Some(
        made("config-key-missing")
            .because(format!("a volume names the key \"{key}\", which is not there"))
            .hint(pod.describe()),
    )
}

/// Why an ExternalSecret made no Secret.
fn external(cause: Cause, one: &Value) -> Option<Cause> {
    let ready = items(&one["status"]["conditions"]).find(|c| c["type"] == "Ready");
    let message = match ready {
        Some(ready) if ready["status"] == "True" => return None,
        Some(ready) => ready["message"].as_str().or(ready["reason"].as_str()).unwrap_or("it is not ready"),
        None => "the operator has not looked at it: is external-secrets running?",
    };
    let (namespace, name) = (namespace_of(one), name_of(one));
    let cause = cause.because(format!("ExternalSecret {name} is not ready")).because(message);
    Some(cause.hint(format!("kubectl -n {namespace} describe externalsecret {name}")))
}
