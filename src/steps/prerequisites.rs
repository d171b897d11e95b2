//! What the cluster has to have before Argo CD, applied in order and awaited.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::{Error, Result};
use crate::ports::kube::{Kube, Type, condition, name_of};
use crate::prerequisites::{Prepared, outline};
use crate::steps::{CLUSTER, IMAGES, PREREQUISITES, objects, rollout};

/// On every object: digest of the manifest that it came from.
const APPLIED: &str = "k8tre.dev/prerequisite";
/// Charts that wait for each other's webhooks come up in minutes.
const LIMIT: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(300);

pub struct Prerequisites;

#[async_trait]
impl Step<Context> for Prerequisites {
    fn id(&self) -> StepId {
        PREREQUISITES
    }

    fn needs(&self) -> &[StepId] {
        &[CLUSTER, IMAGES]
    }

    fn inside(&self) -> Option<StepId> {
        Some(CLUSTER)
    }

    fn describe(&self) -> String {
        "prerequisites of the settings: manifests and charts, in order".into()
    }

    fn limit(&self) -> Duration {
        LIMIT
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        let Some(kube) = cx.kube().await? else { return Ok(Context::needs_cluster()) };
        for prepared in cx.outlined_prerequisites().await? {
            if let Some(wrong) = wrong(&kube, prepared, &cx.id).await? {
                return Ok(State::Drifted(format!("{}: {wrong}", prepared.name)));
            }
        }
        Ok(State::Ready)
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        let kube = cx.require_kube().await?;
        let all = cx.prerequisites().await?;
        let outline = outline(&cx.spec.prerequisites, all)?;
        cx.note(|facts| facts.prerequisites = outline)?;
        for prepared in all {
            if wrong(&kube, prepared, &cx.id).await?.is_none() {
                continue;
            }
            for batch in [&prepared.types, &prepared.namespaces, &prepared.rest] {
                for object in batch {
                    cx.detail(PREREQUISITES, &format!("{}: applying {}", prepared.name, shown(object)));
                    if !cx.provider().owns_cluster() {
                        let namespace = namespace(object, prepared);
                        objects::refuse_foreign(&kube, object, namespace, &cx.id).await?;
                    }
                    apply(&kube, prepared, object, &cx.id).await?;
                }
                while let Some(missing) = unready(&kube, prepared, batch).await? {
                    cx.detail(PREREQUISITES, &format!("{}: {missing}", prepared.name));
                    tokio::time::sleep(POLL).await;
                }
            }
        }
        Ok(())
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        let Some(kube) = cx.kube().await? else { return Ok(()) };
        for prepared in cx.outlined_prerequisites().await?.iter().rev() {
            for object in prepared.rest.iter().chain(&prepared.namespaces).chain(&prepared.types) {
                let Some(of) = kube.discover(object).await? else { continue };
                let (namespace, name) = (namespace(object, prepared), name_of(object)?);
                let there = kube.get(&of, namespace, name).await?;
                if there.is_some_and(|there| objects::owner(&there) == Some(&cx.id)) {
                    kube.delete(&of, namespace, name).await?;
                }
            }
            for object in prepared.namespaces.iter().chain(&prepared.types) {
                objects::await_deletion(&kube, object, "", |text| cx.detail(PREREQUISITES, text)).await?;
            }
        }
        Ok(())
    }
}

/// What is not there, not ours, from another manifest, or not ready.
async fn wrong(kube: &Kube, prepared: &Prepared, id: &str) -> Result<Option<String>> {
    let mut known: Vec<(Value, Type)> = Vec::new();
    for object in prepared.objects() {
        let kind = json!([object["apiVersion"], object["kind"]]);
        let of = match known.iter().find(|(asked, _)| *asked == kind) {
            Some((_, of)) => Some(of.clone()),
            None => kube.discover(object).await?,
        };
        let Some(of) = of else {
            return Ok(Some(format!("the cluster does not know the kind of {}", shown(object))));
        };
        let Some(there) = kube.get(&of, namespace(object, prepared), name_of(object)?).await? else {
            return Ok(Some(format!("{} is missing", shown(object))));
        };
        known.push((kind, of));
        let applied = there["metadata"]["annotations"][APPLIED].as_str();
        if applied != Some(&prepared.digest) || objects::owner(&there) != Some(id) {
            return Ok(Some(format!("{} is from another manifest", shown(object))));
        }
    }
    let all: Vec<Value> = prepared.objects().cloned().collect();
    unready(kube, prepared, &all).await
}

async fn apply(kube: &Kube, prepared: &Prepared, object: &Value, id: &str) -> Result<()> {
    let of = kube.discover(object).await?.ok_or_else(|| {
        Error::failed(format!("{}: the cluster does not know the kind of {}", prepared.name, shown(object)))
            .hint("list what defines that kind before it, among the prerequisites")
    })?;
    let mut object = objects::owned(object.clone(), id);
    object["metadata"]["annotations"][APPLIED] = json!(prepared.digest);
    kube.apply_as(&of, &object, namespace(&object, prepared)).await.map(drop)
}

/// What of these objects is not ready yet, as Argo CD would say it of them.
async fn unready(kube: &Kube, prepared: &Prepared, batch: &[Value]) -> Result<Option<String>> {
    for object in batch {
        let of = Type::of(object)?;
        let is_ready: fn(&Value) -> bool = match of.kind() {
            "CustomResourceDefinition" => |there| condition(there, "Established").is_some(),
            "Deployment" | "StatefulSet" => rollout::is_done,
            "DaemonSet" => |there| {
                let number = |key: &str| there["status"][key].as_u64().unwrap_or(0);
                there["status"]["observedGeneration"] == there["metadata"]["generation"]
                    && number("desiredNumberScheduled") > 0
                    && number("updatedNumberScheduled") >= number("desiredNumberScheduled")
                    && number("numberAvailable") >= number("desiredNumberScheduled")
            },
            "Job" => |there| condition(there, "Complete").is_some(),
            "APIService" => |there| condition(there, "Available").is_some(),
            _ => continue,
        };
        let of = Type::scoped(
            object["apiVersion"].as_str().unwrap_or_default(),
            of.kind(),
            of.is_namespaced() && of.kind() != "APIService",
        );
        let there = kube.get(&of, namespace(object, prepared), name_of(object)?).await?.unwrap_or_default();
        if of.kind() == "Job" && condition(&there, "Failed").is_some() {
            return Err(Error::failed(format!("{}: {} has failed", prepared.name, shown(object))));
        }
        if !is_ready(&there) {
            return Ok(Some(format!("waiting for {}", shown(object))));
        }
    }
    Ok(None)
}

fn namespace<'a>(object: &'a Value, prepared: &'a Prepared) -> &'a str {
    object["metadata"]["namespace"].as_str().unwrap_or(&prepared.namespace)
}

fn shown(object: &Value) -> String {
    let text = |value: &Value| crate::text::one_line(value.as_str().unwrap_or("?"), 80);
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}
