//! The identity by which a shared Argo CD works in the environment's cluster.

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::Result;
use crate::overlay::EnvironmentOverlay;
use crate::ports::kube::{Kube, Type, name_of};
use crate::shared::role;
use crate::steps::{BRANCH, CLUSTER, IDENTITY, objects};

pub struct Identity;

/// All that it is made of, by what the branch deploys.
fn wanted(cx: &Context) -> Result<Vec<Value>> {
    let named = EnvironmentOverlay::named(&cx.spec)?;
    let objects = role::objects(&named.groups, cx.spec.argocd.namespaces(), cx.spec.argocd.may_escalate());
    Ok(objects.into_iter().map(|object| objects::owned(object, &cx.id)).collect())
}

/// The namespace that an object is in; one that is in none does not mind.
fn place(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or(role::NAMESPACE)
}

/// The namespaces that it is held to, as far as they are not what they are to be: with all their labels and annotations,
/// which Argo CD may not write there.
async fn unmade(cx: &Context, kube: &Kube) -> Result<Vec<(Value, String)>> {
    let mut unmade = Vec::new();
    for (name, metadata) in &cx.overlay().await?.namespaces {
        let mut namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        namespace["metadata"]["name"] = json!(name);
        match kube.get(&Type::new("v1", "Namespace"), "", name).await? {
            None => {
                let why = format!("the namespace {name} is not there");
                unmade.push((objects::owned(namespace, &cx.id), why));
            }
            // One that is there already is somebody's, and as good.
            Some(found) => {
                let lacking = objects::difference(&found, &namespace);
                unmade.extend(lacking.map(|at| (namespace, format!("the namespace {name} differs at {at}"))));
            }
        }
    }
    Ok(unmade)
}

/// Roles and their bindings in namespaces that it is held to no more.
async fn outside(cx: &Context, kube: &Kube) -> Result<Vec<Value>> {
    let mut outside = Vec::new();
    // The right to give rights goes first.
    for kind in ["RoleBinding", "Role"] {
        let of = Type::new("rbac.authorization.k8s.io/v1", kind);
        let all = kube.list(&of, "", "app.kubernetes.io/managed-by=k8tre").await?;
        outside.extend(all.into_iter().filter(|one| {
            one["metadata"]["name"] == role::ACCOUNT
                && objects::owner(one) == Some(&cx.id)
                && !cx.spec.argocd.namespaces().contains(place(one))
        }));
    }
    Ok(outside)
}

#[async_trait]
impl Step<Context> for Identity {
    fn id(&self) -> StepId {
        IDENTITY
    }

    fn needs(&self) -> &[StepId] {
        &[CLUSTER, BRANCH]
    }

    fn inside(&self) -> Option<StepId> {
        Some(CLUSTER)
    }

    fn describe(&self) -> String {
        format!("ServiceAccount {} for Argo CD, with listed rights", role::ACCOUNT)
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        let Some(kube) = cx.kube().await? else { return Ok(Context::needs_cluster()) };
        for object in wanted(cx)? {
            match objects::observe(&kube, &object, place(&object), &cx.id).await? {
                State::Ready => {}
                other => return Ok(other),
            }
        }
        if let Some((_, why)) = unmade(cx, &kube).await?.into_iter().next() {
            return Ok(State::Drifted(why));
        }
        if let Some(one) = outside(cx, &kube).await?.first() {
            return Ok(State::Drifted(format!("Argo CD has rights in the namespace {} still", place(one))));
        }
        Ok(State::Ready)
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        let kube = cx.require_kube().await?;
        for (namespace, _) in unmade(cx, &kube).await? {
            let (of, name) = (Type::of(&namespace)?, name_of(&namespace)?);
            match objects::owner(&namespace) {
                Some(_) => drop(kube.apply(&namespace, "").await?),
                None => kube.merge(&of, "", name, &json!({"metadata": namespace["metadata"]})).await?,
            }
        }
        // One after the other: the account's namespace comes first.
        for object in wanted(cx)? {
            objects::refuse_foreign(&kube, &object, place(&object), &cx.id).await?;
            kube.apply(&object, place(&object)).await?;
        }
        for one in outside(cx, &kube).await? {
            objects::delete_owned(&kube, &one, place(&one), &cx.id).await?;
        }
        Ok(())
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        let Some(kube) = cx.kube().await? else { return Ok(()) };
        for object in wanted(cx)?.iter().rev() {
            objects::delete_owned(&kube, object, place(object), &cx.id).await?;
        }
        Ok(())
    }
}
