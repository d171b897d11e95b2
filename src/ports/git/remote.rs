//! Where a branch is published: a remote of the user's, or a command that carries git's protocol.

use super::run::{expect, run};
use super::{Checkout, CommitId, names};
use crate::error::{Error, Result};
use crate::ports::process::Program;

/// A place to push to.
#[derive(Debug, Clone)]
pub enum PushTarget {
    /// A remote that the repository names, with all that the user has set for it.
    Remote(String),
    /// An address reached through a command in place of ssh. It serves one environment alone, so the
    /// user's hooks, signed pushes and submodule rules do not apply.
    Command { url: String, ssh_command: String, env: Vec<(String, String)> },
}

impl PushTarget {
    /// What people call it.
    pub fn shown(&self) -> &str {
        match self {
            PushTarget::Remote(name) => name,
            PushTarget::Command { .. } => "the git server in the cluster",
        }
    }

    /// What stands for it on git's command line.
    pub(super) fn argument(&self) -> &str {
        match self {
            PushTarget::Remote(name) => name,
            PushTarget::Command { url, .. } => url,
        }
    }
}

impl Checkout {
    /// Refuses a remote that the repository does not have.
    pub fn check_remote(&self, remote: &str) -> Result<()> {
        names::check_remote(remote)?;
        let remotes = self.remotes()?;
        if remotes.iter().any(|known| known == remote) {
            return Ok(());
        }
        let error = Error::usage(format!("{} has no remote {remote}", self.root().display()));
        Err(match remotes.is_empty() {
            true => error.hint(format!("git -C {} remote add {remote} URL", self.root().display())),
            false => error.hint(format!("it has: {}", remotes.join(", "))),
        })
    }

    pub(super) async fn git_for(&self, target: &PushTarget) -> Result<Program> {
        match target {
            PushTarget::Remote(name) => {
                self.check_remote(name)?;
                self.network_git().await
            }
            PushTarget::Command { ssh_command, env, .. } => {
                let git = self.git().limit(super::run::NETWORK_LIMIT);
                let git = git.env("GIT_SSH_COMMAND", ssh_command).env("GIT_SSH_VARIANT", "simple");
                Ok(env.iter().fold(git, |git, (name, value)| git.env(name, value)))
            }
        }
    }

    /// The commit that a branch has at the place where pushes go, asked for there.
    pub async fn remote_tip(&self, target: &PushTarget, branch: &str) -> Result<Option<CommitId>> {
        let reference = names::branch_ref(branch)?;
        let mut git = self.git_for(target).await?;
        let mut place = target.argument();
        if let PushTarget::Remote(name) = target {
            let addresses = |which: &[&str]| run(self.git().args(["remote", "get-url"]).args(which).arg(name));
            let (fetched, pushed) = tokio::try_join!(addresses(&[]), addresses(&["--push"]))?;
            if fetched.text() != pushed.text() {
                // An address can carry a password, and other users can read a command line: it goes by environment.
                place = "k8tre-push-address";
                git = git.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", format!("remote.{place}.url"));
                git = git.env("GIT_CONFIG_VALUE_0", pushed.text());
            }
        }
        let what = format!("cannot ask {} for the branch {branch}", target.shown());
        let output = expect(git.args(["ls-remote", "--", place, &reference]), &what).await?;
        let text = output.text();
        // The pattern also matches longer names that end alike.
        let line = text.lines().filter_map(|line| line.split_once('\t')).find(|(_, name)| *name == reference);
        line.map(|(id, _)| id.parse()).transpose()
    }

    /// Brings the commit of a remote's branch here, without changing a branch of yours.
    pub async fn fetch(&self, target: &PushTarget, branch: &str) -> Result<Option<CommitId>> {
        let reference = names::branch_ref(branch)?;
        let Some(tip) = self.remote_tip(target, branch).await? else { return Ok(None) };
        if self.repository()?.find_commit(tip.0).is_ok() {
            return Ok(Some(tip));
        }
        let quietly = [
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            "--no-auto-maintenance",
        ];
        let git = self.git_for(target).await?.args(quietly).args(["--", target.argument(), &reference]);
        expect(git, &format!("cannot fetch the branch {branch} from {}", target.shown())).await?;
        Ok(Some(tip))
    }
}
