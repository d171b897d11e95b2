//! What a cluster has to have before Argo CD: manifests and charts from the settings, as objects.
//!
//! Everything is had before anything is made: fetched (pinned by checksum) or read, charts rendered by helm.

mod outline;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result, ResultExt};
use crate::gitops::yaml;
use crate::ports::fetch::{Checksum, Fetcher, Wanted};
use crate::ports::process::Program;
use crate::spec::Prerequisite;
use crate::text::hex;
pub use outline::{Outline, outline, recorded};

const SIZE_LIMIT: u64 = 64 << 20;
const HELM_LIMIT: Duration = Duration::from_secs(60);

/// A prerequisite, ready to be applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prepared {
    pub name: String,
    /// In the order in which they have to be applied: types, namespaces, the rest.
    pub types: Vec<Value>,
    pub namespaces: Vec<Value>,
    pub rest: Vec<Value>,
    /// Of objects that name none.
    pub namespace: String,
    pub digest: String,
    /// Images of its pods.
    pub images: Vec<String>,
}

impl Prepared {
    pub fn objects(&self) -> impl Iterator<Item = &Value> {
        self.types.iter().chain(&self.namespaces).chain(&self.rest)
    }
}

/// Containers of the pods that an object makes.
pub fn containers(object: &Value) -> Vec<&Value> {
    let pod = ["/spec/template/spec", "/spec", "/spec/jobTemplate/spec/template/spec"];
    let pods = pod.iter().filter_map(|pointer| object.pointer(pointer));
    let lists = pods.flat_map(|pod| [&pod["containers"], &pod["initContainers"]]);
    lists.filter_map(Value::as_array).flatten().collect()
}

/// Images of the pods that some objects make.
pub fn images(objects: &[Value]) -> Vec<String> {
    let containers = objects.iter().flat_map(containers);
    let mut images: Vec<String> =
        containers.filter_map(|container| container["image"].as_str()).map(str::to_owned).collect();
    images.sort();
    images.dedup();
    images
}

/// All of them, in order.
pub async fn prepare(prerequisites: &[Prerequisite], fetcher: &Fetcher) -> Result<Vec<Prepared>> {
    let mut prepared = Vec::new();
    for prerequisite in prerequisites {
        let what = format!("the prerequisite {}", prerequisite.name);
        prepared.push(one(prerequisite, fetcher).await.context(what)?);
    }
    Ok(prepared)
}

async fn one(prerequisite: &Prerequisite, fetcher: &Fetcher) -> Result<Prepared> {
    let text = match (&prerequisite.manifest, &prerequisite.chart) {
        (Some(manifest), _) => {
            let path = local(prerequisite, manifest, fetcher).await?;
            std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?
        }
        (None, Some(chart)) => render(prerequisite, &local(prerequisite, chart, fetcher).await?).await?,
        (None, None) => return Err(Error::usage("it names neither a manifest nor a chart")),
    };
    let namespace = prerequisite.namespace.clone();
    let mut prepared = Prepared {
        name: prerequisite.name.clone(),
        types: Vec::new(),
        namespaces: Vec::new(),
        rest: Vec::new(),
        digest: hex(&Sha256::digest(&text)),
        namespace: namespace.clone().unwrap_or_else(|| "default".into()),
        images: Vec::new(),
    };
    let shown = prerequisite.manifest.as_ref().or(prerequisite.chart.as_ref()).map_or("", String::as_str);
    for document in yaml::documents(shown, &text)? {
        let objects = match document.value["kind"].as_str() {
            Some("List") => document.value["items"].as_array().cloned().unwrap_or_default(),
            _ => vec![document.value],
        };
        for object in objects {
            match (object["kind"].as_str(), object["apiVersion"].as_str(), object["metadata"]["name"].as_str()) {
                (Some("CustomResourceDefinition"), Some(_), Some(_)) => prepared.types.push(object),
                (Some("Namespace"), Some(_), Some(_)) => prepared.namespaces.push(object),
                (Some(_), Some(_), Some(_)) => prepared.rest.push(object),
                _ => {
                    return Err(Error::usage(format!(
                        "{shown} holds something that is no Kubernetes object with a name"
                    )));
                }
            }
        }
    }
    let named = |name: &String| prepared.namespaces.iter().any(|object| object["metadata"]["name"] == **name);
    if let Some(name) = namespace.filter(|name| name != "default" && name != "kube-system" && !named(name)) {
        prepared.namespaces.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    }
    if prepared.objects().next().is_none() {
        return Err(Error::usage(format!("{shown} holds no Kubernetes object")));
    }
    prepared.images = images(&prepared.rest);
    Ok(prepared)
}

/// What is fetched of a prerequisite; none if it is a file.
pub fn wanted(prerequisite: &Prerequisite) -> Option<Wanted> {
    let (place, ending) = match (&prerequisite.manifest, &prerequisite.chart) {
        (Some(manifest), _) => (manifest, "yaml"),
        (None, Some(chart)) => (chart, "tgz"),
        (None, None) => return None,
    };
    if !place.contains("://") {
        return None;
    }
    let sha256 = prerequisite.sha256.clone().unwrap_or_default().to_lowercase();
    let name = format!("prerequisite-{}-{}.{ending}", prerequisite.name, sha256.get(..12).unwrap_or_default());
    Some(Wanted { url: place.clone(), name, sha256: Checksum::Known(sha256), limit: SIZE_LIMIT, executable: false })
}

