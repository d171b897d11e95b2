//! The objects of a fake cluster, kept as an API server keeps them: a change that changes nothing
//! leaves the resource version as it was.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Where an object is: group and version, plural, namespace, name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub group: String,
    pub plural: String,
    pub namespace: String,
    pub name: String,
}

#[derive(Clone, Debug, Default)]
pub struct Store {
    objects: BTreeMap<Key, Value>,
    version: u64,
}

impl Store {
    pub fn get(&self, key: &Key) -> Option<&Value> {
        self.objects.get(key)
    }

    pub fn contains(&self, plural: &str, name: &str) -> bool {
        self.objects.keys().any(|key| key.plural == plural && key.name == name)
    }

    pub fn all(&self) -> impl Iterator<Item = (&Key, &Value)> {
        self.objects.iter()
    }

    pub fn of_plural<'a>(&'a self, plural: &'a str) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().filter(move |(key, _)| key.plural == plural).map(|(_, object)| object)
    }

    /// Merges a patch into the object, or makes it.
    pub fn patch(&mut self, key: &Key, patch: &Value) -> Value {
        let before = self.objects.get(key).cloned();
        let mut after = before.clone().unwrap_or_else(|| json!({"metadata": {"name": key.name}}));
        merge(&mut after, patch);
        if before.as_ref() == Some(&after) {
            return after;
        }
        self.version += 1;
        let changed = before.is_none_or(|before| before["spec"] != after["spec"]);
        let metadata = &mut after["metadata"];
        if !key.namespace.is_empty() {
            metadata["namespace"] = json!(key.namespace);
        }
        metadata["resourceVersion"] = json!(self.version.to_string());
        if metadata["creationTimestamp"].is_null() {
            // In whole seconds, as an API server has it.
            let now = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second()).unwrap();
            metadata["creationTimestamp"] = json!(now.to_string());
        }
        if metadata["uid"].is_null() {
            metadata["uid"] = json!(format!("uid-{}", self.version));
        }
        let generation = metadata["generation"].as_u64().unwrap_or(0);
        metadata["generation"] = json!(generation + u64::from(changed));
        self.objects.insert(key.clone(), after.clone());
        after
    }

    /// Removes it, and for a namespace all that is in it.
    pub fn delete(&mut self, key: &Key) -> bool {
        if key.plural == "namespaces" {
            self.objects.retain(|other, _| other.namespace != key.name);
        }
        self.objects.remove(key).is_some()
    }

    /// Resource versions by path: what a run that changes nothing leaves as they are.
    pub fn versions(&self) -> BTreeMap<String, String> {
        let shown = |key: &Key| format!("{}/{}/{}/{}", key.group, key.plural, key.namespace, key.name);
        self.objects.iter().map(|(key, o)| (shown(key), o["metadata"]["resourceVersion"].to_string())).collect()
    }
}

fn merge(target: &mut Value, patch: &Value) {
    match patch {
        Value::Object(patch) => {
            if !target.is_object() {
                *target = json!({});
            }
            for (key, value) in patch {
                match value {
                    Value::Null => drop(target.as_object_mut().unwrap().remove(key)),
                    value => merge(&mut target[key], value),
                }
            }
        }
        other => *target = other.clone(),
    }
}
