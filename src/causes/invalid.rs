//! Objects that the API server will not take, for what they are or for where they are to go.

use super::view::View;
use super::words::{group, pattern};
use super::{Cause, Family};

pub const FAMILY: Family = Family {
    codes: &["namespace-missing", "field-immutable", "object-invalid", "service-account-missing", "object-refused"],
    explain,
};

fn explain(view: &View) -> Option<Cause> {
    view.refusals.first().map(|refusal| {
        let message = refusal.message;
        let made = |code| Cause::new(code).because(refusal.link());
        if let Some(name) = group(pattern!(r#"namespaces "([^"]+)" not found"#), message) {
            let cause = made("namespace-missing")
                .because(format!("no namespace \"{name}\", and CreateNamespace=true is not set"));
            return cause.hint(format!("kubectl create namespace {name}"));
        }
        if let Some(name) =
            group(pattern!(r#"error looking up service account [^:]+: serviceaccount "([^"]+)" not found"#), message)
        {
            let cause = made("service-account-missing").because(format!("no ServiceAccount \"{name}\""));
            return cause.hint(format!("kubectl -n {} get serviceaccounts", refusal.namespace));
        }
        if message.contains("field is immutable")
            || message.contains("updates to statefulset spec for fields other than")
        {
            let field = group(pattern!(r"is invalid: \[?([^\s:]+): "), message).unwrap_or("a field");
            let cause =
                made("field-immutable").because(format!("{field} cannot be changed on the object that is there"));
            return cause.hint(format!("kubectl -n {} get {} -o yaml", refusal.namespace, refusal.object));
        }
        if let Some(complaint) = group(pattern!(r"(?s)is invalid: \[?(.+)"), message) {
            // A complaint can come with a lecture on what would be valid.
            let first = complaint.split(", spec.").next().unwrap_or(complaint);
            return made("object-invalid").because(first).hint(diff(view));
        }
        // Which object it is was said already.
        let reason = message.split_once("is forbidden: ").map_or(message, |(_, reason)| reason);
        made("object-refused").because(reason).hint(diff(view))
    })
}

fn diff(view: &View) -> String {
    format!("kubectl -n argocd get application {} -o jsonpath='{{.status.operationState.syncResult}}'", view.name())
}
