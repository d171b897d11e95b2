//! An environment's steps, in the order in which a person would read them. Pure.

use crate::context::Context;
use crate::engine::Steps;
use crate::spec::{Source, Spec};
use crate::steps::applications::Applications;
use crate::steps::argocd::{ArgoCdConfig, ArgoCdWorkloads};
use crate::steps::branch::Branch;
use crate::steps::cluster::Cluster;
use crate::steps::git_server::GitServer;
use crate::steps::images::Images;
use crate::steps::kubeconfig::MergedKubeconfig;
use crate::steps::prerequisites::Prerequisites;
use crate::steps::publish::Publish;
use crate::steps::publish_remote::PublishRemote;
use crate::steps::registration::Registration;
use crate::steps::root::Root;
use crate::steps::sample::Sample;
use crate::steps::secrets::Secrets;

pub fn steps(spec: &Spec) -> Steps<Context> {
    let mut steps: Steps<Context> = Vec::new();
    if spec.sample {
        steps.push(Box::new(Sample));
    }
    steps.push(Box::new(Branch { after_sample: spec.sample }));
    steps.push(Box::new(Cluster));
    steps.push(Box::new(Images));
    if !spec.prerequisites.is_empty() {
        steps.push(Box::new(Prerequisites));
    }
    steps.push(Box::new(ArgoCdConfig { after_prerequisites: !spec.prerequisites.is_empty() }));
    steps.push(Box::new(ArgoCdWorkloads::controllers()));
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
    steps.push(Box::new(Registration));
    steps.push(Box::new(Root { after_secrets: spec.secrets.is_some() }));
    steps.push(Box::new(Applications));
    steps.push(Box::new(ArgoCdWorkloads::server()));
    if spec.merge_kubeconfig {
        steps.push(Box::new(MergedKubeconfig));
    }
    steps
}
