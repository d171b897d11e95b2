//! All that can be known to be wrong on the shared side before anything is made.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::argocd::side::ArgoCd;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::gitops::predict::Prediction;
use crate::ports::kube::{Right, Type, secret_text};
use crate::shared::{fence, is_foreign, needs, probe, rights};
use crate::spec::SharedArgoCd;
use crate::steps::look::{application_set_type, application_type};
use crate::{overlay, sample};

/// All of it, at most.
const LIMIT: Duration = Duration::from_secs(60);
pub const CLUSTERS: &str = "argocd.argoproj.io/secret-type=cluster";

pub fn project_type() -> Type {
    Type::new("argoproj.io/v1alpha1", "AppProject")
}

pub fn secret_type() -> Type {
    Type::new("v1", "Secret")
}

/// Refuses what would fail later, or would touch what is not this environment's. What may fail is a warning.
pub async fn check(cx: &Context, shared: &SharedArgoCd) -> Result<Vec<String>> {
    fence::refuse_protected(cx, &shared.context)?;
    let argocd = super::answering(cx).await.map_err(|error| error.with_kind(crate::error::Kind::Preflight))?;
    let looked = tokio::time::timeout(LIMIT, look(cx, shared, &argocd)).await;
    looked.unwrap_or_else(|_| {
        Err(Error::preflight(format!("{} did not answer within {} s", shared.place(), LIMIT.as_secs())))
    })
}

async fn look(cx: &Context, shared: &SharedArgoCd, argocd: &ArgoCd) -> Result<Vec<String>> {
    has_sets(shared, argocd).await?;
    rights::check(argocd, shared, &cx.spec.name).await?;
    neighbours(cx, shared, argocd).await?;
    if cx.facts().token_expires.is_some() {
        // It is registered already, and whoever did that was told.
        return Ok(Vec::new());
    }
    let missing = needs::missing(cx, argocd).await?;
    let mut warnings: Vec<String> = missing
        .iter()
        .map(|need| match need.remedy(&shared.context, &shared.namespace).as_str() {
            "" => need.what(&shared.place()),
            remedy => format!("{}; {remedy}", need.what(&shared.place())),
        })
        .collect();
    warnings.extend(probe::warning(argocd, shared).await?);
    Ok(warnings)
}

async fn has_sets(shared: &SharedArgoCd, argocd: &ArgoCd) -> Result<()> {
    let set = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet"});
    match argocd.kube.discover(&set).await? {
        Some(_) => Ok(()),
        None => Err(Error::preflight(format!("there is no Argo CD with ApplicationSets in {}", shared.place()))
            .hint("name its context and its namespace: --argocd CONTEXT/NAMESPACE")),
    }
}

/// Whether this environment and the others of an Argo CD can live side by side.
pub async fn neighbours(cx: &Context, shared: &SharedArgoCd, argocd: &ArgoCd) -> Result<()> {
    has_sets(shared, argocd).await?;
    let pods = argocd.list(&Type::new("v1", "Pod"), "app.kubernetes.io/name=argocd-applicationset-controller").await?;
    if !pods.iter().any(|pod| pod["status"]["phase"] == "Running") {
        return Err(Error::preflight(format!("the ApplicationSet controller of {} does not run", shared.place()))
            .hint(format!("kubectl --context {} -n {} get pods", shared.context, shared.namespace)));
    }
    let applications = argocd.list(&application_type(), "").await?;
    let clusters = clusters(argocd).await?;
    if let Some(why) = fence::production(&applications, &clusters) {
        return Err(Error::preflight(format!("the Argo CD in {} serves production: {why}", shared.place()))
            .hint("developers' environments belong to another Argo CD: choose another context"));
    }
    free(cx, shared, argocd, &clusters).await?;
    apart(cx, shared, argocd, &applications).await
}

/// The cluster Secrets, if this user may see them: they hold credentials, so that most may not.
async fn clusters(argocd: &ArgoCd) -> Result<Vec<Value>> {
    match rights::missing(argocd, vec![Right::new("list", "", "secrets")]).await?.is_empty() {
        true => argocd.list(&secret_type(), CLUSTERS).await,
        false => Ok(Vec::new()),
    }
}

