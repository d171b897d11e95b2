//! Rights that Argo CD or a controller lacks.

use super::view::View;
use super::words::pattern;
use super::{Cause, Family};

pub const FAMILY: Family = Family { codes: &["rbac", "rbac-escalation"], explain };

fn explain(view: &View) -> Option<Cause> {
    let refused = view.refusals.iter().map(|refusal| (Some(refusal.link()), refusal.message));
    let whole = view.sync_failed().then(|| (None, view.operation_message()));
    let compared = view.comparison_errors().map(|message| (None, message));
    refused.chain(whole).chain(compared).find_map(|(object, message)| {
        // Kubernetes lets nobody give more than they have, and the charts of operators bring roles.
        if message.contains("attempting to grant RBAC permissions not currently held") {
            let first = pattern!(r#"Resources:\["([^"]+)"[^}]*Verbs:\["([^"]+)""#).captures(message);
            let right = first.map(|right| format!(": {} {}", &right[2], &right[1])).unwrap_or_default();
            return Some(
                Cause::new("rbac-escalation")
                    .because_all(object)
                    .because(format!("it gives a right that Argo CD has not itself{right}"))
                    .hint("let it, if you trust what the branch deploys: k8tre dev up --argocd-may-escalate"),
            );
        }
        let form = pattern!(
            r#"User "([^"]+)" cannot (\S+) (?:resource|path) "([^"]+)"(?: in API group "([^"]*)")?(?: in the namespace "([^"]+)"| at the cluster scope)?"#
        );
        let found = form.captures(message)?;
        let part = |at: usize| found.get(at).map_or("", |part| part.as_str());
        let (user, verb, resource, api_group, namespace) = (part(1), part(2), part(3), part(4), part(5));
        let place = if namespace.is_empty() { "in the whole cluster".to_owned() } else { format!("in namespace {namespace}") };
        let of = if api_group.is_empty() { resource.to_owned() } else { format!("{resource}.{api_group}") };
        let scope = if namespace.is_empty() { "-A".to_owned() } else { format!("-n {namespace}") };
        let short = user.strip_prefix("system:serviceaccount:").map(|account| format!("service account {}", account.replacen(':', "/", 1)));
        Some(
            Cause::new("rbac")
                .because_all(object)
                .because(format!("{} may not {verb} {of} {place}", short.unwrap_or_else(|| format!("user {user}"))))
                .hint(format!("kubectl auth can-i {verb} {of} {scope} --as {user}")),
        )
    })
}
