//! `templatePatch`: a strategic merge patch of the Application, as far as an Application's type makes one of it.
//!
//! Lists are replaced whole, since no list of an Application's spec has a merge key; `finalizers` is the one list that
//! is added to.

use serde_json::{Map, Value};

/// Directives of strategic merge patches that go beyond `$patch`.
const OTHER_DIRECTIVES: &[&str] = &["$retainKeys", "$setElementOrder", "$deleteFromPrimitiveList"];

/// Fields of an Application that are maps, and those that are lists: the API's type refuses anything else.
const MAPS: &[&str] = &[
    "/metadata",
    "/metadata/labels",
    "/metadata/annotations",
    "/spec",
    "/spec/source",
    "/spec/source/helm",
    "/spec/source/kustomize",
    "/spec/source/directory",
    "/spec/source/plugin",
    "/spec/destination",
    "/spec/syncPolicy",
    "/spec/syncPolicy/automated",
    "/spec/syncPolicy/retry",
];
const LISTS: &[&str] =
    &["/metadata/finalizers", "/spec/sources", "/spec/syncPolicy/syncOptions", "/spec/ignoreDifferences", "/spec/info"];

/// Changes the Application. A patch that is empty changes nothing.
pub fn apply(app: &mut Value, patch: Value) -> Result<(), String> {
    let patch = match patch {
        Value::Null => return Ok(()),
        Value::Object(patch) => patch,
        _ => return Err("templatePatch is not a map".into()),
    };
    let whole = Value::Object(patch);
    let wrong = |pointers: &[&'static str], fits: fn(&Value) -> bool| {
        pointers
            .iter()
            .find(|pointer| whole.pointer(pointer).is_some_and(|value| !value.is_null() && !fits(value)))
            .copied()
    };
    if let Some(pointer) = wrong(MAPS, Value::is_object) {
        return Err(format!("templatePatch: {} is not a map", dotted(pointer)));
    }
    if let Some(pointer) = wrong(LISTS, Value::is_array) {
        return Err(format!("templatePatch: {} is not a list", dotted(pointer)));
    }
    if let Value::Object(patch) = whole {
        merge(app, patch)?;
    }
    Ok(())
}

fn dotted(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

fn merge(target: &mut Value, mut patch: Map<String, Value>) -> Result<(), String> {
    if let Some(directive) = patch.keys().find(|key| OTHER_DIRECTIVES.iter().any(|other| key.starts_with(other))) {
        return Err(format!("templatePatch uses {directive}, whose result {}", super::functions::UNPREDICTABLE));
    }
    match patch.remove("$patch").as_ref().and_then(Value::as_str) {
        Some("replace") => {
            *target = Value::Object(patch);
            return Ok(());
        }
        Some("delete") => {
            *target = Value::Object(Map::new());
            return Ok(());
        }
        _ => {}
    }
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return Ok(()) };
    for (key, value) in patch {
        match value {
            Value::Null => drop(fields.remove(&key)),
            Value::Object(below) => merge(fields.entry(key).or_insert(Value::Null), below)?,
            Value::Array(mut items) if key == "finalizers" => {
                let known = fields.entry(key).or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(known) = known {
                    items.retain(|item| !known.contains(item));
                    known.extend(items);
                }
            }
            value => drop(fields.insert(key, value)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(patch: Value) -> Result<Value, String> {
        let mut app = json!({"metadata": {"finalizers": ["a"]}, "spec": {"source": {"path": "p", "repoURL": "r"}, "syncPolicy": {"syncOptions": ["x"]}}});
        apply(&mut app, patch).map(|()| app)
    }

    #[test]
    fn maps_merge_and_lists_are_replaced() {
        let app = patched(json!({
            "metadata": {"finalizers": ["a", "b"]},
            "spec": {"source": {"path": null, "helm": {"$patch": "merge", "x": 1}}, "syncPolicy": {"syncOptions": ["y"]}},
        }));
        assert_eq!(
            app.unwrap(),
            json!({
                "metadata": {"finalizers": ["a", "b"]},
                "spec": {"source": {"repoURL": "r", "helm": {"x": 1}}, "syncPolicy": {"syncOptions": ["y"]}},
            })
        );
        let app = patched(json!({"spec": {"source": {"$patch": "replace", "path": "q"}}})).unwrap();
        assert_eq!(app["spec"]["source"], json!({"path": "q"}));
    }

    #[test]
    fn what_does_not_fit_an_application_is_refused() {
        for (patch, said) in [
            (json!("text"), "not a map"),
            (json!({"spec": {"source": "text"}}), "spec.source is not a map"),
            (json!({"spec": {"syncPolicy": {"syncOptions": "x"}}}), "spec.syncPolicy.syncOptions is not a list"),
            (json!({"spec": {"$retainKeys": ["x"]}}), "cannot be predicted"),
        ] {
            let error = patched(patch).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        assert!(patched(Value::Null).is_ok());
    }
}