/// Nothing of the names that the environment needs is somebody else's.
async fn free(cx: &Context, shared: &SharedArgoCd, argocd: &ArgoCd, clusters: &[Value]) -> Result<()> {
    let name = &cx.spec.name;
    let secret = rights::secret_name(name);
    let taken = [
        (secret_type(), secret.clone()),
        (project_type(), name.project()),
        (project_type(), rights::root_project(name)),
        (application_type(), name.root_application()),
    ];
    for (of, called) in taken {
        if is_foreign(cx, argocd, &of, &called).await? {
            return Err(Error::preflight(format!(
                "{} {called} is there already in {}, and is not this environment's",
                of.kind(),
                shared.place()
            ))
            .hint("choose another name: k8tre dev up NAME")
            .hint(format!("or, if nobody needs it: {}", super::search(shared, name))));
        }
    }
    let server = |secret: &Value| Some(secret_text(secret, "server")?.trim_end_matches('/').to_owned());
    let wanted = shared.server.trim_end_matches('/');
    let other =
        clusters.iter().find(|one| one["metadata"]["name"] != *secret && server(one).as_deref() == Some(wanted));
    let Some(other) = other else { return Ok(()) };
    Err(Error::preflight(format!(
        "{} is registered in {} already, by the Secret {}",
        shared.server,
        shared.place(),
        other["metadata"]["name"].as_str().unwrap_or_default()
    ))
    .hint("another environment of that name, perhaps on another machine: choose another name: k8tre dev up NAME"))
}

/// Nobody else's ApplicationSets take the cluster, and nobody else's Applications have the names of ours.
async fn apart(cx: &Context, shared: &SharedArgoCd, argocd: &ArgoCd, applications: &[Value]) -> Result<()> {
    let (labels, predicted) = expected(cx).await?;
    let project = cx.spec.name.project();
    let sets = argocd.list(&application_set_type(), "").await?;
    let takers = fence::takers(&sets, &project, &labels);
    if !takers.is_empty() {
        return Err(Error::preflight(format!(
            "ApplicationSets of others in {} would deploy to this environment's cluster: {}",
            shared.place(),
            takers.join(", ")
        ))
        .hint("have their cluster generators leave developers' clusters out: matchExpressions: [{key: developer, operator: DoesNotExist}]"));
    }
    let clash = applications
        .iter()
        .find(|app| app["spec"]["project"] != *project && predicted.iter().any(|one| app["metadata"]["name"] == **one));
    let Some(clash) = clash else { return Ok(()) };
    Err(Error::preflight(format!(
        "the Application {} is there already in {}, in the project {}",
        clash["metadata"]["name"].as_str().unwrap_or_default(),
        shared.place(),
        clash["spec"]["project"].as_str().unwrap_or("default")
    ))
    .hint(format!("see all: k8tre dev preview {} --against {}", cx.spec.name, shared.context)))
}

/// Labels of the cluster, and names of the Applications; also of a sample that is not written yet.
async fn expected(cx: &Context) -> Result<(BTreeMap<String, String>, Vec<String>)> {
    let names = |prediction: &Prediction| prediction.applications.iter().map(|app| app.name.to_string()).collect();
    if cx.spec.sample && !sample::is_sample(&cx.spec.repo).await? {
        let prediction = overlay::of_sample(&cx.spec, &cx.cluster_name())?;
        return Ok((cx.spec.cluster_labels(None), names(&prediction)));
    }
    let overlay = cx.overlay().await?;
    Ok((overlay.labels.clone(), names(&overlay.prediction)))
}

/// The version of a shared Argo CD, by its controller's image; none if nobody says.
pub async fn version(argocd: &ArgoCd) -> Option<String> {
    let of = Type::new("v1", "Pod");
    let pods = argocd.list(&of, "app.kubernetes.io/name=argocd-application-controller").await.ok()?;
    let image = pods.first()?["spec"]["containers"][0]["image"].as_str()?;
    let tag = image.split('@').next()?.rsplit_once(':')?.1;
    (!tag.contains('/')).then(|| crate::text::one_line(tag, 60))
}
