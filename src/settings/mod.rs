//! Settings: flag > variable > what the environment was made with > `k8tre.toml` > the user's file > default.
//!
//! The files are read here; `settle` puts all answers together.

mod network;
mod provider;
mod settle;
pub mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::{Error, Result, ResultExt};
use crate::prerequisites;
use crate::spec::{Prerequisite, PresetSpec, SecretsMode};

pub use network::{FileNetwork, network};
pub use provider::VclusterFile;
pub use settle::{Found, of_name, settle};

/// Name of the settings file at the root of a TRE repository.
pub const FILE: &str = "k8tre.toml";

/// Settings of k8tre: `k8tre.toml` at the root of a TRE repository, or the user's `config.toml`. Every key is
/// optional; an unknown one is an error.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FileSettings {
    /// Branch that the developer's branch starts from. Without it: the one checked out.
    pub base: Option<String>,
    /// Environment folder (`envs/<this>`) that the developer's folders build upon. Without it: `dev`.
    pub base_environment: Option<String>,
    /// Domain of the TRE. Without it: `NAME.k8tre.internal`.
    pub domain: Option<String>,
    /// Value of the cluster's vendor label. Without it: as the repository suggests.
    pub vendor: Option<String>,
    /// Labels of the cluster Secret besides those that follow from the rest.
    pub labels: BTreeMap<String, String>,
    /// Apps to leave out.
    pub skip: Vec<String>,
    /// The only apps to deploy.
    pub only: Vec<String>,
    /// Apps that the repository's preset leaves out on a laptop, and that are wanted all the same.
    pub with: Vec<String>,
    /// Where Argo CD reads the developer's branch: the git server in the cluster, or a remote of the repository.
    pub source: Option<SourceKind>,
    /// The remote for `source = "remote"`. Without it: `origin`.
    pub remote: Option<String>,
    /// Address of the remote as Argo CD reads it. Without it: the remote's own, as https.
    pub repo_url: Option<String>,
    /// What makes the cluster of a new environment. Without it: kind.
    pub provider: Option<ProviderKind>,
    /// The cluster for `provider = "existing"`: a context of the user's kubeconfig.
    pub context: Option<String>,
    /// A vCluster's host, version and values.
    pub vcluster: VclusterFile,
    /// Image of the nodes of a kind cluster.
    pub node_image: Option<String>,
    /// kind configuration: `single`, `workers`, `ingress`, or a file.
    pub kind_config: Option<String>,
    /// How long a new environment is meant to be there, such as `8h`; after that, `k8tre dev gc` removes it. Without it: until `down`.
    pub ttl: Option<String>,
    /// Add the cluster to the user's own kubeconfig too.
    pub merge_kubeconfig: Option<bool>,
    /// Largest new file that `sync` takes along, such as `5M`.
    pub max_file_size: Option<String>,
    /// Contexts of the user's kubeconfig that no environment may be registered in or put into: names, or beginnings with a `*`.
    pub protected_contexts: Vec<String>,
    pub network: FileNetwork,
    pub argocd: FileArgoCd,
    pub preset: PresetSpec,
    pub secrets: FileSecrets,
    /// What the cluster has to have before Argo CD, applied in this order.
    pub prerequisites: Vec<Prerequisite>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// The git server in the environment's cluster: no account needed.
    Cluster,
    /// A remote of the repository, pushed to with your own git.
    Remote,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderKind {
    /// Nodes as containers of this machine's Docker, made for the environment.
    Kind,
    /// A cluster that is there already, and stays.
    Existing,
    /// A cluster in a namespace of another one, made for the environment.
    Vcluster,
}

/// The Argo CD of the environment.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FileArgoCd {
    /// Version, as `v3.6.1`.
    pub version: Option<String>,
    /// Install manifest as a file, from where the settings file is, instead of fetching it.
    pub manifest: Option<PathBuf>,
    /// Install Dex (single sign-on) too.
    pub dex: Option<bool>,
    /// Install the notifications controller too.
    pub notifications: Option<bool>,
    /// An Argo CD that others use too, as `CONTEXT` or `CONTEXT/NAMESPACE` of the user's kubeconfig.
    pub shared: Option<String>,
    /// Address of the environment's cluster as a shared Argo CD reaches it.
    pub server: Option<String>,
    /// How long the token is valid that a shared Argo CD gets, such as `24h`.
    pub token_ttl: Option<String>,
    /// The only namespaces of the environment's cluster that a shared Argo CD may manage. Without it: all, and what is in none.
    pub namespaces: BTreeSet<String>,
    /// Whether a shared Argo CD may give rights in the environment's cluster that it has not itself, as charts of operators need.
    pub may_escalate: Option<bool>,
}

