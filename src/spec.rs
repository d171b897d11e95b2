//! What an environment is meant to be: the answers of flags, variables and files, settled.
//!
//! The spec is kept in the journal, so that a later `up`, `status` or `down` needs no flags.

mod network;
mod vcluster;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::argocd::NAMESPACE;
use crate::gitops::preset::Preset;
use crate::gitops::windows::Holds;
use crate::gitops::world::IN_CLUSTER;
use crate::names::EnvName;
pub use network::NetworkSpec;
pub use vcluster::{Expose, PodSecurity, VCLUSTER_KUBERNETES, VCLUSTER_VERSION, VclusterSpec};

/// Argo CD's version that k8tre is tested with, and whose manifest checksum it knows.
pub const ARGOCD_VERSION: &str = "v3.6.1";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    pub name: EnvName,
    /// Root folder of the TRE repository's work tree.
    pub repo: PathBuf,
    /// The repository is the embedded sample, written by k8tre.
    pub sample: bool,
    /// Branch that the developer's branch starts from.
    pub base: String,
    /// Environment folder (`envs/<this>`) that the developer's folders build upon.
    pub base_environment: String,
    pub domain: String,
    pub vendor: String,
    /// Labels of the cluster Secret besides those that follow from the rest.
    pub labels: BTreeMap<String, String>,
    pub skip: BTreeSet<String>,
    pub only: BTreeSet<String>,
    /// Apps that the repository's preset would leave out on a laptop, and that are wanted all the same.
    pub with: BTreeSet<String>,
    /// What makes its cluster.
    #[serde(default)]
    pub provider: ProviderSpec,
    pub kind: KindSpec,
    pub argocd: ArgoCdSpec,
    #[serde(default)]
    pub preset: PresetSpec,
    pub merge_kubeconfig: bool,
    #[serde(default)]
    pub source: Source,
    /// The secrets that the repository lists, made before its Applications start.
    #[serde(default)]
    pub secrets: Option<SecretsSpec>,
    /// What the cluster has to have before Argo CD, in this order.
    #[serde(default)]
    pub prerequisites: Vec<Prerequisite>,
    /// Whom to trust on the network, and what stands between it and the rest of the world.
    #[serde(default, skip_serializing_if = "NetworkSpec::is_empty")]
    pub network: NetworkSpec,
    /// Applications that are not synced by themselves for a time.
    #[serde(default)]
    pub holds: Holds,
    /// Applications whose files come from another branch, by name.
    #[serde(default)]
    pub uses: BTreeMap<String, Use>,
    /// When it may be removed by whoever finds it; none means never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<jiff::Timestamp>,
}

/// Where an Application's files come from in place of the base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// Folder of the Application in the repository.
    pub folder: String,
    /// Address of another repository; none for this one.
    pub repo: Option<String>,
    pub branch: String,
    /// The branch's commit when it was taken.
    pub commit: String,
    /// Tip of the developer's branch that it was put on: commits that come later are theirs to keep.
    pub over: String,
    /// The base's files are to come back, after which there is nothing to remember.
    #[serde(default)]
    pub back: bool,
}

/// Where Argo CD reads the developer's branch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The git server inside the environment's cluster.
    #[default]
    Cluster,
    /// A remote of the repository: its name here, and its address as Argo CD reads it.
    Remote { remote: String, url: String },
}

impl Source {
    /// Address of the repository as Argo CD reads it.
    pub fn url(&self) -> String {
        match self {
            Source::Cluster => crate::steps::git_server::url(),
            Source::Remote { url, .. } => url.clone(),
        }
    }
}

/// A cluster that is not the environment's own, and that it cannot do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ground<'a> {
    pub kubeconfig: &'a Path,
    pub context: &'a str,
    pub carries: Carries,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carries {
    /// A shared Argo CD.
    ArgoCd,
    /// The environment's cluster, or what is its cluster.
    Cluster,
}

impl Spec {
    pub fn grounds(&self) -> Vec<Ground<'_>> {
        let ground = |kubeconfig, context, carries| Ground { kubeconfig, context, carries };
        let shared = self.argocd.shared().map(|at| ground(&at.kubeconfig, &at.context, Carries::ArgoCd));
        let carrier = match &self.provider {
            ProviderSpec::Kind => None,
            ProviderSpec::Existing(at) => Some(ground(&at.kubeconfig, &at.context, Carries::Cluster)),
            ProviderSpec::Vcluster(at) => Some(ground(&at.host_kubeconfig, &at.host_context, Carries::Cluster)),
        };
        shared.into_iter().chain(carrier).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretsSpec {
    /// Path of the list in the repository.
    pub file: String,
    pub mode: SecretsMode,
}

/// What happens to a secret that is there already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum SecretsMode {
    /// It keeps its values and gets the keys that it lacks.
    #[default]
    MergeKeys,
    /// It stays as it is.
    Skip,
    /// All its values are made anew.
    Overwrite,
}

