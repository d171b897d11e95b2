//! What a shell is offered for a half-typed word. It is asked at each press of a key, so only files are read, and what
//! cannot be read offers nothing.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use clap_complete::engine::CompletionCandidate;

use crate::journal::{self, Journal};
use crate::overlay::EnvironmentOverlay;
use crate::ports::dirs::Dirs;
use crate::ports::kubeconfig;

/// The variable by which the script asks the program.
pub const VARIABLE: &str = "K8TRE_COMPLETE";

/// Environments of this user, each with where it was made from.
pub fn environments(word: &OsStr) -> Vec<CompletionCandidate> {
    let all = journals();
    let all = all.iter().map(|journal| {
        let from = format!("from {}", journal.spec.repo.display());
        (journal.spec.name.to_string(), Some(from))
    });
    candidates(word, all)
}

/// Applications of the environments of this user, as their repositories make them.
pub fn applications(word: &OsStr) -> Vec<CompletionCandidate> {
    let mut names = BTreeSet::new();
    for journal in journals() {
        let suffix = format!("-{}", journal.spec.name);
        let Ok(overlay) = EnvironmentOverlay::of(&journal.spec, journal.spec.name.as_str(), None, None) else {
            continue;
        };
        let all = overlay.prediction.applications.iter().map(|app| app.name.to_string());
        names.extend(all.map(|name| name.strip_suffix(&suffix).map(str::to_owned).unwrap_or(name)));
    }
    candidates(word, names.into_iter().map(|name| (name, None)))
}

/// The same, and Argo CD's own UI.
pub fn targets(word: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = applications(word);
    all.extend(candidates(word, [("argocd".to_owned(), None)]));
    all
}

/// Apps of the repository around the current folder, as `--skip` takes them: the last of a list.
pub fn apps(word: &OsStr) -> Vec<CompletionCandidate> {
    let word = word.to_string_lossy();
    let (before, last) = word.rsplit_once(',').map_or(("", &*word), |(before, last)| (before, last));
    let Ok(here) = std::env::current_dir() else { return Vec::new() };
    let is_root = |folder: &&Path| folder.join("app_of_apps").is_dir();
    let mut names = BTreeSet::new();
    if let Some(root) = here.ancestors().find(is_root) {
        for group in ["apps", "agnostics"] {
            let folders = std::fs::read_dir(root.join(group)).into_iter().flatten().flatten();
            let folders = folders.filter(|entry| entry.path().is_dir());
            names.extend(folders.filter_map(|entry| entry.file_name().into_string().ok()));
        }
    }
    let whole = |name: String| if before.is_empty() { name } else { format!("{before},{name}") };
    let fitting = names.into_iter().filter(|name| name.starts_with(last));
    fitting.map(|name| CompletionCandidate::new(whole(name))).collect()
}

/// Contexts of the user's kubeconfig.
pub fn contexts(word: &OsStr) -> Vec<CompletionCandidate> {
    candidates(word, kubeconfig::contexts().unwrap_or_default().into_iter().map(|name| (name, None)))
}

fn candidates(word: &OsStr, all: impl IntoIterator<Item = (String, Option<String>)>) -> Vec<CompletionCandidate> {
    let word = word.to_string_lossy();
    let fitting = all.into_iter().filter(|(name, _)| name.starts_with(&*word));
    fitting.map(|(name, help)| CompletionCandidate::new(name).help(help.map(Into::into))).collect()
}

fn journals() -> Vec<Journal> {
    let Ok(dirs) = Dirs::find() else { return Vec::new() };
    let names = journal::names(&dirs).unwrap_or_default();
    names.iter().filter_map(|name| journal::read(&dirs, name).ok().flatten()).collect()
}
