//! An environment's overlay: the pure parts in `gitops`, put together with the repository and the spec.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::gitops::ci_secrets::{self, CiSecrets};
use crate::gitops::finding::Finding;
use crate::gitops::named::{Named, named};
use crate::gitops::overlay::{Overlay, OverlaySpec, app_of, overlay, predict_environment};
use crate::gitops::planned::{self, Planned};
use crate::gitops::predict::{Prediction, predict};
use crate::gitops::preset::Preset;
use crate::gitops::repository::Repository;
use crate::gitops::scope::{self, Misfit, misfits};
use crate::gitops::touched::Side;
use crate::gitops::tree::{MemoryTree, Tree};
use crate::gitops::unseen::{self, Unseen};
use crate::ports::git::{Checkout, CommitId, CommitTree};
use crate::sample;
use crate::spec::{ProviderSpec, Spec};

pub struct EnvironmentOverlay {
    /// Where a new branch starts.
    pub base: CommitId,
    pub files: BTreeMap<String, String>,
    /// Env folders of apps that are switched off now, as k8tre once made them.
    pub remove: Vec<String>,
    pub root_application: Value,
    /// The AppProjects, where k8tre applies them itself.
    pub projects: Vec<Value>,
    /// Labels of the cluster Secret.
    pub labels: BTreeMap<String, String>,
    /// What Argo CD will make of the branch.
    pub prediction: Prediction,
    pub preset: Option<Preset>,
    /// The secrets that the branch lists.
    pub secrets: Option<CiSecrets>,
    /// The only namespaces that Argo CD may manage, each with the labels and annotations that it would be given.
    pub namespaces: BTreeMap<String, Value>,
    /// What does not fit into the only namespaces that Argo CD may manage.
    pub misfits: Vec<Misfit>,
}

impl EnvironmentOverlay {
    /// What the base is recognised as, with what the settings say otherwise.
    pub fn preset(spec: &Spec) -> Result<Option<Preset>> {
        let checkout = Checkout::open(&spec.repo)?;
        let tree = checkout.tree(checkout.resolve(&spec.base)?)?;
        Ok(preset(spec, &Repository::read(&tree)?, &tree))
    }

    /// Reads the branch if it is there, since the developer's changes are on it, else the base. Where the git
    /// server has a work tree in place of the branch, that is what Argo CD makes Applications of.
    pub fn of(
        spec: &Spec,
        cluster_name: &str,
        address_range: Option<String>,
        served: Option<CommitId>,
    ) -> Result<EnvironmentOverlay> {
        let checkout = Checkout::open(&spec.repo)?;
        let base = checkout.resolve(&spec.base)?;
        let commit = checkout.tip(&spec.name.branch())?.unwrap_or(base);
        let tree = checkout.tree(commit)?;
        let Built { wanted, made, mut prediction, mut misfits, .. } =
            build(spec, cluster_name, address_range.clone(), &tree)?;
        let remove = match commit == base {
            true => Vec::new(),
            false => switched_off(&wanted, &tree, &checkout.tree(base)?)?,
        };
        prediction.applications.retain(|app| !remove.contains(&app.path.to_string()));
        misfits.retain(|misfit| prediction.applications.iter().any(|app| *app.name == *misfit.application));
        let mut root_application = made.root_application;
        // A branch that is about to be written again is what counts from then on.
        let is_written = |(path, text): (&String, &String)| tree.read(path).is_ok_and(|there| there == text.as_bytes());
        if let Some(served) = served
            && remove.is_empty()
            && made.files.iter().all(is_written)
        {
            let built = build(spec, cluster_name, address_range, &checkout.tree(served)?)?;
            (prediction, root_application) = (built.prediction, built.made.root_application);
        }
        prediction.findings.extend(made.warnings);
        let namespaces = namespaces(&tree, &wanted)?;
        Ok(EnvironmentOverlay {
            namespaces,
            base,
            remove,
            files: made.files,
            root_application,
            projects: made.root_project.into_iter().flat_map(|root| [made.app_project.clone(), root]).collect(),
            labels: wanted.labels()?,
            prediction,
            preset: wanted.preset,
            secrets: spec.secrets.as_ref().and_then(|secrets| listed(&tree, &secrets.file).transpose()).transpose()?,
            misfits,
        })
    }

