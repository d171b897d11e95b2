//! Argo CD's own install manifest, adjusted before it is applied for the first time.
//!
//! Settings that Argo CD reads at its start are in place before it starts. What a single developer
//! does not need (single sign-on, notifications) and what only costs start-up time (init containers
//! whose result k8tre provides, slow readiness probes) is left out.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result, ResultExt};
use crate::spec::ArgoCdSpec;

/// The manifest in the order in which it has to be applied.
#[derive(Debug, Clone)]
pub struct Install {
    /// Custom resource definitions, as they are written: most of the manifest's text, and read by nobody but who
    /// applies them.
    types: Vec<String>,
    /// Accounts, permissions, settings, services: all that workloads read when they start.
    pub config: Vec<Value>,
    /// Without the API server, which no Application waits for.
    pub workloads: Vec<Value>,
    pub server: Vec<Value>,
    /// Of the whole: a cluster that carries it needs nothing.
    pub digest: String,
}

/// What an environment wants of its Argo CD besides the manifest.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Entries of `argocd-cm`, over those of the manifest.
    pub config: BTreeMap<String, String>,
    /// Objects that are part of the installation, as a plugin's ConfigMap is.
    pub extra: Vec<Value>,
    /// Sidecar containers of the repo-server, which run its image, and their volumes.
    pub sidecars: Vec<Value>,
    pub volumes: Vec<Value>,
    pub repo_server: RepoServer,
}

/// What the repo-server gets besides; its sidecars get it, too.
#[derive(Debug, Clone, Default)]
pub struct RepoServer {
    pub env_from: Vec<Value>,
    pub mounts: Vec<Value>,
    /// Init containers, which run its image.
    pub init: Vec<Value>,
    pub annotations: BTreeMap<String, String>,
}

/// An Ingress or LoadBalancer without an address is healthy here: nothing on a laptop hands out
/// addresses, and a TRE that is otherwise fine must not wait for one.
const INGRESS_HEALTH: &str = r#"local hs = {status = "Healthy", message = ""}
if obj.status == nil or obj.status.loadBalancer == nil or obj.status.loadBalancer.ingress == nil then
  hs.message = "has no address, which a local environment does without"
end
return hs
"#;

const SERVICE_HEALTH: &str = r#"local hs = {status = "Healthy", message = ""}
if obj.spec.type == "LoadBalancer" and (obj.status == nil or obj.status.loadBalancer == nil or obj.status.loadBalancer.ingress == nil) then
  hs.message = "has no address, which a local environment does without"
end
return hs
"#;

