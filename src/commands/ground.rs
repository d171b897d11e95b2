//! Environments that stand on others: by an Argo CD that others use too, or in a cluster that another environment made.

use std::time::Duration;

use crate::error::Result;
use crate::journal::{self, Journal};
use crate::names::EnvName;
use crate::ports::dirs::Dirs;
use crate::ports::kube::Kube;
use crate::ports::kubeconfig;
use crate::spec::{ArgoCdAt, Carries, Ground, ProviderSpec};

/// How long a cluster may take to answer that may be gone.
const ANSWER: Duration = Duration::from_secs(15);

/// The environments in an order in which none goes before what stands on it.
pub fn last(dirs: &Dirs, mut names: Vec<EnvName>) -> Vec<EnvName> {
    let mut ordered = Vec::new();
    while !names.is_empty() {
        let is_free = |name: &&EnvName| !names.iter().any(|other| other != *name && stands_on(dirs, other, name));
        let free = names.iter().find(is_free).unwrap_or(&names[0]).clone();
        names.retain(|name| *name != free);
        ordered.push(free);
    }
    ordered
}

/// The recorded environments that would lose what they stand on.
pub fn guests(dirs: &Dirs, name: &EnvName) -> Result<Vec<EnvName>> {
    let all = journal::names(dirs)?.into_iter();
    Ok(all.filter(|other| other != name && stands_on(dirs, other, name)).collect())
}

/// One whose journal cannot be read stands on nothing that anybody knows.
fn stands_on(dirs: &Dirs, one: &EnvName, other: &EnvName) -> bool {
    let own = dirs.kubeconfig(other.as_str());
    let leads_there = |ground: Ground| {
        ground.kubeconfig == own
            || kubeconfig::server(&own, None)
                .is_some_and(|server| kubeconfig::server(ground.kubeconfig, Some(ground.context)) == Some(server))
    };
    journal::read(dirs, one).ok().flatten().is_some_and(|journal| journal.spec.grounds().into_iter().any(leads_there))
}

/// An environment without the clusters that it stood on and that are gone for good: what it had there has gone along.
/// That is known of another environment's; of all others, somebody has to say it.
pub async fn without_gone(dirs: &Dirs, mut journal: Journal, unreachable_is_gone: bool) -> Journal {
    for ground in journal.spec.clone().grounds() {
        let is_gone = went_with_its_environment(dirs, ground) || (unreachable_is_gone && !answers(ground).await);
        match ground.carries {
            _ if !is_gone => {}
            Carries::ArgoCd => journal.spec.argocd.at = ArgoCdAt::CoLocated,
            // Nothing of kind's has that name and this mark either, which is what the audit will find.
            Carries::Cluster => journal.spec.provider = ProviderSpec::Kind,
        }
    }
    journal
}

/// Whether it was the cluster of an environment of this user's that is not there any more.
fn went_with_its_environment(dirs: &Dirs, ground: Ground) -> bool {
    ground.kubeconfig.starts_with(dirs.environments()) && !ground.kubeconfig.exists()
}

async fn answers(ground: Ground<'_>) -> bool {
    let ask = async { Kube::open(ground.kubeconfig, Some(ground.context)).await?.ready().await };
    matches!(tokio::time::timeout(ANSWER, ask).await, Ok(Ok(())))
}