    /// Images and groups that the files name which are deployed.
    pub fn named(spec: &Spec) -> Result<Named> {
        let checkout = Checkout::open(&spec.repo)?;
        let commit = checkout.tip(&spec.name.branch())?.map_or_else(|| checkout.resolve(&spec.base), Ok)?;
        named(&checkout.tree(commit)?)
    }

    /// An environment in which nothing would run is a mistake, not a success; so is one that Argo CD may not deploy.
    pub fn check(&self, spec: &Spec) -> Result<()> {
        check(&self.prediction, spec)?;
        if self.misfits.is_empty() {
            return Ok(());
        }
        let applications: BTreeSet<&str> = self.misfits.iter().map(|misfit| misfit.application.as_str()).collect();
        let lines: Vec<String> =
            self.misfits.iter().map(|misfit| format!("{}: {}", misfit.application, misfit.why)).collect();
        Err(Error::preflight(format!(
            "an Argo CD that may manage only some namespaces cannot deploy {} of the Applications",
            applications.len()
        ))
        .detail(lines.join("\n"))
        .hint("leave these apps out: --skip APP,…")
        .hint("or name all namespaces that they need: --namespaced NAMESPACE,…"))
    }
}

/// Some files as an environment deploys them.
pub struct Deployed {
    pub tree: CommitTree,
    /// What the root Application deploys of them.
    pub repository: Repository,
    pub prediction: Prediction,
    pub root_application: Value,
}

impl Deployed {
    pub fn of(spec: &Spec, cluster_name: &str, address_range: Option<String>, tree: CommitTree) -> Result<Deployed> {
        let built = build(spec, cluster_name, address_range, &tree)?;
        Ok(Deployed {
            repository: built.deployed,
            prediction: built.prediction,
            root_application: built.made.root_application,
            tree,
        })
    }

    pub fn side(&self) -> Side<'_> {
        Side { tree: &self.tree, repository: &self.repository, prediction: &self.prediction }
    }
}

/// What of the overlay some files lack, as a branch with them would get it, and folders that it would lose.
pub fn completion(
    spec: &Spec,
    cluster_name: &str,
    address_range: Option<String>,
    tree: &dyn Tree,
    base: &dyn Tree,
) -> Result<(BTreeMap<String, String>, Vec<String>)> {
    let repository = Repository::read(tree)?;
    let (wanted, made) = made(spec, cluster_name, address_range, tree, &repository)?;
    let mut remove = switched_off(&wanted, tree, base)?;
    remove.extend(orphaned(&wanted, tree, base)?);
    Ok((made.files, remove))
}

/// The same check for a sample that is not written yet.
pub fn check_sample(spec: &Spec, cluster_name: &str) -> Result<()> {
    check(&of_sample(spec, cluster_name)?, spec)
}

/// What Argo CD will make of a sample that is not written yet.
pub fn of_sample(spec: &Spec, cluster_name: &str) -> Result<Prediction> {
    Ok(build(spec, cluster_name, None, &sample_tree())?.prediction)
}

fn sample_tree() -> MemoryTree<'static> {
    let files = sample::files().into_iter();
    MemoryTree::new(files.map(|(path, content)| (path.to_string_lossy().into_owned(), content)))
}

/// Objects that the files of the Applications name, as far as kustomize can be followed without its program; a sample
/// need not be written for it.
pub fn planned(spec: &Spec, cluster_name: &str, is_written: bool) -> Result<Vec<Planned>> {
    let sample = sample_tree();
    if !is_written {
        return planned_of(spec, cluster_name, &sample);
    }
    let checkout = Checkout::open(&spec.repo)?;
    let commit = checkout.tip(&spec.name.branch())?.map_or_else(|| checkout.resolve(&spec.base), Ok)?;
    planned_of(spec, cluster_name, &checkout.tree(commit)?)
}

/// What of these Applications the files do not tell.
pub fn unseen(spec: &Spec, cluster_name: &str, is_written: bool) -> Result<Vec<Unseen>> {
    let of = |tree: &dyn Tree| -> Result<Vec<Unseen>> {
        let built = build(spec, cluster_name, None, tree)?;
        Ok(unseen::all(&built.made.tree(tree), &built.prediction))
    };
    if !is_written {
        return of(&sample_tree());
    }
    let checkout = Checkout::open(&spec.repo)?;
    let commit = checkout.tip(&spec.name.branch())?.map_or_else(|| checkout.resolve(&spec.base), Ok)?;
    of(&checkout.tree(commit)?)
}

