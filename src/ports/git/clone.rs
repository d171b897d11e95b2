//! A clone that is there as a whole or not at all; and who the user is to git anywhere.

use std::path::Path;
use std::time::Duration;

use super::Identity;
use super::run::{expect, program, run, typed};
use crate::error::{Error, Result, ResultExt};

/// A large repository over a slow line.
const LIMIT: Duration = Duration::from_secs(1200);

/// Clones into a folder that is not there yet. It is cloned beside it and then renamed, so that nothing half is left.
pub async fn clone_repository(url: &str, target: &Path) -> Result<()> {
    if target.exists() {
        return Err(Error::usage(format!("{} is there already", target.display()))
            .hint(format!("use it: --repo {}", target.display()))
            .hint("or name another folder: --folder FOLDER"));
    }
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).with_context(|| format!("cannot make the folder {}", parent.display()))?;
    let folder = tempfile::Builder::new().prefix(".k8tre-clone-").tempdir_in(parent)?;
    let inner = folder.path().join("clone");
    let git = program().limit(LIMIT).args(["clone", "--quiet", "--", url]).arg(&inner);
    let shown = crate::redact::without_user(url);
    expect(git, &format!("cannot clone {shown}")).await.hint(typed(parent, &["clone", &shown]))?;
    std::fs::rename(&inner, target).with_context(|| format!("cannot put the clone at {}", target.display()))
}

/// As git's settings name the user outside of any repository.
pub async fn user() -> Option<Identity> {
    let setting = async |key: &str| {
        let output = run(program().args(["config", "--global", "--get", key])).await.ok()?;
        output.success().then(|| output.text()).filter(|value| !value.is_empty())
    };
    let (name, email) = (setting("user.name").await, setting("user.email").await);
    if name.is_none() && email.is_none() {
        return None;
    }
    Some(Identity { name: name.unwrap_or_default(), email: email.unwrap_or_default() })
}
