//! An environment's steps, in the order in which a person would read them. Pure.

use async_trait::async_trait;

use crate::context::Context;
use crate::engine::{State, Step, StepId, Steps};
use crate::error::Result;
use crate::providers;
use crate::spec::{ExistingSpec, Source, Spec};
use crate::steps::applications::Applications;
use crate::steps::argocd::{ArgoCdConfig, ArgoCdWorkloads};
use crate::steps::argocd_settings::ArgoCdSettings;
use crate::steps::branch::Branch;
use crate::steps::cluster::Cluster;
use crate::steps::expiry::Expiry;
use crate::steps::git_server::GitServer;
use crate::steps::identity::Identity;
use crate::steps::images::Images;
use crate::steps::kubeconfig::MergedKubeconfig;
use crate::steps::node_network::NodeNetwork;
use crate::steps::prerequisites::Prerequisites;
use crate::steps::project::Project;
use crate::steps::publish::Publish;
use crate::steps::publish_remote::PublishRemote;
use crate::steps::registration::Registration;
use crate::steps::registration_shared::SharedRegistration;
use crate::steps::repository_access::RepositoryAccess;
use crate::steps::root::Root;
use crate::steps::sample::Sample;
use crate::steps::secrets::Secrets;
use crate::steps::{
    ARGOCD, ARGOCD_CONFIG, ARGOCD_SETTINGS, ARGOCD_UI, CLUSTER, GIT_SERVER, NODE_NETWORK, PROJECT, PUBLISH,
    REGISTRATION, REPOSITORY_ACCESS, SAMPLE, SECRETS,
};

pub fn steps(spec: &Spec) -> Steps<Context> {
    let provider = providers::of(spec);
    let mut steps: Steps<Context> = Vec::new();
    if spec.sample {
        steps.push(Box::new(Sample));
    }
    // The overlay may name addresses of the cluster's network, which is there once the cluster is. Elsewhere Argo CD can have
    // the branch before.
    let waits = provider.has_addresses() || spec.argocd.shared().is_none();
    let before = [(SAMPLE, spec.sample), (CLUSTER, waits)];
    steps.push(Box::new(Branch { needs: before.into_iter().filter(|(_, is)| *is).map(|(id, _)| id).collect() }));
    steps.push(Box::new(Cluster { provider: providers::of(spec) }));
    if spec.expires.is_some() && provider.owns_cluster() {
        steps.push(Box::new(Expiry));
    }
    // The nodes' containerd starts again when it is told of the network: images are copied into it after that.
    let tells_nodes = spec.network.is_for_nodes() && provider.loads_images();
    if tells_nodes {
        steps.push(Box::new(NodeNetwork));
    }
    let before = if tells_nodes { NODE_NETWORK } else { CLUSTER };
    steps.push(Box::new(Images { provider: providers::of(spec), needs: vec![before] }));
    if !spec.prerequisites.is_empty() {
        steps.push(Box::new(Prerequisites));
    }
    let shared = spec.argocd.shared();
    if spec.installs_argocd() {
        steps.push(Box::new(ArgoCdConfig { after_prerequisites: !spec.prerequisites.is_empty() }));
        steps.push(Box::new(ArgoCdWorkloads::controllers()));
    }
    match &spec.source {
        Source::Cluster => {
            steps.push(Box::new(GitServer));
            steps.push(Box::new(Publish));
        }
        Source::Remote { remote, .. } => steps.push(Box::new(PublishRemote { remote: remote.clone() })),
    }
    if spec.secrets.is_some() {
        steps.push(Box::new(Secrets));
    }
    // Taken away in the reverse order: the Secret last, without which Argo CD could delete nothing.
    match shared {
        None => steps.push(Box::new(Registration)),
        Some(shared) => {
            steps.push(Box::new(Identity));
            steps.push(Box::new(SharedRegistration { shared: shared.clone() }));
        }
    }
    if spec.is_fenced() {
        steps.push(Box::new(Project));
    }
    if adjusts(spec) {
        steps.push(Box::new(ArgoCdSettings));
    }
    if shared.is_some_and(|shared| shared.repo_credentials) {
        steps.push(Box::new(RepositoryAccess));
    }
    steps.push(Box::new(Root { needs: before_root(spec), fenced: spec.is_fenced() }));
    steps.push(Box::new(Applications));
    if spec.installs_argocd() {
        steps.push(Box::new(ArgoCdWorkloads::server()));
    }
    if spec.merge_kubeconfig {
        steps.push(Box::new(MergedKubeconfig));
    }
    match provider.owns_cluster() {
        true => steps,
        false => standing(spec, steps),
    }
}