/// The file, fetched if it is an address.
async fn local(prerequisite: &Prerequisite, place: &str, fetcher: &Fetcher) -> Result<PathBuf> {
    if let Some(wanted) = wanted(prerequisite) {
        return fetcher.get(&wanted).await;
    }
    let path = PathBuf::from(place);
    if let Some(expected) = &prerequisite.sha256 {
        let content = std::fs::read(&path).with_context(|| format!("cannot read {place}"))?;
        let actual = hex(&Sha256::digest(&content));
        if !actual.eq_ignore_ascii_case(expected) {
            return Err(Error::usage(format!("{place} has the SHA-256 {actual}, the settings say {expected}"))
                .hint("if you trust the file, write its checksum into the settings"));
        }
    }
    Ok(path)
}

/// The chart's objects. Hooks are left out: they are for releases, and this is none.
async fn render(prerequisite: &Prerequisite, chart: &Path) -> Result<Vec<u8>> {
    if which::which("helm").is_err() {
        return Err(Error::preflight("helm is not on PATH, and a chart is rendered with it")
            .hint("install it: https://helm.sh/docs/intro/install/")
            .hint("or give a manifest: helm template NAME CHART --include-crds > file.yaml"));
    }
    let mut helm =
        Program::new("helm").args(["template", &prerequisite.name]).arg(chart).args(["--include-crds", "--no-hooks"]);
    if let Some(namespace) = &prerequisite.namespace {
        helm = helm.args(["--namespace", namespace]);
    }
    if let Some(values) = &prerequisite.values {
        helm = helm.arg("--values").arg(values);
    }
    // No cluster of the user's may have a say in it.
    let helm = helm.env("KUBECONFIG", "/dev/null").env_remove("HELM_KUBECONTEXT").limit(HELM_LIMIT);
    Ok(helm.run().await.context("helm cannot render the chart")?.stdout)
}

/// Refuses what could not be used, before anything is fetched.
pub fn check(prerequisites: &[Prerequisite]) -> Result<()> {
    let mut names = BTreeMap::new();
    for (i, prerequisite) in prerequisites.iter().enumerate() {
        let name = &prerequisite.name;
        let refused =
            |why: &str| Err(Error::usage(format!("the prerequisite {} cannot be used: {why}", name.escape_debug())));
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > 53 || !name.chars().all(plain) || name.starts_with('-') {
            return refused("its name may have lower-case letters, digits and '-', 53 at most");
        }
        if names.insert(name, i).is_some() {
            return refused("there are two of that name");
        }
        let place = match (&prerequisite.manifest, &prerequisite.chart) {
            (Some(place), None) | (None, Some(place)) => place,
            _ => return refused("it needs either `manifest` or `chart`"),
        };
        if prerequisite.values.is_some() && prerequisite.chart.is_none() {
            return refused("`values` go with a chart");
        }
        let is_sha256 = |text: &String| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match &prerequisite.sha256 {
            Some(sha256) if !is_sha256(sha256) => return refused("`sha256` is no SHA-256 in hexadecimal"),
            None if place.contains("://") => {
                return refused("what is fetched has to be pinned: add `sha256`")
                    .hint(format!("curl -fsSL {place} | sha256sum"));
            }
            _ => {}
        }
        if place.contains("://") && !place.starts_with("https://") && !place.starts_with("http://") {
            return refused("only http and https addresses can be fetched").hint("fetch it by hand and give the file");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(place: &str, sha256: Option<&str>) -> Prerequisite {
        Prerequisite {
            name: "gateway-api".into(),
            manifest: Some(place.into()),
            chart: None,
            sha256: sha256.map(str::to_owned),
            namespace: None,
            values: None,
        }
    }

    #[test]
    fn what_is_fetched_has_to_be_pinned() {
        let error = check(&[manifest("https://example.org/crds.yaml", None)]).unwrap_err();
        assert!(error.to_string().contains("pinned"), "{error}");
        assert_eq!(error.hints(), ["curl -fsSL https://example.org/crds.yaml | sha256sum"]);
        assert!(check(&[manifest("https://example.org/crds.yaml", Some(&"a".repeat(64)))]).is_ok());
        assert!(check(&[manifest("oci://example.org/crds", Some(&"a".repeat(64)))]).is_err());
        assert!(check(&[manifest("crds.yaml", Some("abc"))]).is_err());
        assert!(check(&[manifest("crds.yaml", None), manifest("more.yaml", None)]).is_err(), "two of one name");
        assert!(check(&[Prerequisite { manifest: None, ..manifest("", None) }]).is_err());
        assert!(check(&[Prerequisite { name: "--post-renderer".into(), ..manifest("x.yaml", None) }]).is_err());
    }

    #[tokio::test]
    async fn types_come_first_and_the_namespace_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("all.yaml");
        let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {containers: \
                    [{name: c, image: example.org/i:1}]}}}\n---\n---\napiVersion: apiextensions.k8s.io/v1\nkind: \
                    CustomResourceDefinition\nmetadata: {name: t}\n";
        std::fs::write(&path, text).unwrap();
        let wanted = Prerequisite { namespace: Some("system".into()), ..manifest(path.to_str().unwrap(), None) };
        let fetcher = Fetcher::new(folder.path());
        let prepared = prepare(std::slice::from_ref(&wanted), &fetcher).await.unwrap().remove(0);
        let kinds: Vec<&str> = prepared.objects().filter_map(|object| object["kind"].as_str()).collect();
        assert_eq!(kinds, ["CustomResourceDefinition", "Namespace", "Deployment"]);
        assert_eq!(prepared.images, ["example.org/i:1"]);

        let pinned = Prerequisite { sha256: Some("0".repeat(64)), ..wanted };
        let error = prepare(&[pinned], &fetcher).await.unwrap_err();
        assert!(error.to_string().contains("gateway-api"), "{error}");
        std::fs::write(&path, "just: text\n").unwrap();
        assert!(prepare(&[manifest(path.to_str().unwrap(), None)], &fetcher).await.is_err());
    }
}
