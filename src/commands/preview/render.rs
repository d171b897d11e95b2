//! Each Application built with kustomize, and how that differs from its base.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::error::{Error, Result, ResultExt};
use crate::gitops::tree::Tree;
use crate::overlay::EnvironmentOverlay;
use crate::ports::git::Checkout;
use crate::ports::process::Program;
use crate::spec::Spec;

const LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Serialize)]
pub struct Rendered {
    pub application: String,
    pub path: String,
    pub objects: Option<usize>,
    /// As `diff -u` shows it, from the base's objects to the environment's.
    pub diff: String,
    pub error: Option<String>,
}

/// Builds in a copy of the branch, so that the checkout stays as it is.
pub async fn render(spec: &Spec, overlay: &EnvironmentOverlay) -> Result<Vec<Rendered>> {
    if which::which("kustomize").is_err() {
        return Err(Error::failed("--render needs kustomize on PATH")
            .hint("https://kubectl.docs.kubernetes.io/installation/kustomize/"));
    }
    let copy = tempfile::tempdir()?;
    let checkout = Checkout::open(&spec.repo)?;
    let commit = checkout.tip(&spec.name.branch())?.unwrap_or(overlay.base);
    let tree = checkout.tree(commit)?;
    for path in tree.paths() {
        write(copy.path(), path, &tree.read(path)?)?;
    }
    for (path, text) in &overlay.files {
        write(copy.path(), path, text.as_bytes())?;
    }
    let mut all = Vec::new();
    for application in &overlay.prediction.applications {
        all.push(one(copy.path(), &application.name, &application.path, spec).await);
    }
    Ok(all)
}

async fn one(copy: &Path, application: &str, path: &str, spec: &Spec) -> Rendered {
    let mut rendered = Rendered {
        application: application.to_owned(),
        path: path.to_owned(),
        objects: None,
        diff: String::new(),
        error: None,
    };
    let built = match build(copy, path).await {
        Ok(built) => built,
        Err(error) => {
            rendered.error =
                Some(format!("{error}{}", error.detail_text().map(|d| format!(": {d}")).unwrap_or_default()));
            return rendered;
        }
    };
    rendered.objects = Some(built.lines().filter(|line| line.starts_with("kind:")).count());
    let base = path.rsplit_once('/').map(|(parent, _)| format!("{parent}/{}", spec.base_environment));
    if let Some(base) = base.filter(|base| copy.join(base).is_dir())
        && let Ok(before) = build(copy, &base).await
    {
        let diff = similar::TextDiff::from_lines(&before, &built);
        rendered.diff = diff.unified_diff().context_radius(3).header(&base, path).to_string();
    }
    rendered
}

async fn build(copy: &Path, path: &str) -> Result<String> {
    let options = ["build", "--enable-helm", "--load-restrictor", "LoadRestrictionsNone", path];
    let output = Program::new("kustomize").args(options).folder(copy).limit(LIMIT).run().await?;
    Ok(output.text())
}

fn write(root: &Path, path: &str, content: &[u8]) -> Result<()> {
    let target = root.join(path);
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&target, content).with_context(|| format!("cannot write {}", target.display()))
}

impl Rendered {
    pub fn text(&self) -> String {
        let head = format!("{} <- {}", self.application, self.path);
        match (&self.error, self.objects) {
            (Some(error), _) => format!("{head}: does not build: {error}"),
            (None, objects) if self.diff.is_empty() => {
                format!("{head}: {} objects, as in the base", objects.unwrap_or(0))
            }
            (None, objects) => format!("{head}: {} objects\n{}", objects.unwrap_or(0), self.diff),
        }
    }
}