pub fn prepare(manifest: &str, spec: &ArgoCdSpec, settings: &Settings) -> Result<Install> {
    let mut install = Install {
        types: Vec::new(),
        config: Vec::new(),
        workloads: Vec::new(),
        server: Vec::new(),
        digest: String::new(),
    };
    let (types, rest): (Vec<String>, Vec<String>) = documents(manifest).into_iter().partition(|text| is_type(text));
    install.types = types;
    for mut object in read(&rest)? {
        if !wanted(&object, spec) {
            continue;
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match object["kind"].as_str().unwrap_or_default() {
            // Written in another way than Argo CD's own, but JSON is YAML.
            "CustomResourceDefinition" => install.types.push(object.to_string()),
            "Deployment" | "StatefulSet" => {
                workload(&mut object, &name, settings);
                if name == "argocd-server" { install.server.push(object) } else { install.workloads.push(object) }
            }
            // Made by k8tre with their content, and never overwritten by an empty one.
            "Secret" if name == "argocd-secret" => {}
            "ConfigMap" => {
                configure(&mut object, &name, spec, settings);
                install.config.push(object);
            }
            _ => install.config.push(object),
        }
    }
    for (part, missing) in [
        ("custom resource definition", install.types.is_empty()),
        ("workload", install.workloads.is_empty()),
        ("API server", install.server.is_empty()),
    ] {
        if missing {
            return Err(Error::usage(format!("Argo CD's manifest holds no {part}"))
                .hint("give the `install.yaml` of a release: --argocd-manifest FILE"));
        }
    }
    install.config.extend(settings.extra.clone());
    install.digest = install.seal()?;
    Ok(install)
}

/// The documents of a YAML stream, as text: a line that begins with `---` ends the one before it.
fn documents(manifest: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in manifest.split_inclusive('\n') {
        match documents.last_mut() {
            Some(document) if !line.starts_with("---") => document.push_str(line),
            _ => documents.push(line.trim_start_matches('-').to_owned()),
        }
    }
    documents
}

fn is_type(document: &str) -> bool {
    document.lines().any(|line| line.trim_end() == "kind: CustomResourceDefinition")
}

fn read(documents: &[String]) -> Result<Vec<Value>> {
    let objects: Vec<Value> =
        serde_saphyr::from_multiple(&documents.join("\n---\n")).context("cannot read Argo CD's manifest")?;
    Ok(objects.into_iter().filter(Value::is_object).collect())
}

impl Install {
    /// The custom resource definitions, read.
    pub fn crds(&self) -> Result<Vec<Value>> {
        read(&self.types)
    }

    /// Marks every workload with a digest of the settings that it reads only when it starts, so
    /// that a change of them restarts it, and returns the digest of everything.
    fn seal(&mut self) -> Result<String> {
        let parameters: Vec<&Value> =
            self.config.iter().filter(|object| object["metadata"]["name"] == "argocd-cmd-params-cm").collect();
        let digest = digest(&parameters)?;
        for workload in self.workloads.iter_mut().chain(&mut self.server) {
            workload["spec"]["template"]["metadata"]["annotations"]["k8tre.dev/parameters"] = json!(digest);
        }
        self::digest(&(&self.types, &self.config, &self.workloads, &self.server))
    }

    /// Images that the environment's node must hold.
    pub fn images(&self) -> Vec<String> {
        let mut images: Vec<String> = self
            .workloads
            .iter()
            .chain(&self.server)
            .flat_map(|object| containers(object).into_iter().filter_map(|c| c["image"].as_str().map(str::to_owned)))
            .collect();
        images.sort();
        images.dedup();
        images
    }

    /// The image of Argo CD itself, which also runs the git server.
    pub fn argocd_image(&self) -> Result<String> {
        let server = self.server.first().and_then(|object| containers(object).first().cloned());
        server
            .and_then(|container| container["image"].as_str().map(str::to_owned))
            .ok_or_else(|| Error::failed("Argo CD's manifest names no image for its server"))
    }
}

fn digest(value: &impl serde::Serialize) -> Result<String> {
    let hash = Sha256::digest(serde_json::to_vec(value)?);
    Ok(hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect())
}

fn wanted(object: &Value, spec: &ArgoCdSpec) -> bool {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let dex = name.starts_with("argocd-dex");
    let notifications = name.starts_with("argocd-notifications");
    (!dex || spec.dex) && (!notifications || spec.notifications)
}

fn configure(object: &mut Value, name: &str, spec: &ArgoCdSpec, settings: &Settings) {
    let mut entries: BTreeMap<String, String> = BTreeMap::new();
    let mut set = |key: &str, value: &str| {
        entries.insert(key.to_owned(), value.to_owned());
    };
    match name {
        "argocd-cm" => {
            set("application.resourceTrackingMethod", "annotation");
            set("timeout.reconciliation", "60s");
            set("resource.customizations.health.networking.k8s.io_Ingress", INGRESS_HEALTH);
            set("resource.customizations.health.Service", SERVICE_HEALTH);
            if spec.anonymous {
                set("users.anonymous.enabled", "true");
            }
            entries.extend(settings.config.clone());
        }
        "argocd-cmd-params-cm" => {
            // Reached through a port-forward that is encrypted already; a certificate of its own
            // would only teach people to click warnings away.
            set("server.insecure", "true");
            // Two seconds between the waves of a sync, for other controllers to react: the longest part of an edit's
            // way, and of every Application's that makes its namespace. What the next wave needs, it waits for anyway.
            set("controller.sync.wave.delay.seconds", "0");
        }
        "argocd-rbac-cm" if spec.anonymous => set("policy.default", "role:admin"),
        _ => return,
    }
    let data = object.as_object_mut().map(|object| object.entry("data").or_insert_with(|| Value::Object(Map::new())));
    if let Some(Value::Object(data)) = data {
        data.extend(entries.into_iter().map(|(key, value)| (key, Value::String(value))));
    }
}

fn workload(object: &mut Value, name: &str, settings: &Settings) {
    object["spec"]["replicas"] = json!(1);
    if name == "argocd-repo-server" {
        for (key, value) in &settings.repo_server.annotations {
            object["spec"]["template"]["metadata"]["annotations"][key] = json!(value);
        }
    }
    let pod = &mut object["spec"]["template"]["spec"];
    let plugins = name == "argocd-repo-server" && !settings.sidecars.is_empty();
    match name {
        // Its password Secret is made by k8tre.
        "argocd-redis" => drop(pod.as_object_mut().and_then(|pod| pod.remove("initContainers"))),
        // Copies Argo CD's program for plugin sidecars, 200 MB of it; without a sidecar nobody reads it.
        "argocd-repo-server" if !plugins => drop(pod.as_object_mut().and_then(|pod| pod.remove("initContainers"))),
        _ => {}
    }
    if name == "argocd-repo-server" {
        repo_server(pod, settings);
    }
    for list in ["containers", "initContainers"] {
        for container in pod[list].as_array_mut().into_iter().flatten() {
            // Pinned tags: asking a registry again could only fail.
            container["imagePullPolicy"] = json!("IfNotPresent");
            if let Some(probe) = container.get_mut("readinessProbe").filter(|probe| probe.is_object()) {
                probe["initialDelaySeconds"] = json!(0);
                probe["periodSeconds"] = json!(1);
                probe["failureThreshold"] = json!(30);
            }
        }
    }
}

fn repo_server(pod: &mut Value, settings: &Settings) {
    let image = pod["containers"][0]["image"].clone();
    let with_image = |containers: &[Value]| -> Vec<Value> {
        let of_image = |container: &Value| {
            let mut container = container.clone();
            container["image"] = image.clone();
            container
        };
        containers.iter().map(of_image).collect()
    };
    append(pod, "containers", &with_image(&settings.sidecars));
    append(pod, "volumes", &settings.volumes);
    for container in pod["containers"].as_array_mut().into_iter().flatten() {
        append(container, "envFrom", &settings.repo_server.env_from);
        append(container, "volumeMounts", &settings.repo_server.mounts);
    }
    append(pod, "initContainers", &with_image(&settings.repo_server.init));
}

/// Adds to a list of a pod or container, which need not be there yet.
fn append(object: &mut Value, list: &str, more: &[Value]) {
    if more.is_empty() {
        return;
    }
    match &mut object[list] {
        Value::Array(list) => list.extend(more.iter().cloned()),
        other => *other = Value::Array(more.to_vec()),
    }
}

fn containers(workload: &Value) -> Vec<Value> {
    let pod = &workload["spec"]["template"]["spec"];
    ["initContainers", "containers"]
        .iter()
        .flat_map(|list| pod[*list].as_array().cloned().unwrap_or_default())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = "
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: argocd-repo-server}
spec: {template: {spec: {containers: [{name: server, image: argocd}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: argocd-server}
spec: {template: {spec: {containers: [{name: server, image: argocd}]}}}
";

    fn spec() -> ArgoCdSpec {
        ArgoCdSpec {
            at: crate::spec::ArgoCdAt::CoLocated,
            version: "v3.6.1".into(),
            manifest: None,
            anonymous: false,
            dex: false,
            notifications: false,
        }
    }

    #[test]
    fn types_are_found_however_they_are_separated_and_written() {
        let types = [
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: one}",
            "# First of all.\n---\napiVersion: apiextensions.k8s.io/v1\r\nkind: CustomResourceDefinition\r\nmetadata:\n  name: one",
            "--- # with a comment\nkind: CustomResourceDefinition\nmetadata: {name: one, annotations: {a: \"---\"}}\n--- {}",
            "--- {\"kind\": \"CustomResourceDefinition\", \"metadata\": {\"name\": \"one\"}}",
        ];
        for text in types {
            let install = prepare(&format!("{text}{REST}"), &spec(), &Settings::default()).expect(text);
            let crds = install.crds().expect(text);
            assert_eq!(crds.len(), 1, "{text}");
            assert_eq!(crds[0]["metadata"]["name"], "one", "{text}");
            assert_eq!((install.workloads.len(), install.server.len()), (1, 1), "{text}");
        }
    }

    #[test]
    fn another_type_is_another_installation_and_a_broken_one_is_an_error() {
        let with = |text: &str| prepare(&format!("{text}{REST}"), &spec(), &Settings::default()).unwrap();
        let (one, two) =
            (with("kind: CustomResourceDefinition\nspec: 1"), with("kind: CustomResourceDefinition\nspec: 2"));
        assert_ne!(one.digest, two.digest);
        let broken = with("kind: CustomResourceDefinition\nspec: [");
        assert!(broken.crds().unwrap_err().to_string().contains("manifest"));
        let none = prepare(REST, &spec(), &Settings::default()).unwrap_err();
        assert!(none.to_string().contains("custom resource definition"), "{none}");
    }
}