fn before_root(spec: &Spec) -> Vec<StepId> {
    let mut needs = vec![PUBLISH];
    if spec.argocd.shared().is_none() {
        // Elsewhere Argo CD reads the branch and makes the ApplicationSets while the cluster is on its way: they look again
        // when it is registered.
        needs.push(REGISTRATION);
    }
    if spec.installs_argocd() {
        // An Application made before the repo-server answers stays in error until somebody refreshes it.
        needs.push(ARGOCD);
    }
    if spec.is_fenced() {
        // The access comes after the projects.
        let access = spec.argocd.shared().is_some_and(|shared| shared.repo_credentials);
        needs.push(if access { REPOSITORY_ACCESS } else { PROJECT });
    }
    if spec.secrets.is_some() {
        needs.push(SECRETS);
    }
    if adjusts(spec) {
        needs.push(ARGOCD_SETTINGS);
    }
    needs
}

fn adjusts(spec: &Spec) -> bool {
    spec.provider.existing().is_some_and(ExistingSpec::adjusts)
}

/// The steps in a cluster that stays: nothing goes with it, and Argo CD's own step may not be among them.
fn standing(spec: &Spec, steps: Steps<Context>) -> Steps<Context> {
    let ids: Vec<StepId> = steps.iter().map(|step| step.id()).collect();
    let in_argocd = [ARGOCD, ARGOCD_UI, GIT_SERVER, PUBLISH];
    let standing = steps.into_iter().map(|step| -> Box<dyn Step<Context>> {
        let mut needs: Vec<StepId> = step.needs().iter().copied().filter(|need| ids.contains(need)).collect();
        if step.id() == PROJECT && spec.installs_argocd() {
            // Its type comes with Argo CD.
            needs.push(ARGOCD_CONFIG);
        }
        let inside = match step.inside() {
            Some(CLUSTER) if spec.installs_argocd() && in_argocd.contains(&step.id()) => Some(ARGOCD_CONFIG),
            Some(CLUSTER) if step.id() == PUBLISH => Some(GIT_SERVER),
            Some(CLUSTER) => None,
            other => other,
        };
        Box::new(Placed { step, needs, inside })
    });
    standing.collect()
}

/// Some of an environment's steps, for a command that changes only what they bring; the others are as they are.
pub fn only(spec: &Spec, ids: &'static [StepId]) -> Steps<Context> {
    let mut before: Vec<StepId> = Vec::new();
    let mut chosen: Steps<Context> = Vec::new();
    for step in steps(spec).into_iter().filter(|step| ids.contains(&step.id())) {
        let needs = before.clone();
        before.push(step.id());
        let inside = step.inside();
        chosen.push(Box::new(Placed { step, needs, inside }));
    }
    chosen
}

/// A step with another place among the others: what it waits for, and with what it goes.
struct Placed {
    step: Box<dyn Step<Context>>,
    needs: Vec<StepId>,
    inside: Option<StepId>,
}

#[async_trait]
impl Step<Context> for Placed {
    fn id(&self) -> StepId {
        self.step.id()
    }

    fn needs(&self) -> &[StepId] {
        &self.needs
    }

    fn inside(&self) -> Option<StepId> {
        self.inside
    }

    fn describe(&self) -> String {
        self.step.describe()
    }

    fn limit(&self) -> std::time::Duration {
        self.step.limit()
    }

    fn leaves_nothing(&self) -> bool {
        self.step.leaves_nothing()
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        self.step.observe(cx).await
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        self.step.apply(cx).await
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        self.step.undo(cx).await
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::engine::in_order;
    use crate::providers::vcluster::testing;
    use crate::settings;
    use crate::shared::place;
    use crate::spec::{ArgoCdAt, ProviderSpec};
    use crate::steps::{APPLICATIONS, ROOT};

    fn spec(shared: bool, vcluster: bool) -> Spec {
        let mut spec = settings::of_name(&"alice".parse().unwrap()).unwrap();
        if shared {
            spec.argocd.at = ArgoCdAt::Shared(place::at(Path::new("/k"), "team", "argocd").unwrap());
            spec.source = Source::Remote { remote: "origin".into(), url: "https://git.invalid/tre.git".into() };
        }
        if vcluster {
            spec.provider = ProviderSpec::Vcluster(testing::spec());
        }
        spec
    }

    /// Whether a step waits for another, directly or by what it waits for.
    fn waits(steps: &Steps<Context>, id: StepId, other: StepId) -> bool {
        let step = steps.iter().find(|step| step.id() == id).unwrap();
        step.needs().iter().any(|need| *need == other || waits(steps, need, other))
    }

    #[test]
    fn an_argo_cd_elsewhere_reads_the_branch_while_a_vcluster_is_made() {
        for (shared, vcluster, expected) in
            [(true, true, false), (true, false, true), (false, true, true), (false, false, true)]
        {
            let steps = steps(&spec(shared, vcluster));
            assert_eq!(waits(&steps, ROOT, CLUSTER), expected, "shared: {shared}, vCluster: {vcluster}");
            assert!(waits(&steps, APPLICATIONS, REGISTRATION));
            // Taken away the other way round: without the registration Argo CD could delete nothing.
            let order: Vec<StepId> = in_order(&steps).unwrap().iter().map(|step| step.id()).collect();
            let at = |id: StepId| order.iter().position(|one| *one == id);
            assert!(at(REGISTRATION) < at(ROOT) && at(ROOT) < at(APPLICATIONS));
        }
    }
}
