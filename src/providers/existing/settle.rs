//! Which cluster is meant, and what is in it: settled before anything is made, since the plan follows from it.

use std::path::PathBuf;

use super::{flavour, open};
use crate::argocd::NAMESPACE;
use crate::argocd::side::ArgoCd;
use crate::cli::UpArgs;
use crate::error::{Error, Result};
use crate::gitops::tree::Tree;
use crate::gitops::vendor;
use crate::journal::Journal;
use crate::ports::kube::{Kube, Type};
use crate::ports::kubeconfig;
use crate::spec::{ExistingSpec, ProviderSpec, Spec};

/// Completes what was given: the file that has the context, what the cluster is, whether an Argo CD is there. The vendor
/// follows from it where nobody chose one, and `tree` has folders for it.
pub async fn settle(
    spec: &mut Spec,
    args: &UpArgs,
    saved: Option<&Journal>,
    vendor_is_open: bool,
    tree: Option<&dyn Tree>,
) -> Result<()> {
    if let Some(saved) = saved {
        same(&saved.spec, spec, args)?;
    }
    let ProviderSpec::Existing(existing) = &mut spec.provider else { return Ok(()) };
    if spec.argocd.shared().is_some() {
        return Err(Error::usage("an existing cluster is deployed to by an Argo CD in it, not by a shared one").hint(
            "leave --argocd away: one that is in the cluster is used, and one is installed where there is none",
        ));
    }
    if spec.merge_kubeconfig {
        return Err(Error::usage(format!("your kubeconfig has the context {} already", existing.context))
            .hint("leave --merge-kubeconfig away"));
    }
    if saved.is_some() {
        return Ok(());
    }
    existing.kubeconfig = file(existing, args.kubeconfig.clone())?;
    let kube = open(existing).await.map_err(|error| error.with_kind(crate::error::Kind::Preflight))?;
    let nodes = kube.list(&Type::new("v1", "Node"), "", "").await?;
    let found = flavour::of(&nodes);
    found.name.clone_into(&mut existing.flavour);
    existing.has_argocd = has_argocd(&kube, &existing.context).await?;
    let fitting = tree.and_then(|tree| found.vendors.iter().find(|wanted| vendor::has(tree, wanted)));
    if let Some(vendor) = fitting.filter(|_| vendor_is_open) {
        (*vendor).clone_into(&mut spec.vendor);
    }
    Ok(())
}

/// An environment cannot move from one cluster to another.
fn same(saved: &Spec, spec: &Spec, args: &UpArgs) -> Result<()> {
    let given = args.context.as_deref();
    let now = match (&saved.provider, &spec.provider) {
        (ProviderSpec::Existing(saved), ProviderSpec::Existing(_))
            if given.is_none_or(|given| given == saved.context) =>
        {
            return Ok(());
        }
        (ProviderSpec::Existing(saved), _) => format!("is in the cluster of context {}", saved.context),
        (ProviderSpec::Kind, ProviderSpec::Kind) | (ProviderSpec::Vcluster(_), ProviderSpec::Vcluster(_)) => {
            return Ok(());
        }
        _ => "has a cluster of its own".to_owned(),
    };
    Err(Error::usage(format!("{} {now}, and cannot move to another one", saved.name))
        .hint(format!("remove it first: k8tre dev down {}", saved.name)))
}

fn file(existing: &ExistingSpec, given: Option<PathBuf>) -> Result<PathBuf> {
    let context = &existing.context;
    if let Some(given) = given {
        return match kubeconfig::mentions(context, &given) {
            true => Ok(std::path::absolute(given)?),
            false => Err(Error::usage(format!("{} has no context {context}", given.display()))
                .hint(format!("kubectl --kubeconfig {} config get-contexts", given.display()))),
        };
    }
    match kubeconfig::with_context(context)? {
        Some(file) => Ok(std::path::absolute(file)?),
        None => Err(kubeconfig::unknown_context(context)?),
    }
}

/// Whether an Argo CD runs where k8tre's would be. One elsewhere in the cluster is refused: two would not live together.
async fn has_argocd(kube: &Kube, context: &str) -> Result<bool> {
    let argocd = ArgoCd { kube: kube.clone(), namespace: NAMESPACE.to_owned() };
    let pods = Type::new("v1", "Pod");
    const CONTROLLER: &str = "app.kubernetes.io/name=argocd-application-controller";
    if !argocd.list(&pods, CONTROLLER).await?.is_empty() {
        return Ok(true);
    }
    let elsewhere = kube.list(&pods, "", CONTROLLER).await?;
    match elsewhere.first().and_then(|pod| pod["metadata"]["namespace"].as_str()) {
        None => Ok(false),
        Some(namespace) => Err(Error::preflight(format!(
            "the Argo CD in the cluster of context {context} is in the namespace {namespace}, and not in {NAMESPACE}, where k8tre puts what it reads the branch from"
        ))
        .hint(format!("give it a vCluster on this cluster to deploy to: --provider vcluster --host-context {context} --argocd {context}/{namespace}"))
        .hint(format!("or a kind cluster of your own: --argocd {context}/{namespace}"))),
    }
}
