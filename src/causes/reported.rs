//! What Argo CD itself says, where nothing nearer to the root was found.

use serde_json::Value;

use super::evidence::{items, name_of, namespace_of};
use super::view::View;
use super::words::{group, innermost, pattern, quoted};
use super::{Cause, Family};

pub const FAMILY: Family = Family {
    codes: &[
        "comparison-error",
        "sync-retries",
        "sync-failed",
        "unhealthy-object",
        "sync-waiting",
        "sync-off",
        "nothing-deployed",
    ],
    explain,
};

fn explain(view: &View) -> Option<Cause> {
    let compared = view.conditions().find(|(kind, _)| *kind != "SyncError").map(|(kind, message)| {
        Cause::new("comparison-error").because(format!("{kind}: {}", innermost(message))).hint(conditions(view))
    });
    compared
        .or_else(|| failed_sync(view))
        .or_else(|| unhealthy(view))
        .or_else(|| waiting(view))
        .or_else(|| off(view))
        .or_else(|| nothing(view))
}

fn conditions(view: &View) -> String {
    format!("kubectl -n argocd get application {} -o jsonpath='{{.status.conditions}}'", view.name())
}

fn failed_sync(view: &View) -> Option<Cause> {
    if !view.sync_failed() {
        return None;
    }
    let retries = view.operation()["retryCount"].as_u64().unwrap_or(0);
    let over = view.operation()["phase"] != "Running" && retries > 0;
    let code = if over { "sync-retries" } else { "sync-failed" };
    let cause = Cause::new(code).because_all(over.then(|| format!("Argo CD gave up after {retries} retries")));
    let message = view.operation_message();
    let hint = format!("kubectl -n argocd get application {} -o jsonpath='{{.status.operationState}}'", view.name());
    Some(cause.because(message.rsplit("reason: ").next().unwrap_or(message)).hint(hint))
}

/// The object that Argo CD blames, with its own words on it.
fn unhealthy(view: &View) -> Option<Cause> {
    let told = view.resources().find(|one| one["health"]["status"].as_str().is_some_and(|status| status != "Healthy"));
    let blamed = blamed(view.app);
    let (kind, namespace, name) = match (&blamed, told) {
        (Some((_, kind, namespace, name)), _) => (*kind, *namespace, *name),
        (None, Some(one)) => {
            (one["kind"].as_str()?, one["namespace"].as_str().unwrap_or_default(), one["name"].as_str()?)
        }
        (None, None) => return None,
    };
    let evidence = view.evidence;
    let lists: [&[Value]; 5] =
        [&evidence.objects, &evidence.workloads, &evidence.jobs, &evidence.claims, &evidence.pods];
    let object = lists
        .into_iter()
        .flatten()
        .find(|one| one["kind"] == kind && name_of(one) == name && namespace_of(one) == namespace);
    let said = told
        .and_then(|one| one["health"]["message"].as_str())
        .map(str::to_owned)
        .or_else(|| object.and_then(own_words));
    let health = view.app["status"]["health"]["status"].as_str().unwrap_or("unhealthy");
    let scope = if namespace.is_empty() { String::new() } else { format!("-n {namespace} ") };
    let silent = || "it does not say why".to_owned();
    let cause =
        Cause::new("unhealthy-object").because(format!("{kind} {name} {health}")).because(said.unwrap_or_else(silent));
    Some(cause.hint(format!("kubectl {scope}describe {} {name}", kind.to_lowercase())))
}

/// What an object of any kind says against itself: a condition that is false, or how far it is.
fn own_words(object: &Value) -> Option<String> {
    let status = &object["status"];
    let against = items(&status["conditions"]).filter(|c| c["status"] == "False" || c["type"] == "ReplicaFailure");
    let said = against.filter_map(|c| c["message"].as_str()).find(|message| !message.is_empty());
    let rollout = object["spec"]["replicas"]
        .as_u64()
        .map(|wanted| format!("{} of {wanted} replicas ready", status["readyReplicas"].as_u64().unwrap_or(0)));
    rollout.or_else(|| said.map(str::to_owned)).or_else(|| {
        let phase = status["phase"].as_str().or_else(|| status["state"].as_str())?;
        Some(format!("its phase is {phase}"))
    })
}

fn waiting(view: &View) -> Option<Cause> {
    let operation = view.operation();
    let message = view.operation_message();
    if operation["phase"] != "Running" || message.is_empty() {
        return None;
    }
    Some(
        Cause::new("sync-waiting")
            .because(message)
            .hint(format!("kubectl -n argocd get application {} -w", view.name())),
    )
}

/// Nobody has asked Argo CD to deploy it, and it does not by itself.
fn off(view: &View) -> Option<Cause> {
    let automated = &view.app["spec"]["syncPolicy"]["automated"];
    let is_off = automated.is_null() || automated["enabled"] == false;
    let status = &view.app["status"];
    let waits =
        status["sync"]["status"] == "OutOfSync" && view.operation().is_null() && view.app["operation"].is_null();
    let hint = format!("kubectl -n argocd get application {} -o jsonpath='{{.spec.syncPolicy}}'", view.name());
    (is_off && waits).then(|| Cause::new("sync-off").because("it was never deployed: automatic sync is off").hint(hint))
}

fn nothing(view: &View) -> Option<Cause> {
    let done = view.app["status"]["sync"]["status"] == "Synced" && view.resources().next().is_none();
    let path = view.app["spec"]["source"]["path"].as_str().unwrap_or(".");
    done.then(|| {
        Cause::new("nothing-deployed")
            .because(format!("{path} renders no objects"))
            .hint(format!("kustomize build {}", quoted(path)))
    })
}

/// The object of `Caused by apps/Deployment:namespace/name`, as group, kind, namespace, name.
pub fn blamed(application: &Value) -> Option<(&str, &str, &str, &str)> {
    let message = application["status"]["health"]["message"].as_str()?;
    let found = group(pattern!(r"^Caused by (\S+:\S+)$"), message)?;
    let (kind, name) = found.rsplit_once(':')?;
    let (group, kind) = kind.split_once('/').unwrap_or(("", kind));
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    Some((group, kind, namespace, name))
}
