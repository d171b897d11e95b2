//! An environment's overlay: the pure parts in `gitops`, put together with the repository and the spec.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::context::IN_CLUSTER;
use crate::error::{Error, Result};
use crate::gitops::environment::env_kustomization;
use crate::gitops::overlay::{Overlay, OverlaySpec, app_of, overlay, predict_overlay};
use crate::gitops::predict::Prediction;
use crate::gitops::preset::Preset;
use crate::gitops::repository::Repository;
use crate::gitops::tree::{MemoryTree, Tree};
use crate::ports::git::{Checkout, CommitId};
use crate::spec::Spec;
use crate::{sample, steps::git_server};

pub struct EnvironmentOverlay {
    /// Where a new branch starts.
    pub base: CommitId,
    pub files: BTreeMap<String, String>,
    /// Env folders of apps that are switched off now, as k8tre once made them.
    pub remove: Vec<String>,
    pub root_application: Value,
    /// What Argo CD will make of the branch.
    pub prediction: Prediction,
    pub preset: Option<Preset>,
}

impl EnvironmentOverlay {
    /// Reads the branch if it is there, since the developer's changes are on it, else the base.
    pub fn of(spec: &Spec, cluster_name: &str) -> Result<EnvironmentOverlay> {
        let checkout = Checkout::open(&spec.repo)?;
        let base = checkout.resolve(&spec.base)?;
        let commit = checkout.tip(&spec.name.branch())?.unwrap_or(base);
        let built = build(spec, cluster_name, &checkout.tree(commit)?)?;
        Ok(EnvironmentOverlay {
            base,
            remove: built.remove,
            files: built.made.files,
            root_application: built.made.root_application,
            prediction: built.prediction,
            preset: built.preset,
        })
    }

    /// An environment in which nothing would run is a mistake, not a success.
    pub fn check(&self, spec: &Spec) -> Result<()> {
        check(&self.prediction, spec)
    }
}

/// The same check for a sample that is not written yet.
pub fn check_sample(spec: &Spec, cluster_name: &str) -> Result<()> {
    let files = sample::files().into_iter();
    let tree = MemoryTree::new(files.map(|(path, content)| (path.to_string_lossy().into_owned(), content)));
    check(&build(spec, cluster_name, &tree)?.prediction, spec)
}

fn check(prediction: &Prediction, spec: &Spec) -> Result<()> {
    if !prediction.applications.is_empty() {
        return Ok(());
    }
    let reasons: Vec<String> =
        prediction.excluded.iter().map(|set| format!("{}: {}", set.application_set, set.reason)).collect();
    Err(Error::usage("with these labels and choices the repository's ApplicationSets make no Application")
        .detail(reasons.join("\n"))
        .hint(format!("see why: k8tre dev preview {}", spec.name))
        .hint("labels are given as --vendor, --domain and --label KEY=VALUE"))
}

struct Built {
    made: Overlay,
    remove: Vec<String>,
    prediction: Prediction,
    preset: Option<Preset>,
}

fn build(spec: &Spec, cluster_name: &str, tree: &dyn Tree) -> Result<Built> {
    let repository = Repository::read(tree)?;
    let preset = Preset::recognise(&repository, tree);
    let wanted = overlay_spec(spec, cluster_name, preset.clone());
    let made = overlay(&repository, tree, &wanted)?;
    let prediction = predict_overlay(&made, tree, &wanted)?;
    Ok(Built { remove: switched_off(spec, tree)?, made, prediction, preset })
}

fn overlay_spec(spec: &Spec, cluster_name: &str, preset: Option<Preset>) -> OverlaySpec {
    OverlaySpec {
        base_env: spec.base_environment.clone(),
        repo_url: git_server::url(),
        revision: spec.name.branch(),
        server: IN_CLUSTER.into(),
        cluster: cluster_name.into(),
        labels: spec.cluster_labels(),
        only: spec.only.iter().cloned().collect(),
        skip: spec.skip.iter().cloned().collect(),
        preset,
        name: spec.name.clone(),
    }
}

/// Env folders of this environment whose app `--skip` or `--only` has switched off. One that the
/// developer changed is not removed behind their back.
fn switched_off(spec: &Spec, tree: &dyn Tree) -> Result<Vec<String>> {
    let file = format!("/envs/{}/kustomization.yaml", spec.name.environment());
    let ours = env_kustomization(&spec.base_environment);
    let mut remove = Vec::new();
    for path in tree.paths().iter().filter(|path| path.ends_with(&file)) {
        let app = app_of(path);
        if !spec.skip.contains(app) && (spec.only.is_empty() || spec.only.contains(app)) {
            continue;
        }
        if tree.read(path)? != ours.as_bytes() {
            let folder = path.trim_end_matches("/kustomization.yaml");
            return Err(Error::usage(format!("{app} is to be left out, but {folder} on {} holds changes of yours", spec.name.branch()))
                .hint(format!("remove or rename that folder on {}, then try again", spec.name.branch())));
        }
        remove.push(path.trim_end_matches("/kustomization.yaml").to_owned());
    }
    Ok(remove)
}
