//! The configuration that kind gets: one of ours from `kind-configs/`, or the user's own file, and
//! in each the mark that says whose the nodes are.

use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use serde_json::{Value, json};

use super::node_network::HOSTS;
use super::owner::Owner;
use crate::error::{Error, Result, ResultExt};

static CONFIGS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/kind-configs");

/// What the cluster is to be.
#[derive(Debug, Clone)]
pub struct KindSpec {
    pub cluster: String,
    pub owner: Owner,
    pub image: String,
    pub workers: u8,
    /// Ports of this machine for HTTP and HTTPS of an ingress controller.
    pub ingress: Option<IngressPorts>,
    /// The user's own kind configuration, in place of ours.
    pub file: Option<PathBuf>,
    /// Whether containerd reads mirrors of registries.
    pub mirrors: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IngressPorts {
    pub http: u16,
    pub https: u16,
}

impl KindSpec {
    pub fn new(cluster: impl Into<String>, owner: Owner) -> KindSpec {
        let image = super::DEFAULT_NODE_IMAGE.to_owned();
        KindSpec { cluster: cluster.into(), owner, image, workers: 0, ingress: None, file: None, mirrors: false }
    }

    /// Takes one of our configurations by name, or the user's own file.
    pub fn configure(&mut self, choice: &str) -> Result<()> {
        match choice {
            "single" => {}
            "workers" => self.workers = 2,
            "ingress" => self.ingress = Some(IngressPorts { http: 8080, https: 8443 }),
            path if Path::new(path).is_file() => self.file = Some(path.into()),
            other => {
                return Err(Error::usage(format!("\"{other}\" is neither a kind configuration of k8tre's nor a file"))
                    .hint("--kind-config single, workers, ingress, or a file"));
            }
        }
        Ok(())
    }

    /// The whole configuration, as JSON: to kind that is YAML, and nothing in it can be misread.
    pub fn config(&self) -> Result<String> {
        let mut config = self.chosen()?;
        mark(&mut config, &self.owner)?;
        if self.mirrors {
            mirrors(&mut config);
        }
        Ok(config.to_string())
    }

    fn chosen(&self) -> Result<Value> {
        match &self.file {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read the kind configuration {}", path.display()))?;
                parsed(&text, &path.display().to_string())
            }
            None => parsed(&self.rendered()?, "kind-configs"),
        }
    }

    /// Ranges of addresses of pods and Services, and names of nodes.
    pub fn near(&self) -> Result<Vec<String>> {
        let config = self.chosen()?;
        let networking = &config["networking"];
        let range = |field: &str, default: &str| networking[field].as_str().unwrap_or(default).to_owned();
        let mut near = vec![range("serviceSubnet", "10.96.0.0/16"), range("podSubnet", "10.244.0.0/16")];
        near.push(format!("{}-control-plane", self.cluster));
        near.extend((1..=self.workers).map(|number| match number {
            1 => format!("{}-worker", self.cluster),
            more => format!("{}-worker{more}", self.cluster),
        }));
        Ok(near)
    }

    /// Ports of this machine that the configuration takes.
    pub fn host_ports(&self) -> Result<Vec<u16>> {
        let config: Value = serde_json::from_str(&self.config()?)?;
        let nodes = config["nodes"].as_array().cloned().unwrap_or_default();
        let mappings = nodes.iter().flat_map(|node| node["extraPortMappings"].as_array().cloned().unwrap_or_default());
        let api = config["networking"]["apiServerPort"].as_u64();
        let ports = mappings.filter_map(|mapping| mapping["hostPort"].as_u64()).chain(api);
        Ok(ports.filter_map(|port| u16::try_from(port).ok()).filter(|port| *port > 0).collect())
    }

    fn rendered(&self) -> Result<String> {
        let name = match (self.ingress, self.workers) {
            (Some(_), _) => "ingress.yaml",
            (None, 0) => "single-node.yaml",
            (None, _) => "workers.yaml",
        };
        let mut templates = minijinja::Environment::new();
        templates.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
        templates.set_loader(|name| {
            let file = CONFIGS.get_file(Path::new(name)).and_then(|file| file.contents_utf8());
            Ok(file.map(str::to_owned))
        });
        let ports = self.ingress.unwrap_or(IngressPorts { http: 0, https: 0 });
        let values =
            minijinja::context! { workers => self.workers, http_port => ports.http, https_port => ports.https };
        templates.get_template(name)?.render(values).with_context(|| format!("kind-configs/{name}"))
    }
}

