//! The secrets that the repository lists, made before its Applications start.

use std::collections::BTreeMap;

use async_trait::async_trait;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::{Error, Result};
use crate::gitops::ci_secrets::{CiSecret, CiSecrets, Origin};
use crate::ports::environment;
use crate::ports::kube::{Kube, Type};
use crate::spec::SecretsMode;
use crate::steps::{BRANCH, CLUSTER, SECRETS, objects};

/// By which `k8tre dev secrets` finds them.
pub const LABEL: (&str, &str) = ("app.kubernetes.io/managed-by", "k8tre");

pub struct Secrets;

fn of() -> Type {
    Type::new("v1", "Secret")
}

/// Variables that the list asks for and that are not set here.
pub fn missing_variables(list: &CiSecrets) -> Vec<String> {
    let origins = list.secrets.iter().flat_map(|secret| secret.data.iter().map(|(_, origin)| origin));
    let variables = origins.filter_map(|origin| match origin {
        Origin::Variable(name) => Some(name.clone()),
        _ => None,
    });
    variables.filter(|name| environment::var(name).is_none()).collect()
}

/// What a secret there is to be changed into; `None` when it is as it should be.
fn wanted(secret: &CiSecret, there: Option<&Value>, mode: SecretsMode, id: &str) -> Option<Plan> {
    let Some(there) = there else { return Some(Plan::Make) };
    // Somebody made it by hand: it is theirs.
    if objects::owner(there) != Some(id) {
        return None;
    }
    let lacks = |(key, _): &(String, Origin)| there["data"].get(key).is_none();
    match mode {
        SecretsMode::Overwrite => Some(Plan::Make),
        SecretsMode::MergeKeys if secret.data.iter().any(lacks) => Some(Plan::Complete),
        _ => None,
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Plan {
    Make,
    Complete,
}

async fn plans<'a>(cx: &Context, kube: &Kube, list: &'a CiSecrets) -> Result<Vec<(&'a CiSecret, Plan, Option<Value>)>> {
    let mode = match (cx.options.secrets, &cx.spec.secrets) {
        (Some(mode), _) => mode,
        (None, spec) => spec.as_ref().map(|spec| spec.mode).unwrap_or_default(),
    };
    let mut there: BTreeMap<String, Value> = BTreeMap::new();
    for secret in kube.list(&of(), &list.namespace, "").await? {
        there.insert(secret["metadata"]["name"].as_str().unwrap_or_default().to_owned(), secret);
    }
    let plans = list.secrets.iter().filter_map(|secret| {
        let there = there.remove(&secret.name);
        wanted(secret, there.as_ref(), mode, &cx.id).map(|plan| (secret, plan, there))
    });
    Ok(plans.collect())
}

/// The values that a secret has, and new ones for the keys that it lacks.
fn data(secret: &CiSecret, there: Option<&Value>) -> Result<BTreeMap<String, String>> {
    let mut data = BTreeMap::new();
    for (key, origin) in &secret.data {
        let value = match (there.and_then(|there| there["data"][key].as_str()), origin) {
            (Some(value), _) => value.to_owned(),
            (None, Origin::Variable(name)) => {
                let value = environment::var(name);
                BASE64_STANDARD.encode(value.ok_or_else(|| unset(&secret.name, key, name))?)
            }
            (None, origin) => BASE64_STANDARD.encode(origin.make().unwrap_or_default()),
        };
        data.insert(key.clone(), value);
    }
    Ok(data)
}

fn unset(secret: &str, key: &str, variable: &str) -> Error {
    Error::usage(format!("the variable {variable} is not set, from which {secret}/{key} is to be made"))
        .hint(format!("export {variable}=… and try again"))
}

#[async_trait]
impl Step<Context> for Secrets {
    fn id(&self) -> StepId {
        SECRETS
    }

    fn needs(&self) -> &[StepId] {
        // The list is read from the developer's branch.
        &[CLUSTER, BRANCH]
    }

    fn inside(&self) -> Option<StepId> {
        Some(CLUSTER)
    }

    fn describe(&self) -> String {
        "secrets that the repository lists; those there keep their values".into()
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        let Some(kube) = cx.kube().await? else { return Ok(Context::needs_cluster()) };
        let Some(list) = &cx.overlay().await?.secrets else { return Ok(State::Ready) };
        let plans = plans(cx, &kube, list).await?;
        let complete = plans.iter().all(|(_, plan, _)| *plan == Plan::Make) && plans.len() == list.secrets.len();
        Ok(match plans.first() {
            None => State::Ready,
            Some(_) if complete && cx.options.secrets.is_none() => State::Absent,
            Some((secret, ..)) => State::Drifted(format!(
                "{} of {} are to be made, {} first",
                plans.len(),
                list.secrets.len(),
                secret.name
            )),
        })
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        let kube = cx.require_kube().await?;
        let Some(list) = &cx.overlay().await?.secrets else { return Ok(()) };
        let namespace = namespace(list, &cx.id);
        if kube.get(&Type::new("v1", "Namespace"), "", &list.namespace).await?.is_none() {
            kube.apply(&namespace, "").await?;
        }
        for (secret, plan, there) in plans(cx, &kube, list).await? {
            cx.detail(SECRETS, &secret.name);
            let kept = there.as_ref().filter(|_| plan == Plan::Complete);
            let object = json!({
                "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                "metadata": {"name": secret.name, "labels": {LABEL.0: LABEL.1}},
                "data": data(secret, kept)?
            });
            kube.apply(&objects::owned(object, &cx.id), &list.namespace).await?;
        }
        Ok(())
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        let Some(kube) = cx.kube().await? else { return Ok(()) };
        for secret in made(&kube, &cx.id).await? {
            let text = |key: &str| secret["metadata"][key].as_str().unwrap_or_default();
            // A namespace that was made for them takes them along.
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": text("namespace")}});
            objects::delete_owned(&kube, &namespace, "", &cx.id).await?;
            kube.delete(&of(), text("namespace"), text("name")).await?;
            objects::await_deletion(&kube, &namespace, "", |said| cx.detail(SECRETS, said)).await?;
        }
        Ok(())
    }
}

fn namespace(list: &CiSecrets, id: &str) -> Value {
    objects::owned(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": list.namespace}}), id)
}

/// The secrets that this environment made.
pub async fn made(kube: &Kube, id: &str) -> Result<Vec<Value>> {
    let ours = kube.list(&of(), "", &format!("{}={}", LABEL.0, LABEL.1)).await?;
    Ok(ours.into_iter().filter(|secret| objects::owner(secret) == Some(id)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> CiSecret {
        let data = vec![("user".into(), Origin::Text("admin".into())), ("password".into(), Origin::Password(16))];
        CiSecret { name: "db".into(), data }
    }

    fn there(id: &str, keys: &[&str]) -> Value {
        let data: BTreeMap<&str, &str> = keys.iter().map(|key| (*key, "b2xk")).collect();
        objects::owned(json!({"metadata": {"name": "db"}, "data": data}), id)
    }

    #[test]
    fn a_secret_that_is_there_keeps_its_values() {
        let half = there("id", &["password"]);
        assert_eq!(wanted(&secret(), Some(&half), SecretsMode::MergeKeys, "id"), Some(Plan::Complete));
        let data = data(&secret(), Some(&half)).unwrap();
        assert_eq!((data["password"].as_str(), data["user"].as_str()), ("b2xk", "YWRtaW4="));
        let whole = there("id", &["user", "password"]);
        assert_eq!(wanted(&secret(), Some(&whole), SecretsMode::MergeKeys, "id"), None);
        assert_eq!(wanted(&secret(), Some(&half), SecretsMode::Skip, "id"), None);
        assert_eq!(wanted(&secret(), Some(&whole), SecretsMode::Overwrite, "id"), Some(Plan::Make));
    }

    #[test]
    fn a_secret_that_somebody_else_made_is_theirs() {
        let theirs = json!({"metadata": {"name": "db"}, "data": {}});
        for mode in [SecretsMode::MergeKeys, SecretsMode::Skip, SecretsMode::Overwrite] {
            assert_eq!(wanted(&secret(), Some(&theirs), mode, "id"), None);
        }
    }
}
