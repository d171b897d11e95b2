//! All that can be known to be wrong with an existing cluster before anything is put into it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::deployed;
use crate::argocd::NAMESPACE;
use crate::argocd::side::ArgoCd;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::gitops::planned::Planned;
use crate::gitops::world::IN_CLUSTER;
use crate::ports::kube::{Kube, Right, Type, name_of};
use crate::preflight::Finding;
use crate::providers::Checked;
use crate::shared::check::{self, version};
use crate::shared::fence;
use crate::shared::needs::{self, CONFIG, Need};
use crate::spec::{ARGOCD_VERSION, ExistingSpec, SharedArgoCd};
use crate::steps::look::application_type;
use crate::steps::{git_server, objects};

const CRDS: [&str; 3] = ["applications.argoproj.io", "applicationsets.argoproj.io", "appprojects.argoproj.io"];

pub async fn check(cx: &Context, spec: &ExistingSpec, kube: Kube) -> Result<Checked> {
    fence::refuse_protected(cx, &spec.context)?;
    rights(&kube, spec).await?;
    let argocd = ArgoCd { kube, namespace: NAMESPACE.to_owned() };
    for object in git_server::names() {
        refuse_foreign(cx, &argocd.kube, spec, &object).await?;
    }
    if cx.facts().namespaces.is_none() {
        nothing_taken_over(&argocd.kube, spec, cx.planned().await?).await?;
    }
    if !spec.has_argocd {
        nothing_in_the_way(cx, &argocd.kube, spec).await?;
        return Ok(Checked::default());
    }
    let place = SharedArgoCd {
        context: spec.context.clone(),
        namespace: NAMESPACE.to_owned(),
        kubeconfig: spec.kubeconfig.clone(),
        server: IN_CLUSTER.to_owned(),
        token_ttl: 0,
        repo_credentials: false,
        namespaces: BTreeSet::new(),
        may_escalate: false,
    };
    check::neighbours(cx, &place, &argocd).await?;
    by_name(cx, spec, &argocd).await?;
    lacking(cx, spec, &argocd).await
}

/// Argo CD deploys to all of the cluster with rights that k8tre gives it, so that nobody with fewer can begin.
async fn rights(kube: &Kube, spec: &ExistingSpec) -> Result<()> {
    if kube.may("", &Right::new("*", "*", "*")).await? == Some(true) {
        return Ok(());
    }
    Err(Error::preflight(format!("you may not do everything in the cluster of context {}", spec.context)).hint(
        format!(
            "only an administrator can put a TRE into it: kubectl --context {} auth can-i '*' '*' -A",
            spec.context
        ),
    ))
}

/// Refuses an object of somebody else's under a name that is needed.
async fn refuse_foreign(cx: &Context, kube: &Kube, spec: &ExistingSpec, object: &Value) -> Result<()> {
    let (of, name) = (Type::of(object)?, name_of(object)?);
    match kube.get(&of, NAMESPACE, name).await? {
        Some(found) if objects::owner(&found) != Some(&cx.id) => Err(Error::preflight(format!(
            "{} {name} is there already in the cluster of context {}, and is not this environment's",
            of.kind(),
            spec.context
        ))
        .hint("another environment may be in it: one cluster takes one")
        .hint("choose another cluster: --context CONTEXT")),
        _ => Ok(()),
    }
}

/// What an installation of Argo CD would write over.
async fn nothing_in_the_way(cx: &Context, kube: &Kube, spec: &ExistingSpec) -> Result<()> {
    let named = |api_version: &str, kind: &str, name: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    refuse_foreign(cx, kube, spec, &named("v1", "Namespace", NAMESPACE)).await?;
    for crd in CRDS {
        refuse_foreign(cx, kube, spec, &named("apiextensions.k8s.io/v1", "CustomResourceDefinition", crd)).await?;
    }
    for object in cx.install().await?.config.iter().filter(|one| Type::of(one).is_ok_and(|of| !of.is_namespaced())) {
        refuse_foreign(cx, kube, spec, object).await?;
    }
    Ok(())
}