/// Something that the cluster has to have before Argo CD: a manifest or a chart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Prerequisite {
    /// What it is called in messages; a chart's release name.
    pub name: String,
    /// Address or file of a Kubernetes manifest.
    pub manifest: Option<String>,
    /// Address or file of a Helm chart (.tgz), or a chart's folder.
    pub chart: Option<String>,
    /// SHA-256 of what is fetched; a must for an address.
    pub sha256: Option<String>,
    /// Namespace of objects that name none; made if it is not there.
    pub namespace: Option<String>,
    /// Values file of the chart.
    pub values: Option<PathBuf>,
}

/// What makes the environment's cluster, with what only that needs to know.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderSpec {
    /// kind, on this machine's Docker, as `Spec::kind` says.
    #[default]
    Kind,
    /// A cluster that is there already, and stays.
    Existing(ExistingSpec),
    /// A vCluster on another cluster.
    Vcluster(VclusterSpec),
}

impl ProviderSpec {
    pub fn existing(&self) -> Option<&ExistingSpec> {
        match self {
            ProviderSpec::Existing(existing) => Some(existing),
            ProviderSpec::Kind | ProviderSpec::Vcluster(_) => None,
        }
    }
}

/// A cluster that somebody else made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExistingSpec {
    /// Context of the user's kubeconfig.
    pub context: String,
    /// The file that has this context: a later command may run with another KUBECONFIG.
    pub kubeconfig: PathBuf,
    /// What kind of cluster it turned out to be, as `k3s` or `EKS`.
    pub flavour: String,
    /// Whether an Argo CD was there before, which is used as it is.
    pub has_argocd: bool,
    /// Whether settings that it lacks are set as long as the environment is there.
    #[serde(default)]
    pub adjust_argocd: bool,
}

impl ExistingSpec {
    /// Whether settings of an Argo CD of somebody else's are changed.
    pub fn adjusts(&self) -> bool {
        self.has_argocd && self.adjust_argocd
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindSpec {
    pub node_image: Option<String>,
    /// Name of a file in `kind-configs/`, or a path.
    pub config: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArgoCdSpec {
    /// Whose it is: the environment's own, or one that others use too.
    #[serde(default)]
    pub at: ArgoCdAt,
    pub version: String,
    pub manifest: Option<PathBuf>,
    /// Opens the UI and API without login.
    pub anonymous: bool,
    pub dex: bool,
    pub notifications: bool,
}

/// Where the environment's Argo CD runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArgoCdAt {
    /// In the environment's own cluster.
    #[default]
    CoLocated,
    /// In another cluster, where it serves others too.
    Shared(SharedArgoCd),
}

/// An Argo CD that others use too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedArgoCd {
    /// Context of the user's kubeconfig.
    pub context: String,
    pub namespace: String,
    /// The file that has this context: a later command may run with another KUBECONFIG.
    pub kubeconfig: PathBuf,
    /// Address of the environment's cluster as Argo CD reaches it.
    pub server: String,
    /// How long the token is valid that Argo CD gets, in seconds.
    pub token_ttl: u64,
    /// Whether it gets a login for the repository from k8tre.
    #[serde(default)]
    pub repo_credentials: bool,
    /// The only namespaces of the environment's cluster that it may manage; empty means all, and what is in none.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub namespaces: BTreeSet<String>,
    /// Whether it may give rights in the environment's cluster that it has not itself.
    #[serde(default)]
    pub may_escalate: bool,
}

impl SharedArgoCd {
    /// As it is given on the command line.
    pub fn place(&self) -> String {
        format!("{}/{}", self.context, self.namespace)
    }
}

/// Where Argo CD's objects are.
pub struct Place<'a> {
    pub kubeconfig: &'a Path,
    pub context: Option<&'a str>,
    pub namespace: &'a str,
}

impl ArgoCdSpec {
    pub fn shared(&self) -> Option<&SharedArgoCd> {
        match &self.at {
            ArgoCdAt::CoLocated => None,
            ArgoCdAt::Shared(shared) => Some(shared),
        }
    }