/// Secrets that are made before the Applications start.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FileSecrets {
    /// `false` makes none.
    pub enabled: Option<bool>,
    /// Path of the list in the repository. Without it: `ci/ci-secrets.yaml`, if it is there.
    pub file: Option<String>,
    /// What happens to a secret that is there already. Without it: `merge-keys`.
    pub mode: Option<SecretsMode>,
}

impl FileSettings {
    /// Reads a settings file; one that is not there sets nothing.
    pub fn read(path: &Path) -> Result<FileSettings> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(FileSettings::default()),
            Err(e) => return Err(e).with_context(|| format!("cannot read {}", path.display())),
        };
        let mut settings: FileSettings = toml::from_str(&text).map_err(|e| {
            let words = e.to_string();
            let error = Error::usage(format!("{} cannot be used", path.display()));
            let error = match meant(&words) {
                Some(key) => error.hint(format!("did you mean `{key}`?")),
                None => error,
            };
            error.detail(words.trim_end().to_owned())
        })?;
        settings.anchor(path.parent().unwrap_or(Path::new("")));
        settings.check().with_context(|| format!("{} cannot be used", path.display()))?;
        Ok(settings)
    }

    /// Paths in a file are meant from where the file is.
    fn anchor(&mut self, folder: &Path) {
        let files = self.prerequisites.iter_mut().filter_map(|prerequisite| prerequisite.values.as_mut());
        let files = files.chain(&mut self.argocd.manifest).chain(&mut self.network.ca_bundle);
        files
            .chain(&mut self.vcluster.chart)
            .chain(&mut self.vcluster.values)
            .for_each(|file| *file = folder.join(&*file));
        let places = self
            .prerequisites
            .iter_mut()
            .flat_map(|prerequisite| [&mut prerequisite.manifest, &mut prerequisite.chart]);
        for place in places.flatten().filter(|place| !place.contains("://")) {
            *place = folder.join(&*place).display().to_string();
        }
    }

    fn check(&self) -> Result<()> {
        if self.secrets.mode == Some(SecretsMode::Overwrite) {
            return Err(Error::usage("secrets.mode = \"overwrite\" would make new secrets at each `up`")
                .hint("do it once: k8tre dev up --secrets overwrite"));
        }
        prerequisites::check(&self.prerequisites)
    }

    /// The settings file's JSON schema, for editors.
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(FileSettings).to_value()
    }
}

/// The known key that an unknown one comes nearest to, from the reader's own list of them.
fn meant(words: &str) -> Option<&str> {
    let mut quoted = words.split('`').skip(1).step_by(2);
    let unknown = words.contains("unknown field").then(|| quoted.next())??;
    crate::text::nearest(unknown, quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_an_error_with_the_key_that_was_meant() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        std::fs::write(&path, "base = \"main\"\nvendr = \"k3s\"\n").unwrap();
        let error = FileSettings::read(&path).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.detail_text().unwrap().contains("line 2"), "{error:?}");
        assert_eq!(error.hints(), ["did you mean `vendor`?"]);
    }

    #[test]
    fn a_manifest_is_meant_from_where_the_file_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        std::fs::write(&path, "[argocd]\nmanifest = \"install.yaml\"\n").unwrap();
        let settings = FileSettings::read(&path).unwrap();
        assert_eq!(settings.argocd.manifest, Some(folder.path().join("install.yaml")));
    }

    #[test]
    fn the_schema_in_the_documentation_is_that_of_the_code() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/k8tre.schema.json");
        let schema = format!("{:#}\n", FileSettings::schema());
        if crate::ports::environment::var("K8TRE_WRITE_DOCS").is_some() {
            std::fs::write(&path, &schema).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == schema, "write it again: K8TRE_WRITE_DOCS=1 cargo test the_schema_in_the_documentation");
    }

    #[test]
    fn a_new_secret_at_each_up_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        std::fs::write(&path, "[secrets]\nmode = \"overwrite\"\n").unwrap();
        assert_eq!(FileSettings::read(&path).unwrap_err().exit_code(), 2);
        std::fs::write(&path, "[[prerequisites]]\nname = \"crds\"\nmanifest = \"crds.yaml\"\n").unwrap();
        let settings = FileSettings::read(&path).unwrap();
        assert_eq!(settings.prerequisites[0].manifest, Some(folder.path().join("crds.yaml").display().to_string()));
    }
}
