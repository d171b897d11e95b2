//! All that can be known to be wrong with an existing cluster before anything is put into it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::argocd::NAMESPACE;
use crate::argocd::side::ArgoCd;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::gitops::world::IN_CLUSTER;
use crate::overlay::{self, Planned};
use crate::ports::kube::{Kube, Right, Type, name_of};
use crate::preflight::Finding;
use crate::sample;
use crate::shared::check::{self, version};
use crate::shared::fence;
use crate::spec::{ARGOCD_VERSION, ExistingSpec, SharedArgoCd};
use crate::steps::look::application_type;
use crate::steps::{git_server, objects};

const CRDS: [&str; 3] = ["applications.argoproj.io", "applicationsets.argoproj.io", "appprojects.argoproj.io"];

pub async fn check(cx: &Context, spec: &ExistingSpec, kube: Kube) -> Result<Vec<Finding>> {
    fence::refuse_protected(cx, &spec.context)?;
    rights(&kube, spec).await?;
    let argocd = ArgoCd { kube, namespace: NAMESPACE.to_owned() };
    for object in git_server::names() {
        refuse_foreign(cx, &argocd.kube, spec, &object).await?;
    }
    let planned = planned(cx).await?;
    if cx.facts().namespaces.is_none() {
        nothing_taken_over(&argocd.kube, spec, &planned).await?;
    }
    if !spec.has_argocd {
        nothing_in_the_way(cx, &argocd.kube, spec).await?;
        return Ok(Vec::new());
    }
    let place = SharedArgoCd {
        context: spec.context.clone(),
        namespace: NAMESPACE.to_owned(),
        kubeconfig: spec.kubeconfig.clone(),
        server: IN_CLUSTER.to_owned(),
        token_ttl: 0,
        repo_credentials: false,
        namespaces: BTreeSet::new(),
    };
    check::neighbours(cx, &place, &argocd).await?;
    by_name(cx, spec, &argocd).await?;
    differences(cx, spec, &argocd, &planned).await
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

async fn planned(cx: &Context) -> Result<Vec<Planned>> {
    let is_written = !cx.spec.sample || sample::is_sample(&cx.spec.repo).await?;
    overlay::planned(&cx.spec, &cx.cluster_name(), is_written)
}

/// What asks for an address, a Service or an Ingress, is not healthy to an Argo CD without a word on it, until somebody
/// gives one.
fn waits_for_address(spec: &ExistingSpec, config: &Value, planned: &[Planned]) -> Option<Finding> {
    const KEYS: [(&str, &str); 2] = [
        ("Service", "resource.customizations.health.Service"),
        ("Ingress", "resource.customizations.health.networking.k8s.io_Ingress"),
    ];
    // One key for all kinds, as it was written before there was one for each.
    let older = config["data"]["resource.customizations"].as_str().unwrap_or_default();
    let is_about = |line: &str, kind: &str| line.trim_end_matches(':').rsplit('/').next() == Some(kind);
    let asks = |one: &Planned| one.object["kind"] == "Ingress" || one.object["spec"]["type"] == "LoadBalancer";
    let (kind, application) = planned.iter().filter(|one| asks(one)).find_map(|one| {
        let (kind, key) = KEYS.into_iter().find(|(kind, _)| one.object["kind"] == **kind)?;
        let told = config["data"][key].is_string() || older.lines().any(|line| is_about(line, kind));
        (!told).then(|| (kind, one.application.clone()))
    })?;
    let context = &spec.context;
    let what = format!(
        "to the Argo CD in the cluster of context {context}, {application} is healthy only once its {kind} is given an address"
    );
    let patch = json!({"data": KEYS.map(|(_, key)| (key, "return {status = \"Healthy\"}")).into_iter().collect::<BTreeMap<_, _>>()});
    Some(
        Finding::warning("argocd-address-health", what)
            .why("where nothing hands out addresses, `up` waits for it until its --timeout")
            .fix(format!(
                "if nothing does: kubectl --context {context} -n {NAMESPACE} patch configmap argocd-cm --type merge -p '{patch}'"
            )),
    )
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

/// Settings of an Argo CD that is used as it is, where the repository needs others.
async fn differences(cx: &Context, spec: &ExistingSpec, argocd: &ArgoCd, planned: &[Planned]) -> Result<Vec<Finding>> {
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
    let wanted = cx.argocd_settings().await?;
    let there = argocd.get(&Type::new("v1", "ConfigMap"), "argocd-cm").await?.unwrap_or_default();
    for (key, value) in &wanted.config {
        let now = there["data"][key].as_str().unwrap_or_default();
        if now != value {
            let patch = json!({"data": {key: value}});
            let what = format!("{key} of the Argo CD in the cluster of context {} is \"{now}\"", spec.context);
            findings.push(
                Finding::warning("argocd-settings", format!("{what}, and the repository needs \"{value}\""))
                    .why("k8tre changes no setting of an Argo CD that it did not install")
                    .fix(format!(
                        "kubectl --context {} -n {NAMESPACE} patch configmap argocd-cm --type merge -p '{patch}'",
                        spec.context
                    )),
            );
        }
    }
    findings.extend(waits_for_address(spec, &there, planned));
    if !wanted.sidecars.is_empty() {
        let pods = argocd.list(&Type::new("v1", "Pod"), "app.kubernetes.io/name=argocd-repo-server").await?;
        let containers = pods.iter().flat_map(|pod| pod["spec"]["containers"].as_array()).flatten();
        let mut commands = containers.flat_map(|container| container["command"].as_array()).flatten();
        if !commands.any(|word| word.as_str().is_some_and(|word| word.ends_with("argocd-cmp-server"))) {
            let what = format!("the Argo CD in the cluster of context {} has no plugin", spec.context);
            findings.push(
                Finding::warning("argocd-plugin", format!("{what}, and the repository needs one"))
                    .why("Applications that use it stay in ComparisonError")
                    .fix("add the sidecar to its argocd-repo-server, as the repository's guide says"),
            );
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_wait_for_an_address_is_named_unless_argo_cd_knows_better() {
        let spec =
            ExistingSpec { context: "lab".into(), kubeconfig: "/k".into(), flavour: "kind".into(), has_argocd: true };
        let found = |config: Value, object: Value| {
            waits_for_address(&spec, &config, &[Planned { application: "portal".into(), app: "portal".into(), object }])
        };
        let service = |of: &str| json!({"apiVersion": "v1", "kind": "Service", "spec": {"type": of}});
        let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "spec": {}});
        assert!(
            found(json!({}), service("LoadBalancer")).unwrap().what.contains("portal is healthy only once its Service")
        );
        assert_eq!(found(json!({}), service("ClusterIP")), None);
        let told = json!({"data": {"resource.customizations.health.Service": "return {}"}});
        assert_eq!(found(told.clone(), service("LoadBalancer")), None);
        let older = json!({"data": {"resource.customizations": "networking.k8s.io/Ingress:\n  health.lua: x\n"}});
        assert_eq!(found(older, ingress.clone()), None);
        assert!(found(told, ingress).unwrap().fix.contains("networking.k8s.io_Ingress"));
    }
}