    /// Where its objects are; `own` is the kubeconfig of the environment's cluster.
    pub fn place<'a>(&'a self, own: &'a Path) -> Place<'a> {
        match self.shared() {
            None => Place { kubeconfig: own, context: None, namespace: NAMESPACE },
            Some(shared) => {
                Place { kubeconfig: &shared.kubeconfig, context: Some(&shared.context), namespace: &shared.namespace }
            }
        }
    }

    /// Whether it may give rights in the environment's cluster that it has not itself.
    pub fn may_escalate(&self) -> bool {
        self.shared().is_some_and(|shared| shared.may_escalate)
    }

    /// The only namespaces that it may manage; empty means all, and what is in none.
    pub fn namespaces(&self) -> &BTreeSet<String> {
        static ALL: BTreeSet<String> = BTreeSet::new();
        self.shared().map_or(&ALL, |shared| &shared.namespaces)
    }

    /// Address of the environment's cluster as Argo CD knows it.
    pub fn server(&self) -> &str {
        self.shared().map_or(IN_CLUSTER, |shared| &shared.server)
    }
}

/// What differs from the choices that k8tre makes for a repository it recognises. Silence means: as
/// recognised.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PresetSpec {
    /// `false` treats the repository as any other.
    pub enabled: Option<bool>,
    /// `kustomize.buildOptions` of Argo CD.
    pub build_options: Option<String>,
    /// `false` leaves the plugin's sidecar out.
    pub plugin: Option<bool>,
    /// `false` keeps the repository's storage classes in place of local ones.
    pub local_storage: Option<bool>,
    /// Addresses for load balancers. Without it: the end of kind's Docker network.
    pub address_range: Option<String>,
    /// `false` shows as drift what each render makes anew.
    pub ignore_differences: Option<bool>,
}

impl PresetSpec {
    /// The preset as recognised, with what the settings say otherwise.
    pub fn adjust(&self, mut preset: Preset) -> Option<Preset> {
        if self.enabled == Some(false) {
            return None;
        }
        if let Some(options) = &self.build_options {
            preset.build_options.clone_from(options);
        }
        if self.plugin == Some(false) {
            preset.plugin = None;
        }
        if self.ignore_differences == Some(false) {
            preset.ignore_differences.clear();
        }
        preset.local_storage = self.local_storage.unwrap_or(preset.local_storage);
        if self.address_range.is_some() {
            preset.address_range.clone_from(&self.address_range);
        }
        Some(preset)
    }
}

impl Spec {
    /// Whether others may use the environment's Argo CD: then k8tre applies the AppProjects itself, and `down` takes
    /// everything back piece by piece.
    pub fn is_fenced(&self) -> bool {
        self.argocd.shared().is_some() || self.provider.existing().is_some()
    }

    /// Whether Argo CD is the environment's own, installed by k8tre.
    pub fn installs_argocd(&self) -> bool {
        self.argocd.shared().is_none() && !self.provider.existing().is_some_and(|existing| existing.has_argocd)
    }

    /// Apps that are left out: what the user says, and what the preset says where the user is silent.
    pub fn skips(&self, preset: Option<&Preset>) -> BTreeSet<String> {
        if !self.only.is_empty() {
            return BTreeSet::new();
        }
        let preset = preset.iter().flat_map(|preset| &preset.skips).map(|skip| skip.app.clone());
        preset.filter(|app| !self.with.contains(app)).chain(self.skip.iter().cloned()).collect()
    }

    /// Labels of the cluster Secret, by which the repository's ApplicationSets choose it.
    pub fn cluster_labels(&self, preset: Option<&Preset>) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::from([
            ("secret-store".to_owned(), "kubernetes".to_owned()),
            ("external-domain".to_owned(), self.domain.clone()),
            ("cluster-name".to_owned(), self.name.cluster()),
            ("region".to_owned(), "local".to_owned()),
        ]);
        labels.extend(preset.iter().flat_map(|preset| preset.labels.clone()));
        labels.insert("vendor".to_owned(), self.vendor.clone());
        labels.extend(self.skips(preset).into_iter().map(|app| (format!("skip-{app}"), "true".to_owned())));
        labels.extend(self.labels.clone());
        // Not to be overridden: these two are what keeps one developer's environment from another's.
        labels.insert("developer".to_owned(), self.name.to_string());
        labels.insert("environment".to_owned(), self.name.environment());
        labels
    }
}
