//! What the environment's Applications have put into a cluster that stays: Argo CD deletes most of it with them, and what
//! it leaves is found here.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::argocd::NAMESPACE;
use crate::argocd::side::ArgoCd;
use crate::audit::{Audit, Leftover};
use crate::context::Context;
use crate::error::Result;
use crate::ports::kube::{Kube, Type, name_of};
use crate::shared::needs::{self, CONFIG};
use crate::shared::remains::Remains;
use crate::spec::ExistingSpec;
use crate::steps::{ROOT, objects};

/// What controllers need to clear away what they made of deleted objects.
const LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(300);
const TRACKING: &str = "argocd.argoproj.io/tracking-id";
const INSTANCE: &str = "app.kubernetes.io/instance";

/// Read from the Applications before they are removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deployed {
    pub objects: BTreeSet<Object>,
    /// Where they were deployed to.
    pub namespaces: BTreeSet<String>,
    /// Claims that came meanwhile in namespaces from before, as `namespace/name`: they may hold data, and are no
    /// Application's, as those of a StatefulSet.
    #[serde(default)]
    pub claims: BTreeSet<String>,
}

impl Deployed {
    /// Adds what Applications say of themselves.
    pub fn add(&mut self, applications: &[Value]) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for app in applications {
            let application = text(&app["metadata"]["name"]);
            self.namespaces.insert(text(&app["spec"]["destination"]["namespace"]));
            for one in app["status"]["resources"].as_array().into_iter().flatten() {
                let (group, version) = (text(&one["group"]), text(&one["version"]));
                let api_version = if group.is_empty() { version } else { format!("{group}/{version}") };
                let (kind, namespace, name) = (text(&one["kind"]), text(&one["namespace"]), text(&one["name"]));
                self.namespaces.insert(namespace.clone());
                self.objects.insert(Object { application: application.clone(), api_version, kind, namespace, name });
            }
        }
        self.namespaces.remove("");
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Object {
    application: String,
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
}

/// Records what there is, over what an earlier, interrupted `down` has recorded.
pub async fn note(cx: &Context, argocd: &ArgoCd) -> Result<()> {
    let mut deployed = cx.facts().deployed.unwrap_or_default();
    let remains = Remains::read(cx, argocd).await?;
    deployed.add(&remains.applications);
    // By the cluster's own clock: its project is older than all that its Applications have made.
    if let Some(began) = remains.projects.iter().filter_map(created).min() {
        for namespace in deployed.namespaces.iter().filter(|namespace| is_from_before(cx, namespace)) {
            let claims = argocd.kube.list(&Type::new("v1", "PersistentVolumeClaim"), namespace, "").await?;
            let new = claims.iter().filter(|claim| created(claim).is_some_and(|at| at >= began));
            for name in new.filter_map(|claim| name_of(claim).ok()) {
                let is_it = |one: &Object| {
                    (one.kind.as_str(), &one.namespace, one.name.as_str()) == ("PersistentVolumeClaim", namespace, name)
                };
                if !deployed.objects.iter().any(is_it) {
                    deployed.claims.insert(format!("{namespace}/{name}"));
                }
            }
        }
    }
    cx.note(|facts| facts.deployed = Some(deployed))
}

fn created(object: &Value) -> Option<Timestamp> {
    object["metadata"]["creationTimestamp"].as_str()?.parse().ok()
}

fn is_from_before(cx: &Context, namespace: &str) -> bool {
    cx.facts().namespaces.is_some_and(|before| before.iter().any(|one| one == namespace))
}

/// Removes what Argo CD left of it: objects that it was told to keep, and namespaces that it made.
pub async fn remove(cx: &Context, kube: &Kube) -> Result<()> {
    let deployed = cx.facts().deployed.unwrap_or_default();
    for object in &deployed.objects {
        if let Some(of) = remaining(kube, object).await? {
            cx.detail(ROOT, &format!("removing {} {}", object.kind, object.name));
            kube.delete(&of, &object.namespace, &object.name).await?;
        }
    }
    let (of, deadline) = (Type::new("v1", "Namespace"), Instant::now() + LIMIT);
    loop {
        let mut waiting = Vec::new();
        for namespace in made(cx, &deployed) {
            let Some(there) = kube.get(&of, "", &namespace).await? else { continue };
            let is_deleted = there["metadata"]["deletionTimestamp"].is_string();
            if !is_deleted && in_use(kube, &namespace).await?.is_none() {
                kube.delete(&of, "", &namespace).await?;
            } else if !is_deleted && Instant::now() >= deadline {
                // Somebody else's by now; the audit says so.
                continue;
            }
            waiting.push(namespace);
        }
        if waiting.is_empty() {
            return Ok(());
        }
        cx.detail(ROOT, &format!("waiting until the namespaces are gone: {}", waiting.join(", ")));
        tokio::time::sleep(POLL).await;
    }
}

/// Looks whether anything is left, by the marks of the environment and by what its Applications had deployed.
pub async fn audit(cx: &Context, kube: &Kube, of: &ExistingSpec, audit: &mut Audit) -> Result<()> {
    let argocd = ArgoCd { kube: kube.clone(), namespace: NAMESPACE.to_owned() };
    settings(cx, &argocd, of, audit).await?;
    audit.checked.push("objects in the cluster");
    let remove = |kind: &str, namespace: &str, name: &str| {
        let namespace = if namespace.is_empty() { String::new() } else { format!(" -n {namespace}") };
        format!("kubectl --context {}{namespace} delete {} {name}", of.context, kind.to_lowercase())
    };
    let mut left = |kind: &str, namespace: &str, name: &str| {
        let shown = if namespace.is_empty() { String::new() } else { format!(" in namespace {namespace}") };
        let what = format!("{kind} {name}{shown} in the cluster of context {}", of.context);
        let entry = Leftover { what, remove: remove(kind, namespace, name) };
        if !audit.left.iter().any(|one| one.what == entry.what) {
            audit.left.push(entry);
        }
    };
    const MARKED: [(&str, &str); 11] = [
        ("argoproj.io/v1alpha1", "Application"),
        ("argoproj.io/v1alpha1", "AppProject"),
        ("v1", "Namespace"),
        ("v1", "Service"),
        ("v1", "Secret"),
        ("v1", "ConfigMap"),
        ("v1", "ServiceAccount"),
        ("apps/v1", "Deployment"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ];
    for (api_version, kind) in MARKED {
        for object in kube.list(&Type::new(api_version, kind), "", "").await? {
            if objects::owner(&object) == Some(&cx.id) {
                left(kind, object["metadata"]["namespace"].as_str().unwrap_or_default(), name_of(&object)?);
            }
        }
    }
    for (kind, name) in Remains::read(cx, &argocd).await?.named() {
        left(kind, NAMESPACE, name);
    }
    let deployed = cx.facts().deployed.unwrap_or_default();
    for object in &deployed.objects {
        if remaining(kube, object).await?.is_some() {
            left(&object.kind, &object.namespace, &object.name);
        }
    }
    for claim in &deployed.claims {
        let Some((namespace, name)) = claim.split_once('/') else { continue };
        if kube.get(&Type::new("v1", "PersistentVolumeClaim"), namespace, name).await?.is_some() {
            audit.kept.push(Leftover {
                what: format!("claim {name} in namespace {namespace}: it came with the environment, and may hold data"),
                remove: remove("PersistentVolumeClaim", namespace, name),
            });
        }
    }
    for namespace in made(cx, &deployed) {
        if kube.get(&Type::new("v1", "Namespace"), "", &namespace).await?.is_none() {
            continue;
        }
        match in_use(kube, &namespace).await? {
            None => left("Namespace", "", &namespace),
            Some(user) => audit.kept.push(Leftover {
                what: format!("namespace {namespace}: {user} in it is somebody else's"),
                remove: remove("Namespace", "", &namespace),
            }),
        }
    }
    Ok(())
}

/// Whether the settings of Argo CD are as they were; what somebody else changed meanwhile stays as it is.
async fn settings(cx: &Context, argocd: &ArgoCd, of: &ExistingSpec, audit: &mut Audit) -> Result<()> {
    if !of.adjusts() {
        return Ok(());
    }
    audit.checked.push("settings of Argo CD");
    let config = needs::config(argocd).await?;
    for (key, adjusted) in cx.facts().adjusted {
        let now = config["data"][&key].as_str();
        if now == adjusted.before.as_deref() {
            continue;
        }
        let what = format!("{key} in the ConfigMap {CONFIG} of the cluster of context {}", of.context);
        let remove = needs::set(&of.context, &argocd.namespace, &key, adjusted.before.as_deref());
        match adjusted.is_ours(now) {
            true => audit.left.push(Leftover { what, remove }),
            false => {
                let now = now.map_or_else(|| "unset".to_owned(), needs::quoted);
                let what = format!("{what}: somebody changed it meanwhile, to {now}; as it was before:");
                audit.kept.push(Leftover { what, remove });
            }
        }
    }
    Ok(())
}

/// The type of an object that is still there, and still says that it is that Application's.
async fn remaining(kube: &Kube, object: &Object) -> Result<Option<Type>> {
    let asked = json!({"apiVersion": object.api_version, "kind": object.kind});
    if object.api_version.is_empty() || object.kind.is_empty() {
        return Ok(None);
    }
    let Some(of) = kube.discover(&asked).await? else { return Ok(None) };
    let there = kube.get(&of, &object.namespace, &object.name).await?;
    Ok(there.filter(|there| is_of(there, &object.application)).map(|_| of))
}

fn is_of(object: &Value, application: &str) -> bool {
    application_of(object) == Some(application)
}

/// The Application that an object says it is of.
pub fn application_of(object: &Value) -> Option<&str> {
    let metadata = &object["metadata"];
    let tracked = metadata["annotations"][TRACKING].as_str();
    tracked.and_then(|id| Some(id.split_once(':')?.0)).or_else(|| metadata["labels"][INSTANCE].as_str())
}

/// Namespaces that the Applications were deployed to, and that were not there before the environment.
fn made(cx: &Context, deployed: &Deployed) -> Vec<String> {
    let Some(before) = cx.facts().namespaces else { return Vec::new() };
    let new = deployed.namespaces.iter().filter(|namespace| *namespace != NAMESPACE && !before.contains(namespace));
    new.cloned().collect()
}

/// Something in a namespace that runs or is reached; what controllers keep there for it goes with the namespace.
async fn in_use(kube: &Kube, namespace: &str) -> Result<Option<String>> {
    const USERS: [(&str, &str); 7] = [
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("batch/v1", "CronJob"),
        ("batch/v1", "Job"),
        ("v1", "Service"),
        ("v1", "Pod"),
    ];
    for (api_version, kind) in USERS {
        if let Some(found) = kube.list(&Type::new(api_version, kind), namespace, "").await?.first() {
            return Ok(Some(format!("{kind} {}", name_of(found)?)));
        }
    }
    Ok(None)
}