/// What the Applications would deploy under a name that is there already: Argo CD would take it over, and delete it with
/// the Application.
async fn nothing_taken_over(kube: &Kube, spec: &ExistingSpec, planned: &[Planned]) -> Result<()> {
    let mut types: BTreeMap<String, Option<Type>> = BTreeMap::new();
    let mut taken = Vec::new();
    for Planned { application, object, .. } in planned {
        let (Ok(of), Ok(name)) = (Type::of(object), name_of(object)) else { continue };
        let key = format!("{} {}", object["apiVersion"], object["kind"]);
        if !types.contains_key(&key) {
            types.insert(key.clone(), kube.discover(object).await?);
        }
        let Some(Some(known)) = types.get(&key) else { continue };
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        if kube.get(known, namespace, name).await?.is_some() {
            taken.push(format!("{} {name}  of {application}", of.kind()));
        }
    }
    if taken.is_empty() {
        return Ok(());
    }
    Err(Error::preflight(format!(
        "the environment would take over what is there already in the cluster of context {}, and delete it with `down`",
        spec.context
    ))
    .detail(taken.join("\n"))
    .hint("leave these apps out: --skip APP, or give what they deploy other names in your repository")
    .hint("or, if nobody needs what is there, remove it first"))
}

/// The cluster gets another name in Argo CD with our Secret: who uses the one that it has without a Secret would lose it.
async fn by_name(cx: &Context, spec: &ExistingSpec, argocd: &ArgoCd) -> Result<()> {
    let applications = argocd.list(&application_type(), "").await?;
    let named = applications.iter().find(|app| {
        app["spec"]["destination"]["name"] == "in-cluster" && app["spec"]["project"] != *cx.spec.name.project()
    });
    let Some(named) = named else { return Ok(()) };
    Err(Error::preflight(format!(
        "the Application {} in the cluster of context {} is deployed to \"in-cluster\" by name, which the environment's cluster Secret would take away",
        name_of(named)?,
        spec.context
    ))
    .hint(format!("give it the address in place of the name: destination.server: {IN_CLUSTER}")))
}

/// What an Argo CD that is there lacks. With `--adjust-argocd` its settings are changed, and are no finding.
async fn lacking(cx: &Context, spec: &ExistingSpec, argocd: &ArgoCd) -> Result<Checked> {
    let mut findings = Vec::new();
    let (found, tested) = (version(argocd).await, ARGOCD_VERSION);
    let minor = |version: &str| version.rsplit_once('.').map(|(minor, _)| minor.to_owned());
    if let Some(found) = found.filter(|found| minor(found) != minor(tested)) {
        let what = format!("the Argo CD in the cluster of context {} is {found}", spec.context);
        findings.push(
            Finding::warning("argocd-version", what)
                .why(format!("k8tre is tested with {tested}"))
                .fix(format!("if something fails with it, update it to {tested}")),
        );
    }
    let (place, mut changes) = (format!("{}/{}", spec.context, argocd.namespace), Vec::new());
    for need in needs::missing(cx, argocd).await? {
        let (what, remedy) = (need.what(&place), need.remedy(&spec.context, &argocd.namespace));
        match need {
            Need::Setting(setting) if spec.adjust_argocd => changes.push(setting.change()),
            Need::Setting(_) => findings.push(
                Finding::warning("argocd-settings", what)
                    .why("k8tre changes no setting of an Argo CD that it did not install, unless it is told to")
                    .fix(format!("as long as the environment is there: --adjust-argocd; for good: {remedy}")),
            ),
            Need::Plugin(_) => findings.push(
                Finding::warning("argocd-plugin", what)
                    .why("Applications that use it stay in ComparisonError; it would restart Argo CD's repo-server, so that k8tre leaves it to its administrator")
                    .fix(remedy),
            ),
            Need::Unseen(_) => findings.push(Finding::warning("argocd-settings", what)),
        }
    }
    let changes = match changes.is_empty() {
        true => None,
        false => Some(format!(
            "Settings of the Argo CD in {place} (ConfigMap {CONFIG}) will be changed, for all whom it serves, until `k8tre dev down {}` puts them back: {}.{}",
            cx.spec.name,
            changes.join("; "),
            deployed_by(&needs::config(argocd).await?)
        )),
    };
    Ok(Checked { findings, changes, ..Checked::default() })
}

/// Whose they are, where something deploys them and would put them back.
fn deployed_by(config: &Value) -> String {
    match deployed::application_of(config) {
        Some(application) => format!(" The Application {application} deploys them, and may undo that before."),
        None => String::new(),
    }
}
