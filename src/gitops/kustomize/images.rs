//! The field `images` of a kustomization: other names, tags and digests for the images of containers.

use serde_json::Value;

use super::Object;

/// Changes the images of all containers, wherever in an object they are.
pub fn apply(entries: &[Value], objects: &mut [Object]) {
    for object in objects {
        each(&mut object.document.value, &mut |image| {
            for entry in entries {
                if let Some(changed) = changed(entry, image) {
                    *image = changed;
                }
            }
        });
    }
}

fn each(value: &mut Value, change: &mut dyn FnMut(&mut String)) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::Array(containers) if key == "containers" || key == "initContainers" => {
                        let images = containers.iter_mut().filter_map(|container| container.get_mut("image"));
                        images.for_each(|image| {
                            if let Value::String(image) = image {
                                change(image);
                            }
                        });
                    }
                    other => each(other, change),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| each(value, change)),
        _ => {}
    }
}

/// The image as an entry wants it; none if it means another.
fn changed(entry: &Value, image: &str) -> Option<String> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (tagged, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let colon = tagged.rfind(':').filter(|colon| !tagged[*colon..].contains('/'));
    let (name, tag) = colon.map_or((tagged, None), |colon| (&tagged[..colon], Some(&tagged[colon + 1..])));
    if text("name") != Some(name) {
        return None;
    }
    let name = text("newName").unwrap_or(name);
    Some(match (text("newTag"), text("digest")) {
        (Some(tag), Some(digest)) => format!("{name}:{tag}@{digest}"),
        (None, Some(digest)) => format!("{name}@{digest}"),
        (Some(tag), None) => format!("{name}:{tag}"),
        (None, None) => {
            let tag = tag.map(|tag| format!(":{tag}")).unwrap_or_default();
            let digest = digest.map(|digest| format!("@{digest}")).unwrap_or_default();
            format!("{name}{tag}{digest}")
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_tags_and_digests_are_changed_as_kustomize_does() {
        let change = |entry: Value, image: &str| changed(&entry, image);
        assert_eq!(change(json!({"name": "redis", "newTag": "8"}), "redis:7").as_deref(), Some("redis:8"));
        assert_eq!(change(json!({"name": "redis", "newTag": "8"}), "x/redis:7"), None);
        assert_eq!(
            change(json!({"name": "h:5000/a", "newName": "m/a"}), "h:5000/a:1").as_deref(),
            Some("m/a:1"),
            "a port is no tag"
        );
        assert_eq!(change(json!({"name": "a", "digest": "sha256:1"}), "a:1").as_deref(), Some("a@sha256:1"));
    }
}
