//! What the K8TRE repository needs beyond its layout, as data that can be overridden and is explained.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::appset::ApplicationSet;
use super::overlay::{OverlaySpec, belongs_to, operation};
use super::repository::Repository;
use super::templates;
use super::tree::Tree;

/// The choices for a repository of the K8TRE project. Every field may be changed before it is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preset {
    pub name: String,
    /// `kustomize.buildOptions` of argocd-cm.
    pub build_options: String,
    pub plugin: Option<Plugin>,
    /// Labels of the cluster's Secret that apply unless the user gives them.
    pub labels: BTreeMap<String, String>,
    /// Applications that an environment on a laptop leaves out.
    pub skips: Vec<Skip>,
    /// Differences that are no drift, and that each render makes anew.
    pub ignore_differences: Vec<Ignore>,
    /// Whether `rwo-default` and `rwx-default` are made from the provisioner that kind brings.
    pub local_storage: bool,
    /// Addresses for LoadBalancers, `172.18.250.1-172.18.250.50`; the caller knows kind's network.
    pub address_range: Option<String>,
    /// What each choice is for, as `preview` shows it.
    pub explanations: Vec<Explanation>,
}

/// A config management plugin. It runs as a sidecar of the repo-server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plugin {
    pub name: String,
    pub version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skip {
    pub app: String,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ignore {
    pub app: String,
    /// Entries of `ignoreDifferences`.
    pub entries: Vec<Value>,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    pub choice: String,
    pub reason: String,
    /// The setting that changes it.
    pub setting: String,
}

/// K8TRE's plugin, as its ApplicationSets name it: name and version.
const PLUGIN: (&str, &str) = ("kustomize-with-envsubst", "v1.0");

const LAPTOP_SKIPS: &[(&str, &str)] = &[
    ("nginx", "the gateway serves what it would; two of them would want the same ports"),
    ("kare-dns", "it rewrites CoreDNS with k3s' own host names, which kind does not have"),
    ("externaldns", "it writes to the etcd of kare-dns"),
    ("cluster-autoscaler", "it scales groups of machines at AWS"),
    ("default-network-policy", "it is for AWS"),
];

/// What belongs to the cluster that carries a vCluster.
const VCLUSTER_SKIPS: &[(&str, &str)] = &[
    ("gateway", "the host's gateway controller does not see the GatewayClasses and Gateways of a vCluster"),
    ("loadbalancer", "a vCluster's Services get their addresses from the host's load balancer"),
    ("storage-class", "a vCluster's claims are made on the host, by the host's StorageClasses"),
];

impl Preset {
    /// The preset of a repository, if it is one of the K8TRE project: by layout and by the plugin that it names.
    pub fn recognise(repository: &Repository, tree: &dyn Tree) -> Option<Preset> {
        let plugin = format!("{}-{}", PLUGIN.0, PLUGIN.1);
        let names_plugin = repository.application_sets.iter().any(|set| {
            set.value.pointer("/spec/template/spec/source/plugin/name").and_then(Value::as_str) == Some(&plugin)
        });
        let has_layout = ["apps", "agnostics"].iter().all(|folder| !tree.below(folder).is_empty());
        (names_plugin && has_layout).then(|| Self::k8tre(repository))
    }

    /// The same for a vCluster, which leaves to its host what only that can do.
    pub fn in_vcluster(mut self, repository: &Repository) -> Preset {
        self.skips.extend(skips(VCLUSTER_SKIPS, repository));
        self.local_storage = false;
        self
    }

    fn k8tre(repository: &Repository) -> Preset {
        let has = |app: &str| repository.application_sets.iter().any(|set| belongs_to(set, app));
        let skips = skips(LAPTOP_SKIPS, repository);
        let labels = [("vendor", "k3s"), ("secret-store", "kubernetes")];
        Preset {
            name: "k8tre".into(),
            build_options: "--enable-helm --load-restrictor LoadRestrictionsNone".into(),
            plugin: Some(Plugin { name: PLUGIN.0.into(), version: PLUGIN.1.into() }),
            labels: labels.map(|(key, value)| (key.into(), value.into())).into(),
            skips,
            ignore_differences: ignores().into_iter().filter(|ignore| has(&ignore.app)).collect(),
            local_storage: has("storage-class"),
            address_range: None,
            explanations: explanations(),
        }
    }

    /// Makes the choices for an environment: labels that it lacks, skips that `--only` does not ask for.
    pub fn apply(&self, spec: &mut OverlaySpec) {
        for (key, value) in &self.labels {
            spec.labels.entry(key.clone()).or_insert_with(|| value.clone());
        }
        for skip in self.skips.iter().filter(|skip| !spec.only.contains(&skip.app)) {
            if !spec.skip.contains(&skip.app) {
                spec.skip.push(skip.app.clone());
            }
        }
        spec.preset = Some(self.clone());
    }

    /// Name of the plugin as Applications give it.
    pub fn plugin_name(&self) -> Option<String> {
        self.plugin.as_ref().map(|plugin| format!("{}-{}", plugin.name, plugin.version))
    }
}

/// Those that the repository has.
fn skips(list: &[(&str, &str)], repository: &Repository) -> Vec<Skip> {
    let has = |app: &str| repository.application_sets.iter().any(|set| belongs_to(set, app));
    let all = list.iter().filter(|(app, _)| has(app));
    all.map(|(app, reason)| Skip { app: (*app).into(), reason: (*reason).into() }).collect()
}

fn ignores() -> Vec<Ignore> {
    let checksums =
        ["checksum~1secret", "checksum~1auth-token"].map(|name| format!("/spec/template/metadata/annotations/{name}"));
    let cnpg = json!({
        "group": "postgresql.cnpg.io", "kind": "Cluster",
        "jqPathExpressions": [".spec.managed.roles[].connectionLimit", ".spec.managed.roles[].inherit"],
    });
    vec![
        Ignore {
            app: "jupyterhub".into(),
            entries: vec![
                json!({"kind": "Secret", "name": "hub", "jsonPointers": ["/data"]}),
                json!({"group": "apps", "kind": "Deployment", "jsonPointers": checksums}),
            ],
            reason: "its chart makes new random secrets at each render, and each would restart the hub and the proxy"
                .into(),
        },
        Ignore {
            app: "keycloak".into(),
            entries: vec![cnpg],
            reason: "CloudNativePG fills in defaults of managed roles".into(),
        },
    ]
}

fn explanations() -> Vec<Explanation> {
    [
        (
            "kustomize.buildOptions",
            "charts are inflated by kustomize, and env folders read files beside them",
            "preset.build-options",
        ),
        ("plugin sidecar kustomize-with-envsubst-v1.0", "manifests hold ${DOMAIN} and ${ENVIRONMENT}", "preset.plugin"),
        ("label vendor=k3s", "the k3s variants of the agnostics fit kind best", "--vendor"),
        (
            "label secret-store=kubernetes",
            "secrets come from a namespace of the cluster, not from a cloud",
            "--label secret-store=…",
        ),
        ("local storage classes", "Longhorn needs iscsid on the node, which kind has not", "preset.local-storage"),
        (
            "MetalLB range",
            "the repository leaves METALLB_IP_RANGE unset, which gives an empty pool",
            "preset.address-range",
        ),
        (
            "prerequisites: none",
            "the cluster has no Gateway API and no Cilium; parts that use their kinds fail until you list them",
            "prerequisites",
        ),
        ("ignoreDifferences", "values that each render makes anew are no drift", "preset.ignore-differences"),
    ]
    .map(|(choice, reason, setting)| Explanation {
        choice: choice.into(),
        reason: reason.into(),
        setting: setting.into(),
    })
    .into()
}

/// Replaces generated env folders by those that fit a laptop. The developer's own are not among `files`.
pub(super) fn adapt(preset: &Preset, spec: &OverlaySpec, files: &mut BTreeMap<String, String>) {
    let folders: Vec<String> =
        files.keys().filter_map(|path| path.strip_suffix("/kustomization.yaml")).map(str::to_owned).collect();
    for folder in folders {
        let kustomization = format!("{folder}/kustomization.yaml");
        if preset.local_storage && folder.starts_with("agnostics/storage-class/k3s/") {
            files.insert(kustomization, templates::env_kustomization("storage-classes.yaml"));
            files.insert(format!("{folder}/storage-classes.yaml"), templates::STORAGE_CLASSES.to_owned());
        } else if let Some(range) = &preset.address_range
            && folder.starts_with("agnostics/loadbalancer/k3s/")
        {
            let base = templates::env_kustomization(&format!("../{}", spec.base_env));
            files.insert(kustomization, format!("{base}{}", templates::address_range(range)));
        }
    }
}

/// The patches of an ApplicationSet for the differences that are no drift.
pub(super) fn operations(preset: &Preset, set: &ApplicationSet) -> Vec<Value> {
    let entries: Vec<Value> =
        preset.ignore_differences.iter().filter(|i| belongs_to(set, &i.app)).flat_map(|i| i.entries.clone()).collect();
    let Some(spec) = set.spec.template.get("spec").filter(|_| !entries.is_empty()) else { return Vec::new() };
    let at = "/spec/template/spec";
    let mut operations = match spec.get("ignoreDifferences").and_then(Value::as_array) {
        Some(_) => {
            entries.into_iter().map(|entry| operation("add", &format!("{at}/ignoreDifferences/-"), entry)).collect()
        }
        None => vec![operation("add", &format!("{at}/ignoreDifferences"), entries)],
    };
    let respect = "RespectIgnoreDifferences=true";
    operations.push(match (spec.pointer("/syncPolicy/syncOptions"), spec.get("syncPolicy")) {
        (Some(Value::Array(_)), _) => operation("add", &format!("{at}/syncPolicy/syncOptions/-"), respect),
        (_, Some(Value::Object(_))) => operation("add", &format!("{at}/syncPolicy/syncOptions"), vec![respect]),
        _ => operation("add", &format!("{at}/syncPolicy"), json!({"syncOptions": [respect]})),
    });
    operations
}
