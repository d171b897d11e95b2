//! An environment's overlay: the pure parts in `gitops`, put together with the repository and the spec.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::context::IN_CLUSTER;
use crate::error::{Error, Result};
use crate::gitops::environment::env_on_base;
use crate::gitops::overlay::{OverlaySpec, app_of, overlay, predict_overlay};
use crate::gitops::predict::Prediction;
use crate::gitops::preset::Preset;
use crate::gitops::repository::Repository;
use crate::gitops::tree::Tree;
use crate::ports::git::{Checkout, CommitId};
use crate::spec::Spec;
use crate::steps::git_server;

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
        let tree = checkout.tree(commit)?;
        let repository = Repository::read(&tree)?;
        let preset = Preset::recognise(&repository, &tree);
        let wanted = overlay_spec(spec, cluster_name, preset.clone());
        let made = overlay(&repository, &tree, &wanted)?;
        let prediction = predict_overlay(&made, &tree, &wanted)?;
        Ok(EnvironmentOverlay {
            base,
            remove: switched_off(spec, &tree)?,
            files: made.files,
            root_application: made.root_application,
            prediction,
            preset,
        })
    }

    /// An environment in which nothing would run is a mistake, not a success.
    pub fn check(&self, spec: &Spec) -> Result<()> {
        if !self.prediction.applications.is_empty() {
            return Ok(());
        }
        let reasons: Vec<String> =
            self.prediction.excluded.iter().map(|set| format!("{}: {}", set.application_set, set.reason)).collect();
        Err(Error::usage("with these labels and choices the repository's ApplicationSets make no Application")
            .detail(reasons.join("\n"))
            .hint(format!("see why: k8tre dev preview {}", spec.name))
            .hint("labels are given as --vendor, --domain and --label KEY=VALUE"))
    }
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
    let ours = env_on_base(&spec.base_environment);
    let mut remove = Vec::new();
    for path in tree.paths().iter().filter(|path| path.ends_with(&file)) {
        let app = app_of(path);
        if !spec.skip.contains(app) && (spec.only.is_empty() || spec.only.contains(app)) {
            continue;
        }
        let folder = path.trim_end_matches("/kustomization.yaml");
        let more = tree.paths().iter().any(|other| other != path && other.starts_with(&format!("{folder}/")));
        if more || tree.read(path)? != ours.as_bytes() {
            return Err(Error::usage(format!("{app} is to be left out, but {folder} on {} holds changes of yours", spec.name.branch()))
                .hint(format!("remove or rename that folder on {}, then try again", spec.name.branch())));
        }
        remove.push(folder.to_owned());
    }
    Ok(remove)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gitops::tree::MemoryTree;

    fn spec(skip: &[&str]) -> Spec {
        let args = crate::cli::UpArgs { skip: skip.iter().map(|app| (*app).to_owned()).collect(), ..Default::default() };
        let found = crate::settings::Found { repo: "/tre".into(), sample: false, head: Some("main".into()), vendor: "kind".into() };
        crate::settings::settle(&"alice".parse().unwrap(), &args, None, &[], found).unwrap()
    }

    /// The sample's branch as k8tre makes it, and what else is on it.
    fn branch(more: &[(&str, &str)]) -> MemoryTree<'static> {
        let base = crate::sample::files().into_iter().map(|(path, content)| (path.to_string_lossy().into_owned(), content.to_vec()));
        let base: BTreeMap<String, Vec<u8>> = base.collect();
        let tree = MemoryTree::new(base.clone());
        let made = overlay(&Repository::read(&tree).unwrap(), &tree, &overlay_spec(&spec(&[]), "alice", None)).unwrap();
        let made = made.files.into_iter().map(|(path, text)| (path, text.into_bytes()));
        let more = more.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
        MemoryTree::new(base.into_iter().chain(made).chain(more))
    }

    #[test]
    fn an_app_that_is_left_out_loses_the_folder_that_k8tre_made() {
        assert_eq!(switched_off(&spec(&["portal"]), &branch(&[])).unwrap(), ["apps/portal/envs/dev-alice"]);
        assert!(switched_off(&spec(&[]), &branch(&[])).unwrap().is_empty());
    }

    #[test]
    fn what_the_developer_added_to_a_folder_is_not_removed_with_it() {
        let added = branch(&[("apps/portal/envs/dev-alice/index.html", "mine")]);
        let error = switched_off(&spec(&["portal"]), &added).unwrap_err();
        assert!(error.to_string().contains("holds changes of yours"), "{error}");
    }
}
