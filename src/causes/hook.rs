//! Jobs: those of an Application, and the hooks of its sync.

use serde_json::Value;

use super::crash::{ending, of_job};
use super::evidence::{is, items, name_of, namespace_of};
use super::view::{Pod, View};
use super::{Cause, Family};
use crate::ports::kube::condition;

pub const FAMILY: Family = Family { codes: &["hook-failed", "job-failed", "hook-waiting"], explain };

fn explain(view: &View) -> Option<Cause> {
    let pods = view.pods.iter().filter(|pod| of_job(pod.object) && !is_complete(view, pod));
    pods.into_iter().find_map(|pod| of_pod(view, pod)).or_else(|| of_hook(view)).or_else(|| of_failed_job(view))
}

fn of_pod(view: &View, pod: &Pod) -> Option<Cause> {
    let container = pod.containers().find(|container| container.ended().is_some_and(|ended| ended["exitCode"] != 0))?;
    let code = if pod.hook.is_some() { "hook-failed" } else { "job-failed" };
    ending(view, pod, &container, code)
}

/// A pod of a Job which has succeeded since is history.
fn is_complete(view: &View, pod: &Pod) -> bool {
    let owner = items(&pod.object["metadata"]["ownerReferences"]).find_map(|owner| owner["name"].as_str());
    let job = owner.and_then(|name| view.evidence.jobs.iter().find(|job| is(job, pod.namespace, name)));
    job.is_some_and(|job| condition(job, "Complete").is_some())
}

/// A hook without a pod that tells more.
fn of_hook(view: &View) -> Option<Cause> {
    let hooks = || view.sync_results().filter(|result| result["hookType"].is_string());
    let phase =
        |wanted: &[&str]| hooks().find(|hook| hook["hookPhase"].as_str().is_some_and(|phase| wanted.contains(&phase)));
    let said = |hook: &Value| {
        let text = |key: &str| hook[key].as_str().unwrap_or_default().to_owned();
        (format!("{} hook {} {}", text("hookType"), text("kind"), text("name")), text("message"))
    };
    let look = |hook: &Value| {
        let text = |key: &str| hook[key].as_str().unwrap_or_default();
        format!("kubectl -n {} describe {} {}", text("namespace"), text("kind").to_lowercase(), text("name"))
    };
    if let Some(hook) = phase(&["Failed", "Error"]) {
        let (name, message) = said(hook);
        return Some(Cause::new("hook-failed").because(format!("{name} failed")).because(message).hint(look(hook)));
    }
    let waits = view.operation()["phase"] == "Running" && view.operation_message().contains("hook");
    let hook = phase(&["Running"]).filter(|_| waits)?;
    let (name, _) = said(hook);
    let cause = Cause::new("hook-waiting").because(format!("{name} has not ended"));
    let job =
        view.evidence.jobs.iter().find(|job| hook["name"] == name_of(job) && hook["namespace"] == namespace_of(job));
    let state = job.map(|job| match job["status"]["active"].as_u64().unwrap_or(0) {
        _ if job["spec"]["suspend"] == true => "it is suspended".to_owned(),
        0 => "it has no pod".to_owned(),
        _ => "its pod is running".to_owned(),
    });
    Some(cause.because_all(state).hint(look(hook)))
}

fn of_failed_job(view: &View) -> Option<Cause> {
    view.evidence.jobs.iter().find_map(|job| {
        let message = condition(job, "Failed")?["message"].as_str().filter(|_| view.owns(job))?;
        let (namespace, name) = (namespace_of(job), name_of(job));
        let cause = Cause::new("job-failed").because(format!("Job {name} failed")).because(message);
        Some(cause.hint(format!("kubectl -n {namespace} describe job {name}")))
    })
}
