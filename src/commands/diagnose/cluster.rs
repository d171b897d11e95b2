//! What the cluster says: objects, events, logs. Each kind is asked for by itself, so that one that
//! does not answer costs no other.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use futures::io::AsyncReadExt;
use futures::stream::iter;
use serde_json::Value;

use super::archive::Archive;
use super::scope::Scope;
use crate::argocd::NAMESPACE;
use crate::causes::in_trouble;
use crate::error::{Error, Result};
use crate::ports::kube::{Kube, LogOptions, Type, secret_value};

const CALL: Duration = Duration::from_secs(15);
/// Requests at the same time.
const AT_ONCE: usize = 4;
/// Containers whose logs are read, and how much of each.
const LOGS: usize = 80;
const LINES: i64 = 3000;
const LOG: u64 = 2 << 20;

const KINDS: [(&str, &str); 22] = [
    ("v1", "Node"),
    ("v1", "Namespace"),
    ("v1", "Pod"),
    ("v1", "Service"),
    ("v1", "Event"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "PersistentVolume"),
    ("v1", "ResourceQuota"),
    ("v1", "Secret"),
    ("v1", "ConfigMap"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("networking.k8s.io/v1", "Ingress"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("argoproj.io/v1alpha1", "Application"),
    ("argoproj.io/v1alpha1", "ApplicationSet"),
    ("argoproj.io/v1alpha1", "AppProject"),
];

pub async fn bounded<T>(call: impl Future<Output = Result<T>>) -> Result<T> {
    let answered = tokio::time::timeout(CALL, call).await;
    answered.unwrap_or_else(|_| Err(Error::failed(format!("no answer within {} s", CALL.as_secs()))))
}

/// The values that are nobody's business, to be taken out wherever they occur.
pub async fn secret_values(kube: &Kube) -> Result<Vec<String>> {
    Ok(values_of(&bounded(kube.list(&Type::new("v1", "Secret"), "", "")).await?))
}

/// Those in some Secrets.
pub fn values_of<'a>(secrets: impl IntoIterator<Item = &'a Value>) -> Vec<String> {
    // Of these, others see the value every day: addresses and names.
    const OPEN: [&str; 12] = [
        "name",
        "server",
        "url",
        "type",
        "project",
        "namespace",
        "namespaces",
        "ca.crt",
        "tls.crt",
        "username",
        "admin.passwordMtime",
        "clusterResources",
    ];
    let mut values = BTreeSet::new();
    for secret in secrets {
        for (key, value) in secret["data"].as_object().into_iter().flatten() {
            let encoded = value.as_str().unwrap_or_default();
            let decoded = secret_value(value).and_then(|bytes| String::from_utf8(bytes).ok());
            if OPEN.contains(&key.as_str()) {
                continue;
            }
            values.insert(encoded.to_owned());
            let Some(decoded) = decoded else { continue };
            if let Ok(document) = serde_json::from_str::<Value>(&decoded) {
                leaves(&document, &mut values);
            }
            values.insert(decoded);
        }
    }
    values.into_iter().collect()
}

/// The texts of a document, apart from addresses.
fn leaves(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if !text.starts_with("http") => _ = into.insert(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, into)),
        Value::Object(object) => object.values().for_each(|item| leaves(item, into)),
        _ => {}
    }
}

pub async fn add(archive: &mut Archive, kube: &Kube, scope: &Scope) -> Result<()> {
    let mut lists =
        iter(KINDS)
            .map(|(api_version, kind)| async move {
                (kind, bounded(kube.list(&Type::new(api_version, kind), "", "")).await)
            })
            .buffered(AT_ONCE);
    let mut pods = Vec::new();
    while let Some((kind, listed)) = lists.next().await {
        let Some(mut objects) = archive.attempt(&format!("kubernetes/{kind}"), listed) else { continue };
        objects.retain(|object| scope.has(kind, object));
        archive.json(&format!("kubernetes/{kind}.json"), &objects)?;
        if kind == "Pod" {
            pods = objects;
        }
    }
    let wanted: Vec<(String, String, String, bool)> = pods.iter().flat_map(runs).take(LOGS).collect();
    let mut logs = iter(wanted)
        .map(|(namespace, pod, container, previous)| async move {
            let text = bounded(log(kube, &namespace, &pod, &container, previous)).await;
            let end = if previous { ".previous.log" } else { ".log" };
            (format!("logs/{namespace}/{pod}/{container}{end}"), text)
        })
        .buffered(AT_ONCE);
    while let Some((name, text)) = logs.next().await {
        if let Some(text) = archive.attempt(&name, text) {
            archive.text(&name, &text)?;
        }
    }
    Ok(())
}

/// Runs of containers whose logs matter: all of Argo CD's, and those of pods in trouble.
fn runs(pod: &Value) -> Vec<(String, String, String, bool)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &pod["metadata"];
    if metadata["namespace"] != NAMESPACE && !in_trouble(pod) {
        return Vec::new();
    }
    let mut runs = Vec::new();
    for list in ["initContainerStatuses", "containerStatuses"] {
        for one in pod["status"][list].as_array().into_iter().flatten() {
            let (now, last) = (&one["state"], &one["lastState"]);
            let run = |previous| (text(&metadata["namespace"]), text(&metadata["name"]), text(&one["name"]), previous);
            if now["running"].is_object() || now["terminated"].is_object() || last["terminated"].is_object() {
                runs.push(run(false));
            }
            if now["running"].is_object() && last["terminated"].is_object() {
                runs.push(run(true));
            }
        }
    }
    runs
}

async fn log(kube: &Kube, namespace: &str, pod: &str, container: &str, previous: bool) -> Result<String> {
    let options = LogOptions { previous, tail: Some(LINES), ..LogOptions::default() };
    let stream = kube.log_stream(namespace, pod, container, options).await?;
    let mut bytes = Vec::new();
    stream.take(LOG).read_to_end(&mut bytes).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
