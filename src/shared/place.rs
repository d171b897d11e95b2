//! Which Argo CD is meant, and how it reaches the environment's cluster: settled before anything is made.

use std::path::Path;

use crate::argocd::NAMESPACE;
use crate::argocd::side::ArgoCd;
use crate::error::{Error, Result};
use crate::journal::Journal;
use crate::ports::kube::Kube;
use crate::ports::kubeconfig;
use crate::providers;
use crate::shared::address;
use crate::spec::{ArgoCdAt, SharedArgoCd, Spec};

/// Completes what was given: the file that has the context, the namespace, the address.
pub async fn settle(spec: &mut Spec, given: Option<&str>, saved: Option<&Journal>) -> Result<()> {
    let recorded = saved.map(|journal| &journal.spec.argocd.at);
    if let (Some(recorded), Some(given)) = (recorded, given)
        && !is_at(recorded, given)
    {
        let now = match recorded {
            ArgoCdAt::CoLocated => "its own Argo CD, in its cluster".to_owned(),
            ArgoCdAt::Shared(shared) => format!("the Argo CD in {}", shared.place()),
        };
        return Err(Error::usage(format!("{} has {now}, and cannot move to another one", spec.name))
            .hint(format!("remove it first: k8tre dev down {}", spec.name))
            .hint(format!("then make it again: k8tre dev up {} --argocd {given}", spec.name)));
    }
    let (name, provider) = (spec.name.clone(), providers::of(spec));
    let ArgoCdAt::Shared(shared) = &mut spec.argocd.at else { return Ok(()) };
    if shared.namespace.is_empty() {
        *shared = found(shared)?;
    }
    if let Some(wrong) = shared.namespaces.iter().find(|name| !is_namespace(name)) {
        return Err(no_namespace(wrong).hint("the namespaces that it may manage: --namespaced portal,identity"));
    }
    if shared.server.is_empty() {
        shared.server = provider.server_for(&name, &open(shared).await?, shared).await?;
    }
    address::check(&shared.server)
}

fn is_at(recorded: &ArgoCdAt, given: &str) -> bool {
    match recorded {
        ArgoCdAt::CoLocated => false,
        ArgoCdAt::Shared(shared) => {
            shared.place() == given || (shared.context == given && shared.namespace == NAMESPACE)
        }
    }
}

/// An Argo CD by its context alone, for what is no environment's own.
pub fn named(given: &str) -> Result<SharedArgoCd> {
    found(&bare(Path::new(""), given, ""))
}

/// An Argo CD of which all is known.
pub fn at(kubeconfig: &Path, context: &str, namespace: &str) -> Result<SharedArgoCd> {
    check_namespace(namespace)?;
    Ok(bare(kubeconfig, context, namespace))
}

fn bare(kubeconfig: &Path, context: &str, namespace: &str) -> SharedArgoCd {
    SharedArgoCd {
        context: context.to_owned(),
        namespace: namespace.to_owned(),
        kubeconfig: kubeconfig.to_owned(),
        server: String::new(),
        token_ttl: 0,
        repo_credentials: false,
        namespaces: Default::default(),
        may_escalate: false,
    }
}

/// The context, which may have slashes in its own name, and the namespace behind the last one.
fn found(shared: &SharedArgoCd) -> Result<SharedArgoCd> {
    let given = shared.context.as_str();
    let readings = [Some((given, NAMESPACE)), given.rsplit_once('/')];
    for (context, namespace) in readings.into_iter().flatten().filter(|(context, _)| !context.is_empty()) {
        if let Some(kubeconfig) = kubeconfig::with_context(context)? {
            check_namespace(namespace)?;
            let (context, namespace) = (context.to_owned(), namespace.to_owned());
            let kubeconfig = std::path::absolute(kubeconfig)?;
            return Ok(SharedArgoCd { context, namespace, kubeconfig, ..shared.clone() });
        }
    }
    Err(kubeconfig::unknown_context(given)?.hint("or let Argo CD run in the environment: leave --argocd away"))
}

fn check_namespace(namespace: &str) -> Result<()> {
    match is_namespace(namespace) {
        true => Ok(()),
        false => Err(no_namespace(namespace).hint("--argocd CONTEXT/NAMESPACE")),
    }
}

fn is_namespace(name: &str) -> bool {
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty() && name.len() <= 63 && name.chars().all(fine)
}

fn no_namespace(name: &str) -> Error {
    Error::usage(format!("\"{}\" cannot be a namespace", crate::text::one_line(name, 60)))
}

/// The shared Argo CD of a spec that is being settled.
pub async fn open(shared: &SharedArgoCd) -> Result<ArgoCd> {
    let kube = Kube::open(Path::new(&shared.kubeconfig), Some(&shared.context)).await?;
    Ok(ArgoCd { kube, namespace: shared.namespace.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_place_is_known_with_and_without_the_usual_namespace() {
        let context = "arn:aws:eks:eu-west-1:1:cluster/team";
        let shared = |namespace: &str| ArgoCdAt::Shared(bare(Path::new("/k"), context, namespace));
        assert!(is_at(&shared("argocd"), "arn:aws:eks:eu-west-1:1:cluster/team"));
        assert!(is_at(&shared("argocd"), "arn:aws:eks:eu-west-1:1:cluster/team/argocd"));
        assert!(!is_at(&shared("gitops"), "arn:aws:eks:eu-west-1:1:cluster/team"));
        assert!(!is_at(&ArgoCdAt::CoLocated, "team"));
    }
}
