//! A new repository with one commit.

use std::path::Path;

use super::run::{expect, program, run};
use crate::error::{Result, ResultExt};
use crate::ports::process::Program;

/// Who the first commit is by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreatedAs {
    /// The identity that the user has set.
    User,
    /// There was none: k8tre's is written to the new repository's own settings.
    K8tre,
}

/// Makes a folder and all that is in it a repository with one commit on a branch. Neither the user's
/// hooks nor signing take part: the commit only starts a history, and is not published.
pub async fn create_repository(
    folder: &Path,
    branch: &str,
    message: &str,
    settings: &[(&str, &str)],
) -> Result<CreatedAs> {
    let git = |args: &[&str]| -> Program { program().folder(folder).args(args) };
    let what = format!("cannot make {} a git repository", folder.display());
    // An empty template brings no hooks along.
    expect(git(&["init", "--quiet", "--template=", &format!("--initial-branch={branch}")]), &what).await?;
    for (key, value) in settings {
        expect(git(&["config", key, value]), &what).await?;
    }
    let (author, committer) =
        tokio::try_join!(run(git(&["var", "GIT_AUTHOR_IDENT"])), run(git(&["var", "GIT_COMMITTER_IDENT"])))?;
    let created = match author.success() && committer.success() {
        true => CreatedAs::User,
        false => {
            expect(git(&["config", "user.name", "k8tre"]), &what).await?;
            expect(git(&["config", "user.email", "k8tre@localhost.invalid"]), &what).await?;
            CreatedAs::K8tre
        }
    };
    expect(git(&["-c", "core.autocrlf=false", "-c", "core.safecrlf=false", "add", "--all", "--force"]), &what).await?;
    let commit = ["-c", "core.hooksPath=", "commit", "--quiet", "--no-verify", "--no-gpg-sign", "--message", message];
    expect(git(&commit), &what).await.context("cannot make the first commit")?;
    Ok(created)
}
