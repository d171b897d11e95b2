//! An environment's steps, in the order in which a person would read them. Pure.

use crate::context::Context;
use crate::engine::Steps;
use crate::spec::Spec;
use crate::steps::applications::Applications;
use crate::steps::argocd::{ArgoCdConfig, ArgoCdWorkloads};
use crate::steps::branch::Branch;
use crate::steps::cluster::Cluster;
use crate::steps::git_server::GitServer;
use crate::steps::images::Images;
use crate::steps::kubeconfig::MergedKubeconfig;
use crate::steps::publish::Publish;
use crate::steps::registration::Registration;
use crate::steps::root::Root;
use crate::steps::sample::Sample;

pub fn steps(spec: &Spec) -> Steps<Context> {
    let mut steps: Steps<Context> = Vec::new();
    if spec.sample {
        steps.push(Box::new(Sample));
    }
    let always: Steps<Context> = vec![
        Box::new(Branch { after_sample: spec.sample }),
        Box::new(Cluster),
        Box::new(Images),
        Box::new(ArgoCdConfig),
        Box::new(ArgoCdWorkloads::controllers()),
        Box::new(GitServer),
        Box::new(Publish),
        Box::new(Registration),
        Box::new(Root),
        Box::new(Applications),
        Box::new(ArgoCdWorkloads::server()),
    ];
    steps.extend(always);
    if spec.merge_kubeconfig {
        steps.push(Box::new(MergedKubeconfig));
    }
    steps
}
