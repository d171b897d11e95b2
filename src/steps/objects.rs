//! Objects that k8tre applies: marked as its own, compared, awaited.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use crate::engine::State;
use crate::error::{Error, Result};
use crate::ports::kube::{Kube, OWNER, Type, name_of};

/// Requests under way at once: enough to hide latency, few enough for an API server that has just started.
const AT_ONCE: usize = 8;
const POLL: Duration = Duration::from_millis(200);

/// The object with the owner mark of the environment.
pub fn owned(mut object: Value, id: &str) -> Value {
    object["metadata"]["annotations"][OWNER] = json!(id);
    object
}

pub fn owner(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][OWNER].as_str()
}

pub async fn apply_all(kube: &Kube, objects: &[Value], namespace: &str) -> Result<()> {
    let applications: Vec<_> = objects.iter().map(|object| kube.apply(object, namespace)).collect();
    stream::iter(applications).buffer_unordered(AT_ONCE).try_for_each(|_| async { Ok(()) }).await
}

/// Whether one of our objects is there, ours, and as we would apply it.
pub async fn observe(kube: &Kube, desired: &Value, namespace: &str, id: &str) -> Result<State> {
    let of = Type::of(desired)?;
    let name = name_of(desired)?;
    let Some(actual) = kube.get(&of, namespace, name).await? else { return Ok(State::Absent) };
    if owner(&actual) != Some(id) {
        return Ok(State::Drifted(format!("{} {name} does not carry this environment's mark", of.kind())));
    }
    if actual["metadata"]["deletionTimestamp"].is_string() {
        return Ok(State::Drifted(format!("{} {name} is being deleted", of.kind())));
    }
    Ok(match difference(&actual, desired) {
        None => State::Ready,
        Some(path) => State::Drifted(format!("{} {name} differs at {path}", of.kind())),
    })
}

/// Refuses to take over what somebody else made under the name that we need.
pub async fn refuse_foreign(kube: &Kube, desired: &Value, namespace: &str, id: &str) -> Result<()> {
    let of = Type::of(desired)?;
    let name = name_of(desired)?;
    match kube.get(&of, namespace, name).await? {
        Some(actual) if owner(&actual) != Some(id) => Err(Error::failed(format!(
            "{} {name} in namespace {namespace} is there already and is not this environment's",
            of.kind()
        ))
        .hint("choose another name for the environment, or remove that object if nobody needs it")),
        _ => Ok(()),
    }
}

/// Deletes one of our objects; one of the same name that is not ours stays.
pub async fn delete_owned(kube: &Kube, object: &Value, namespace: &str, id: &str) -> Result<()> {
    let of = Type::of(object)?;
    let name = name_of(object)?;
    match kube.get(&of, namespace, name).await? {
        Some(actual) if owner(&actual) == Some(id) => kube.delete(&of, namespace, name).await,
        _ => Ok(()),
    }
}

/// Waits while an object is being deleted; one that is not stays. The engine bounds the wait.
pub async fn await_deletion(kube: &Kube, object: &Value, namespace: &str, say: impl Fn(&str)) -> Result<()> {
    let (of, name) = (Type::of(object)?, name_of(object)?);
    while let Some(actual) = kube.get(&of, namespace, name).await? {
        if !actual["metadata"]["deletionTimestamp"].is_string() {
            return Ok(());
        }
        say(&format!("waiting until the old {} {name} is gone", of.kind()));
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

/// Where `actual` is not what `desired` asks for; fields that `desired` does not mention are free.
pub fn difference(actual: &Value, desired: &Value) -> Option<String> {
    match (actual, desired) {
        (_, Value::Object(desired)) => desired.iter().find_map(|(key, wanted)| {
            // An empty value and an absent one are the same to the API server.
            if is_empty(wanted) && actual.get(key).is_none_or(is_empty) {
                return None;
            }
            difference(&actual[key], wanted)
                .map(|path| format!("{key}{}{path}", if path.is_empty() { "" } else { "." }))
        }),
        (Value::Array(actual), Value::Array(desired)) if actual.len() == desired.len() => {
            actual.iter().zip(desired).enumerate().find_map(|(i, (actual, desired))| {
                difference(actual, desired).map(|path| format!("{i}{}{path}", if path.is_empty() { "" } else { "." }))
            })
        }
        _ if actual == desired => None,
        _ => Some(String::new()),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_nobody_asked_for_do_not_differ() {
        let actual =
            json!({"spec": {"replicas": 1, "extra": true, "containers": [{"name": "a", "image": "b", "more": 1}]}});
        assert_eq!(difference(&actual, &json!({"spec": {"replicas": 1, "containers": [{"name": "a"}]}})), None);
        let wanted = json!({"spec": {"containers": [{"image": "c"}]}});
        assert_eq!(difference(&actual, &wanted).as_deref(), Some("spec.containers.0.image"));
        assert_eq!(difference(&actual, &json!({"spec": {"replicas": 2}})).as_deref(), Some("spec.replicas"));
    }
}