/// Bounds for a file that people write by hand: far above any real one, far below what hurts.
fn parsed(text: &str, name: &str) -> Result<Value> {
    let budget = serde_saphyr::budget! { max_depth: 64, max_nodes: 20_000, max_aliases: 1_000 };
    let options = serde_saphyr::options! { budget: budget };
    let config: Value = serde_saphyr::from_str_with_options(text, options)
        .with_context(|| format!("the kind configuration {name} is not valid YAML"))?;
    match (config["kind"].as_str(), config["apiVersion"].as_str()) {
        (Some("Cluster"), Some("kind.x-k8s.io/v1alpha4")) => Ok(config),
        _ => Err(Error::usage(format!("the kind configuration {name} is no kind configuration"))
            .hint("it must say: kind: Cluster and apiVersion: kind.x-k8s.io/v1alpha4")),
    }
}

/// Has containerd read for each registry how it is reached. kind lays this over its own configuration, which older and newer
/// versions of containerd understand in this form.
fn mirrors(config: &mut Value) {
    let patch = format!("[plugins.\"io.containerd.grpc.v1.cri\".registry]\n  config_path = \"{HOSTS}\"\n");
    match &mut config["containerdConfigPatches"] {
        Value::Array(patches) => patches.push(patch.into()),
        other => *other = json!([patch]),
    }
}

/// Adds the mount that says whose each node is.
fn mark(config: &mut Value, owner: &Owner) -> Result<()> {
    let nodes = &mut config["nodes"];
    if nodes.as_array().is_none_or(Vec::is_empty) {
        *nodes = json!([{"role": "control-plane"}]);
    }
    for node in nodes.as_array_mut().into_iter().flatten() {
        let node =
            node.as_object_mut().ok_or_else(|| Error::usage("a node of the kind configuration is no mapping"))?;
        let mounts = node.entry("extraMounts").or_insert_with(|| json!([]));
        let mark = json!({"hostPath": "/dev/null", "containerPath": owner.mark(), "readOnly": true});
        match mounts {
            Value::Array(mounts) => mounts.push(mark),
            Value::Null => *mounts = json!([mark]),
            _ => return Err(Error::usage("extraMounts of the kind configuration is no list")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> KindSpec {
        KindSpec::new("k8tre-alice", Owner { environment: "alice".into(), id: "1".into() })
    }

    fn config(spec: &KindSpec) -> Value {
        serde_json::from_str(&spec.config().unwrap()).unwrap()
    }

    #[test]
    fn every_node_carries_the_mark() {
        let many = KindSpec { workers: 2, ..spec() };
        let config = config(&many);
        let nodes = config["nodes"].as_array().unwrap();
        assert_eq!(nodes.len(), 3);
        for node in nodes {
            assert_eq!(node["extraMounts"][0]["containerPath"], "/k8tre/owner/alice/1");
            assert_eq!(node["extraMounts"][0]["readOnly"], true);
        }
    }

    #[test]
    fn host_ports_are_mapped_on_one_node_alone() {
        let ingress = KindSpec { workers: 2, ingress: Some(IngressPorts { http: 8080, https: 8443 }), ..spec() };
        let config = config(&ingress);
        let mapped =
            config["nodes"].as_array().unwrap().iter().filter(|n| n.get("extraPortMappings").is_some()).count();
        assert_eq!(mapped, 1);
        assert_eq!(ingress.host_ports().unwrap(), [8080, 8443]);
        assert_eq!(spec().host_ports().unwrap(), [] as [u16; 0]);
    }

    #[test]
    fn the_users_own_file_is_kept_and_marked() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mine.yaml");
        let own = "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: {apiServerPort: 6443}\n\
            nodes:\n- role: control-plane\n  extraMounts:\n  - {hostPath: /data, containerPath: /data}\n";
        std::fs::write(&file, own).unwrap();
        let mine = KindSpec { file: Some(file.clone()), ..spec() };
        let config = config(&mine);
        assert_eq!(config["nodes"][0]["extraMounts"][0]["hostPath"], "/data");
        assert_eq!(config["nodes"][0]["extraMounts"][1]["containerPath"], "/k8tre/owner/alice/1");
        assert_eq!(mine.host_ports().unwrap(), [6443]);
        std::fs::write(&file, "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n").unwrap();
        let config: Value = serde_json::from_str(&mine.config().unwrap()).unwrap();
        assert_eq!(config["nodes"][0]["role"], "control-plane");
    }

    #[test]
    fn a_file_that_is_something_else_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pod.yaml");
        std::fs::write(&file, "kind: Pod\napiVersion: v1\n").unwrap();
        let error = KindSpec { file: Some(file), ..spec() }.config().unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("pod.yaml"), "{error}");
    }
}
