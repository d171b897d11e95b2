//! Prerequisites as far as it takes to see whether they are there: which objects, of which manifest. It is recorded
//! when they are applied, so that a look need not read megabytes of YAML or render charts again.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Prepared;
use crate::error::{Result, ResultExt};
use crate::spec::Prerequisite;
use crate::text::hex;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outline {
    /// Digest of all that they are made from.
    made_from: String,
    /// Of each object its kind and name alone.
    prepared: Vec<Prepared>,
}

/// What is to be recorded. Nothing where a chart is a folder: to tell whether that has changed takes as long as
/// to render it.
pub fn outline(prerequisites: &[Prerequisite], prepared: &[Prepared]) -> Result<Option<Outline>> {
    let Some(made_from) = made_from(prerequisites)? else { return Ok(None) };
    let names = |objects: &[Value]| objects.iter().map(name).collect();
    let prepared = prepared.iter().map(|one| Prepared {
        types: names(&one.types),
        namespaces: names(&one.namespaces),
        rest: names(&one.rest),
        ..one.clone()
    });
    Ok(Some(Outline { made_from, prepared: prepared.collect() }))
}

/// What was recorded, if they are still made from the same.
pub fn recorded(prerequisites: &[Prerequisite], outline: Option<Outline>) -> Result<Option<Vec<Prepared>>> {
    let Some(outline) = outline else { return Ok(None) };
    let is_the_same = made_from(prerequisites)? == Some(outline.made_from);
    Ok(is_the_same.then_some(outline.prepared))
}

fn name(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let mut short = json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": {"name": metadata["name"]},
    });
    if metadata["namespace"].is_string() {
        short["metadata"]["namespace"] = metadata["namespace"].clone();
    }
    short
}

/// Digest of the settings and of the local files that they name. What is fetched has its own in the settings.
fn made_from(prerequisites: &[Prerequisite]) -> Result<Option<String>> {
    let mut hash = Sha256::new();
    hash.update(serde_json::to_vec(prerequisites)?);
    for one in prerequisites {
        let places = [&one.manifest, &one.chart].into_iter().flatten().filter(|place| !place.contains("://"));
        let files = places.map(std::path::Path::new).chain(one.values.as_deref());
        for path in files {
            if path.is_dir() {
                return Ok(None);
            }
            let content = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            hash.update(Sha256::digest(content));
        }
    }
    Ok(Some(hex(&hash.finalize())))
}

#[cfg(test)]
mod tests {
    use super::super::prepare;
    use super::*;
    use crate::ports::fetch::Fetcher;

    const TEXT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: n}\nspec: {template: \
                        {spec: {containers: [{name: c, image: example.org/i:1}]}}}\n";

    #[tokio::test]
    async fn what_was_recorded_counts_until_the_file_or_the_settings_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("all.yaml");
        std::fs::write(&path, TEXT).unwrap();
        let place = Some(path.display().to_string());
        let bare = Prerequisite {
            name: "a".into(),
            manifest: place.clone(),
            chart: None,
            sha256: None,
            namespace: None,
            values: None,
        };
        let wanted = [bare.clone()];
        let prepared = prepare(&wanted, &Fetcher::new(folder.path())).await.unwrap();
        let outline = outline(&wanted, &prepared).unwrap();
        assert!(!serde_json::to_string(&outline).unwrap().contains("containers"), "{outline:?}");
        let known = recorded(&wanted, outline.clone()).unwrap().unwrap();
        assert_eq!((&known[0].digest, &known[0].images), (&prepared[0].digest, &prepared[0].images));
        let metadata = json!({"name": "d", "namespace": "n"});
        assert_eq!(known[0].rest, [json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata})]);

        let elsewhere = [Prerequisite { namespace: Some("other".into()), ..bare.clone() }];
        assert_eq!(recorded(&elsewhere, outline.clone()).unwrap(), None);
        std::fs::write(&path, TEXT.replace("i:1", "i:2")).unwrap();
        assert_eq!(recorded(&wanted, outline.clone()).unwrap(), None);
        std::fs::remove_file(&path).unwrap();
        assert!(recorded(&wanted, outline).is_err(), "a file that is gone is said");
        let chart = [Prerequisite { manifest: None, chart: Some(folder.path().display().to_string()), ..bare }];
        assert_eq!(super::outline(&chart, &prepared).unwrap(), None, "a folder is rendered each time");
    }
}
