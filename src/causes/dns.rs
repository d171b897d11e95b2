//! A name that does not resolve: in Argo CD's way to the repository, or in a crashing container's words.

use super::view::View;
use super::words::{quoted, unreadable, unresolved};
use super::{Cause, Family};

pub const FAMILY: Family = Family { codes: &["dns"], explain };

fn explain(view: &View) -> Option<Cause> {
    let named = |message| unresolved(message).map(|name| (name, message));
    let source = view.comparison_errors().find_map(named).map(|(name, message)| {
        let cause = Cause::new("dns").because(unreadable(view.app, message));
        let look = format!("kubectl -n argocd exec deploy/argocd-repo-server -- getent hosts {}", quoted(name));
        (cause.because(format!("{name} does not resolve")), look)
    });
    let (cause, look) = source.or_else(|| {
        view.pods.iter().find_map(|pod| {
            let crashed = pod.containers().find(|container| container.ended().is_some())?;
            let name = view.evidence.log(pod.namespace, pod.name, crashed.name()).and_then(last_unresolved)?;
            let cause =
                Cause::new("dns").because_all(pod.links()).because(format!("container {} ends", crashed.name()));
            let look = "kubectl -n kube-system logs -l k8s-app=kube-dns --tail 20".to_owned();
            Some((cause.because(format!("{name} does not resolve")), look))
        })
    })?;
    Some(cause.hint(look))
}

/// Only what a program said at its end made it end.
fn last_unresolved(log: &str) -> Option<&str> {
    log.lines().rev().take(5).find_map(unresolved)
}
