//! Where the repository is: this checkout, a clone, or the sample.

use std::path::{Path, PathBuf};

use crate::cli::OnboardArgs;
use crate::commands::App;
use crate::error::Result;
use crate::ports::git::{Checkout, clone_repository};
use crate::ui::ask::Asking;

/// Where K8TRE itself is; a fork is named in its place.
const UPSTREAM: &str = "https://github.com/k8tre/k8tre.git";

/// What to deploy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Checkout(PathBuf),
    Sample(Option<PathBuf>),
}

enum Choice {
    Here(PathBuf),
    Clone,
    Sample,
}

pub async fn ask(app: &App, args: &OnboardArgs, asking: &Asking<'_>) -> Result<Place> {
    match (&args.up.repo, &args.up.sample, &args.clone) {
        (Some(repo), ..) => return Ok(Place::Checkout(Checkout::open(repo)?.root().to_owned())),
        (_, Some(folder), _) => return Ok(Place::Sample(folder.clone())),
        (_, _, Some(url)) => return cloned(app, url, args.folder.clone().unwrap_or_else(|| named_after(url))).await,
        _ => {}
    }
    let mut choices = vec![
        ("the sample TRE: small, comes up offline, yours to edit".to_owned(), Choice::Sample),
        ("a clone of a K8TRE repository, such as your fork".to_owned(), Choice::Clone),
    ];
    if let Some(root) = tre_here() {
        choices.insert(0, (format!("this checkout: {}", root.display()), Choice::Here(root)));
    }
    let words: Vec<String> = choices.iter().map(|(words, _)| words.clone()).collect();
    let chosen = asking.one("What shall be deployed?", &words, 0)?;
    match choices.swap_remove(chosen).1 {
        Choice::Here(root) => Ok(Place::Checkout(root)),
        Choice::Sample => Ok(Place::Sample(None)),
        Choice::Clone => {
            let some = |text: &str| if text.is_empty() { Err("an address is needed".to_owned()) } else { Ok(()) };
            let url = asking.text("Address of the repository", UPSTREAM, some)?;
            let folder = asking.text("Folder for the clone", &named_after(&url).display().to_string(), some)?;
            cloned(app, &url, folder.into()).await
        }
    }
}

/// The TRE repository around the current folder.
fn tre_here() -> Option<PathBuf> {
    let checkout = Checkout::open(&std::env::current_dir().ok()?).ok()?;
    checkout.root().join("app_of_apps").is_dir().then(|| checkout.root().to_owned())
}

/// As git names the folder.
fn named_after(url: &str) -> PathBuf {
    let last = url.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
    let last = last.strip_suffix(".git").unwrap_or(last);
    PathBuf::from(if last.is_empty() { "k8tre" } else { last })
}

/// A clone of the same that an earlier run made is used.
async fn cloned(app: &App, url: &str, folder: PathBuf) -> Result<Place> {
    let folder = std::path::absolute(folder)?;
    if let Some(root) = clone_of(&folder, url).await {
        app.ui.say(&format!("{} is a clone of it already", root.display()));
        return Ok(Place::Checkout(root));
    }
    app.ui.say(&format!("cloning {} to {}", crate::redact::without_user(url), folder.display()));
    tokio::select! {
        biased;
        () = app.cancel.cancelled() => return Err(crate::error::Error::interrupted()),
        done = clone_repository(url, &folder) => done?,
    }
    Ok(Place::Checkout(Checkout::open(&folder)?.root().to_owned()))
}

async fn clone_of(folder: &Path, url: &str) -> Option<PathBuf> {
    let checkout = Checkout::open(folder).ok()?;
    let is_top = folder.canonicalize().is_ok_and(|folder| folder == checkout.root());
    let same = checkout.remote_address("origin").await.is_ok_and(|address| address == url);
    (is_top && same).then(|| checkout.root().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_is_named_as_git_would_name_it() {
        for (url, name) in [
            ("https://github.com/k8tre/k8tre.git", "k8tre"),
            ("git@host:tre", "tre"),
            ("/srv/git/my-tre/", "my-tre"),
            ("", "k8tre"),
        ] {
            assert_eq!(named_after(url), Path::new(name), "{url}");
        }
    }
}
