//! Settings: flag > variable > what the environment was made with > `k8tre.toml` > the user's file > default.
//!
//! Flags and variables arrive together from clap. Pure but for reading the two files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::cli::UpArgs;
use crate::error::{Error, Result, ResultExt};
use crate::names::EnvName;
use crate::spec::{ARGOCD_VERSION, ArgoCdSpec, KindSpec, PresetSpec, Spec};

/// Name of the settings file at the root of a TRE repository.
pub const FILE: &str = "k8tre.toml";

/// A settings file. Every key is optional; an unknown one is an error.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FileSettings {
    pub base: Option<String>,
    pub base_environment: Option<String>,
    pub domain: Option<String>,
    pub vendor: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub skip: Vec<String>,
    pub only: Vec<String>,
    pub with: Vec<String>,
    pub node_image: Option<String>,
    pub kind_config: Option<String>,
    pub merge_kubeconfig: Option<bool>,
    /// Largest new file that `sync` takes along, as 5M.
    pub max_file_size: Option<String>,
    pub argocd: FileArgoCd,
    pub preset: PresetSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FileArgoCd {
    pub version: Option<String>,
    pub manifest: Option<PathBuf>,
    pub dex: Option<bool>,
    pub notifications: Option<bool>,
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
        // Paths in a file are meant from where the file is.
        if let (Some(manifest), Some(folder)) = (&settings.argocd.manifest, path.parent()) {
            settings.argocd.manifest = Some(folder.join(manifest));
        }
        Ok(settings)
    }
}

/// The known key that an unknown one comes nearest to, from the reader's own list of them.
fn meant(words: &str) -> Option<&str> {
    let mut quoted = words.split('`').skip(1).step_by(2);
    let unknown = words.contains("unknown field").then(|| quoted.next())??;
    let near = quoted.map(|known| (strsim::jaro_winkler(unknown, known), known)).filter(|(score, _)| *score > 0.8);
    near.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}

/// What is known of the repository before anything is decided.
#[derive(Debug, Clone)]
pub struct Found {
    pub repo: PathBuf,
    pub sample: bool,
    pub head: Option<String>,
    pub vendor: String,
}

/// All answers, put together.
pub fn settle(
    name: &EnvName,
    args: &UpArgs,
    saved: Option<&Spec>,
    files: &[FileSettings],
    found: Found,
) -> Result<Spec> {
    fn pick<T: Clone>(flag: Option<&T>, saved: Option<&T>, files: impl Iterator<Item = Option<T>>) -> Option<T> {
        flag.or(saved).cloned().or_else(|| files.flatten().next())
    }
    let text = |flag: &Option<String>, saved: Option<&String>, get: fn(&FileSettings) -> Option<String>| {
        pick(flag.as_ref(), saved, files.iter().map(get))
    };
    let switch = |flag: bool, saved: Option<bool>, get: fn(&FileSettings) -> Option<bool>| {
        flag || saved.unwrap_or_else(|| files.iter().find_map(get).unwrap_or(false))
    };
    let base = text(&args.base, saved.map(|s| &s.base), |f| f.base.clone()).or(found.head).ok_or_else(|| {
        Error::usage("the repository has no branch checked out").hint("name the branch to start from: --base main")
    })?;
    if base == name.branch() {
        return Err(Error::usage(format!("the branch {base} is the environment's own and cannot be its base"))
            .hint("name the branch to start from: --base main"));
    }
    let apps = |flag: &[String], saved: Option<&BTreeSet<String>>, get: fn(&FileSettings) -> &Vec<String>| {
        if !flag.is_empty() {
            return flag.iter().cloned().collect();
        }
        saved.cloned().unwrap_or_else(|| files.iter().flat_map(get).cloned().collect::<BTreeSet<String>>())
    };
    let (mut skip, mut only) =
        (apps(&args.skip, saved.map(|s| &s.skip), |f| &f.skip), apps(&args.only, saved.map(|s| &s.only), |f| &f.only));
    // One of the two: a flag of this run puts aside what the other was before.
    match (args.skip.is_empty(), args.only.is_empty()) {
        (false, true) => only.clear(),
        (true, false) => skip.clear(),
        _ => {}
    }
    let mut labels =
        saved.map(|s| s.labels.clone()).unwrap_or_else(|| files.iter().rev().flat_map(|f| f.labels.clone()).collect());
    labels.extend(args.labels.iter().cloned());

    let saved_argocd = saved.map(|s| &s.argocd);
    let manifest = pick(
        args.argocd_manifest.as_ref().map(std::path::absolute).transpose()?.as_ref(),
        saved_argocd.and_then(|s| s.manifest.as_ref()),
        files.iter().map(|f| f.argocd.manifest.clone()),
    );
    let version = text(&args.argocd_version, saved_argocd.map(|s| &s.version), |f| f.argocd.version.clone());
    let version = version.unwrap_or_else(|| ARGOCD_VERSION.to_owned());
    if semver::Version::parse(version.trim_start_matches('v')).is_err() || !version.starts_with('v') {
        return Err(Error::usage(format!("\"{version}\" is no version of Argo CD"))
            .hint(format!("versions are written like {ARGOCD_VERSION}: --argocd-version {ARGOCD_VERSION}")));
    }
    Ok(Spec {
        name: name.clone(),
        repo: found.repo,
        sample: found.sample,
        base,
        base_environment: text(&args.base_environment, saved.map(|s| &s.base_environment), |f| {
            f.base_environment.clone()
        })
        .unwrap_or_else(|| "dev".into()),
        domain: text(&args.domain, saved.map(|s| &s.domain), |f| f.domain.clone())
            .unwrap_or_else(|| format!("{name}.k8tre.internal")),
        vendor: text(&args.vendor, saved.map(|s| &s.vendor), |f| f.vendor.clone()).unwrap_or(found.vendor),
        labels,
        skip,
        only,
        with: apps(&args.with, saved.map(|s| &s.with), |f| &f.with),
        kind: KindSpec {
            node_image: text(&args.node_image, saved.and_then(|s| s.kind.node_image.as_ref()), |f| {
                f.node_image.clone()
            }),
            config: text(&args.kind_config, saved.map(|s| &s.kind.config), |f| f.kind_config.clone())
                .unwrap_or_else(|| "single".into()),
        },
        argocd: ArgoCdSpec {
            version,
            manifest,
            anonymous: args.anonymous || saved_argocd.is_some_and(|s| s.anonymous),
            dex: switch(args.with_dex, saved_argocd.map(|s| s.dex), |f| f.argocd.dex),
            notifications: switch(args.with_notifications, saved_argocd.map(|s| s.notifications), |f| {
                f.argocd.notifications
            }),
        },
        // Only files set it, so the files decide each time.
        preset: files
            .iter()
            .map(|f| &f.preset)
            .find(|preset| **preset != PresetSpec::default())
            .or(saved.map(|s| &s.preset))
            .cloned()
            .unwrap_or_default(),
        merge_kubeconfig: switch(args.merge_kubeconfig, saved.map(|s| s.merge_kubeconfig), |f| f.merge_kubeconfig),
    })
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
}