fn planned_of(spec: &Spec, cluster_name: &str, tree: &dyn Tree) -> Result<Vec<Planned>> {
    let built = build(spec, cluster_name, None, tree)?;
    Ok(planned::all(&built.made.tree(tree), &built.prediction))
}

/// The list of secrets; `None` where the branch has none.
fn listed(tree: &dyn Tree, file: &str) -> Result<Option<CiSecrets>> {
    if !tree.contains(file) {
        return Ok(None);
    }
    ci_secrets::read(file, &tree.read(file)?).map(Some).map_err(|finding| {
        let Finding { file, line, message, fix, .. } = *finding;
        Error::usage(format!("{file}:{line}: {message}")).hint(fix)
    })
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

/// The overlay on one tree, and what Argo CD will make of it.
struct Built {
    wanted: OverlaySpec,
    made: Overlay,
    deployed: Repository,
    prediction: Prediction,
    misfits: Vec<Misfit>,
}

fn build(spec: &Spec, cluster_name: &str, address_range: Option<String>, tree: &dyn Tree) -> Result<Built> {
    let (wanted, made) = made(spec, cluster_name, address_range, tree, &Repository::read(tree)?)?;
    let branch = made.tree(tree);
    let deployed = made.read(&branch)?;
    let prediction = predict(&deployed, &branch, &[wanted.cluster()?]);
    let misfits = misfits(&branch, &prediction, &wanted.namespaces);
    Ok(Built { wanted, made, deployed, prediction, misfits })
}

/// The namespaces that Argo CD is held to, as it would make them if it were not.
fn namespaces(tree: &dyn Tree, held: &OverlaySpec) -> Result<BTreeMap<String, Value>> {
    if held.namespaces.is_empty() {
        return Ok(BTreeMap::new());
    }
    let free = OverlaySpec { namespaces: BTreeSet::new(), ..held.clone() };
    let prediction = predict_environment(&Repository::read(tree)?, tree, &free)?;
    Ok(scope::namespaces(&prediction, &held.namespaces))
}

fn made(
    spec: &Spec,
    cluster_name: &str,
    address_range: Option<String>,
    tree: &dyn Tree,
    repository: &Repository,
) -> Result<(OverlaySpec, Overlay)> {
    let preset = preset(spec, repository, tree)
        .map(|preset| Preset { address_range: preset.address_range.clone().or(address_range), ..preset });
    let wanted = overlay_spec(spec, cluster_name, preset.as_ref());
    let made = overlay(repository, tree, &wanted)?;
    Ok((wanted, made))
}

/// What the repository is recognised as, for where the environment is, with what the settings say otherwise.
fn preset(spec: &Spec, repository: &Repository, tree: &dyn Tree) -> Option<Preset> {
    let preset = Preset::recognise(repository, tree)?;
    let preset = match spec.provider {
        ProviderSpec::Vcluster(_) => preset.in_vcluster(repository),
        ProviderSpec::Kind | ProviderSpec::Existing(_) => preset,
    };
    spec.preset.adjust(preset)
}

fn overlay_spec(spec: &Spec, cluster_name: &str, preset: Option<&Preset>) -> OverlaySpec {
    OverlaySpec {
        base_env: spec.base_environment.clone(),
        repo_url: spec.source.url(),
        revision: spec.name.branch(),
        server: spec.argocd.server().to_owned(),
        cluster: cluster_name.into(),
        labels: spec.cluster_labels(preset),
        only: spec.only.iter().cloned().collect(),
        // Only apps that the user names: an app of the preset's that a repository lacks is no mistake.
        skip: spec.skip.iter().cloned().collect(),
        preset: preset.cloned(),
        holds: spec.holds.clone(),
        namespace: spec.argocd.place(Path::new("")).namespace.to_owned(),
        fenced: spec.is_fenced(),
        namespaces: spec.argocd.namespaces().clone(),
        name: spec.name.clone(),
    }
}

/// Env folders of this environment whose app `--skip` or `--only` has switched off. One that the
/// developer changed is not removed behind their back.
fn switched_off(spec: &OverlaySpec, branch: &dyn Tree, base: &dyn Tree) -> Result<Vec<String>> {
    let file = format!("/envs/{}/kustomization.yaml", spec.name.environment());
    let off = |app: &str| {
        let among = |list: &[String]| list.iter().any(|listed| listed == app);
        among(&spec.skip) || !(spec.only.is_empty() || among(&spec.only))
    };
    let candidates: Vec<&String> =
        branch.paths().iter().filter(|path| path.ends_with(&file) && off(app_of(path))).collect();
    if candidates.is_empty() {
        return Ok(Vec::new());
    }
    let as_made = AsMade::of(spec, base)?;
    let mut remove = Vec::new();
    for path in candidates {
        let folder = path.trim_end_matches("/kustomization.yaml");
        if !as_made.is(branch, folder)? {
            let branch = spec.name.branch();
            return Err(Error::usage(format!(
                "{} is to be left out, but {folder} on {branch} holds changes of yours",
                app_of(path)
            ))
            .hint(format!("remove or rename that folder on {branch}, then try again")));
        }
        remove.push(folder.to_owned());
    }
    Ok(remove)
}

/// Env folders of this environment, as k8tre made them, whose base folder is gone.
fn orphaned(spec: &OverlaySpec, tree: &dyn Tree, base: &dyn Tree) -> Result<Vec<String>> {
    let file = format!("/{}/kustomization.yaml", spec.name.environment());
    let parents = tree.paths().iter().filter_map(|path| path.strip_suffix(&file));
    let parents: Vec<&str> =
        parents.filter(|parent| tree.below(&format!("{parent}/{}", spec.base_env)).is_empty()).collect();
    if parents.is_empty() {
        return Ok(Vec::new());
    }
    let as_made = AsMade::of(spec, base)?;
    let mut orphaned = Vec::new();
    for parent in parents {
        let folder = format!("{parent}/{}", spec.name.environment());
        if as_made.is(tree, &folder)? {
            orphaned.push(folder);
        }
    }
    Ok(orphaned)
}

/// Env folders as k8tre makes them of the base.
struct AsMade(BTreeMap<String, String>);

impl AsMade {
    fn of(spec: &OverlaySpec, base: &dyn Tree) -> Result<AsMade> {
        let everything = OverlaySpec { only: Vec::new(), skip: Vec::new(), ..spec.clone() };
        Ok(AsMade(overlay(&Repository::read(base)?, base, &everything)?.files))
    }

    /// Whether a folder holds nothing but that.
    fn is(&self, tree: &dyn Tree, folder: &str) -> Result<bool> {
        for path in tree.below(folder) {
            if self.0.get(path).map(String::as_bytes) != Some(tree.read(path)?.as_slice()) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gitops::tree::MemoryTree;

    fn spec(skip: &[&str]) -> Spec {
        let args =
            crate::cli::UpArgs { skip: skip.iter().map(|app| (*app).to_owned()).collect(), ..Default::default() };
        let found = crate::settings::Found {
            repo: "/tre".into(),
            sample: false,
            head: Some("main".into()),
            vendor: "kind".into(),
            lists_secrets: false,
        };
        crate::settings::settle(&"alice".parse().unwrap(), &args, None, &[], found).unwrap()
    }

    fn wanted(skip: &[&str]) -> OverlaySpec {
        overlay_spec(&spec(skip), "alice", None)
    }

    fn base() -> BTreeMap<String, Vec<u8>> {
        let files = crate::sample::files().into_iter();
        files.map(|(path, content)| (path.to_string_lossy().into_owned(), content.to_vec())).collect()
    }

    /// The sample's branch as k8tre makes it, and what else is on it.
    fn branch(more: &[(&str, &str)]) -> MemoryTree<'static> {
        let tree = MemoryTree::new(base());
        let made = overlay(&Repository::read(&tree).unwrap(), &tree, &wanted(&[])).unwrap();
        let made = made.files.into_iter().map(|(path, text)| (path, text.into_bytes()));
        let more = more.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
        MemoryTree::new(base().into_iter().chain(made).chain(more))
    }

    #[test]
    fn an_app_that_is_left_out_loses_the_folder_that_k8tre_made() {
        let base = MemoryTree::new(base());
        let removed = switched_off(&wanted(&["portal"]), &branch(&[]), &base).unwrap();
        assert_eq!(removed, ["apps/portal/envs/dev-alice"]);
        assert!(switched_off(&wanted(&[]), &branch(&[]), &base).unwrap().is_empty());
    }

    #[test]
    fn what_the_developer_added_to_a_folder_is_not_removed_with_it() {
        let added = branch(&[("apps/portal/envs/dev-alice/index.html", "mine")]);
        let error = switched_off(&wanted(&["portal"]), &added, &MemoryTree::new(base())).unwrap_err();
        assert!(error.to_string().contains("holds changes of yours"), "{error}");
    }
}
