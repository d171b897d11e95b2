//! What does not go away: objects held by finalizers, and namespaces that are terminating.

use serde_json::Value;

use super::evidence::{items, name_of, namespace_of};
use super::view::View;
use super::words::{group, pattern};
use super::{Cause, Family};
use crate::ports::kube::condition;

pub const FAMILY: Family = Family { codes: &["namespace-terminating", "finalizer"], explain };

fn explain(view: &View) -> Option<Cause> {
    terminating(view).or_else(|| held(view))
}

fn terminating(view: &View) -> Option<Cause> {
    let refused = view
        .refusals
        .iter()
        .find_map(|refusal| group(pattern!(r"in namespace (\S+) because it is being terminated"), refusal.message));
    let name = refused?;
    let cause = Cause::new("namespace-terminating").because(format!("namespace {name} is being deleted"));
    let namespace = view.evidence.namespaces.iter().find(|namespace| name_of(namespace) == name);
    let message = |kind: &str| condition(namespace?, kind).and_then(|c| c["message"].as_str());
    let root = ["NamespaceFinalizersRemaining", "NamespaceContentRemaining", "NamespaceDeletionDiscoveryFailure"]
        .into_iter()
        .find_map(message)
        .unwrap_or("its content is not gone yet");
    Some(cause.because(root).hint(format!("kubectl get namespace {name} -o jsonpath='{{.status.conditions}}'")))
}

/// An object that Argo CD deleted and that is still there.
fn held(view: &View) -> Option<Cause> {
    let doomed = view.evidence.objects.iter().filter(|object| object["metadata"]["deletionTimestamp"].is_string());
    let object = doomed.into_iter().find(|object| {
        view.resources().any(|one| {
            one["kind"] == object["kind"]
                && one["name"] == name_of(object)
                && one["namespace"].as_str().unwrap_or_default() == namespace_of(object)
        })
    })?;
    let finalizers: Vec<&str> = items(&object["metadata"]["finalizers"]).filter_map(Value::as_str).collect();
    let (kind, name) = (object["kind"].as_str()?, name_of(object));
    let since = object["metadata"]["deletionTimestamp"].as_str()?;
    let root = match finalizers.as_slice() {
        [] => "it is stopping".to_owned(),
        [one] => format!("finalizer {one} is not taken off"),
        many => format!("finalizers {} are not taken off", many.join(", ")),
    };
    let namespace = match namespace_of(object) {
        "" => String::new(),
        namespace => format!("-n {namespace} "),
    };
    let kind_of = kind.to_lowercase();
    Some(
        Cause::new("finalizer")
            .because(format!("{kind} {name} is being deleted since {since}"))
            .because(root)
            .hint(format!("kubectl {namespace}get {kind_of} {name} -o jsonpath='{{.metadata}}'")),
    )
}

/// The resources of an Application which Argo CD wants to be gone.
pub fn doomed(application: &Value) -> impl Iterator<Item = &Value> {
    let whole = application["metadata"]["deletionTimestamp"].is_string();
    items(&application["status"]["resources"])
        .filter(move |one| (whole || one["requiresPruning"] == true) && one["hook"] != true)
}
