//! Where a branch is published: a remote of the user's, or a command that carries git's protocol.

use super::run::{expect, run, typed};
use super::{Checkout, CommitId, Owner, branch, names};
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

/// Whether somebody without credentials can read a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readable {
    Yes,
    /// The server wants to know who asks.
    Refused,
    /// It could not be found out, and why.
    Unknown(String),
}

impl Checkout {
    /// The address that a remote is fetched from, as the user's settings rewrite it.
    pub async fn remote_address(&self, remote: &str) -> Result<String> {
        self.check_remote(remote)?;
        let output = expect(self.git().args(["remote", "get-url", remote]), "cannot read the remote's address").await?;
        Ok(output.text().trim().to_owned())
    }

    /// Asks as Argo CD without credentials would: none of the user's helpers, agents or headers.
    pub async fn readable(&self, url: &str) -> Result<Readable> {
        const ASKED: [&str; 7] = ["-c", "credential.helper=", "-c", "http.extraHeader=", "ls-remote", "--heads", "--"];
        let empty = tempfile::tempdir()?;
        let git = Program::new("git").folder(empty.path()).limit(super::run::NETWORK_LIMIT);
        let git = git.env("GIT_TERMINAL_PROMPT", "0").env("GIT_ASKPASS", "true").env("GIT_CONFIG_GLOBAL", "/dev/null");
        let output = match git.args(ASKED).arg(url).output().await {
            Ok(output) => output,
            Err(error) => return Ok(Readable::Unknown(error.message().to_owned())),
        };
        if output.success() {
            return Ok(Readable::Yes);
        }
        let words = output.errors();
        let refusals = [
            "Authentication failed",
            "could not read Username",
            "could not read Password",
            "403",
            "Repository not found",
        ];
        Ok(match refusals.iter().any(|refusal| words.contains(refusal)) {
            true => Readable::Refused,
            false => Readable::Unknown(crate::text::one_line(&super::redacted(&words), 160)),
        })
    }

    /// Refuses a remote that the repository does not have.
    pub fn check_remote(&self, remote: &str) -> Result<()> {
        names::check_remote(remote)?;
        let remotes = self.remotes()?;
        if remotes.iter().any(|known| known == remote) {
            return Ok(());
        }
        let error = Error::usage(format!("{} has no remote {remote}", self.root().display()));
        Err(match remotes.is_empty() {
            true => error.hint(typed(self.root(), &["remote", "add", remote, "URL"])),
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
        let listed = self.listed(target, branch, &[&reference]).await?;
        Ok(listed.into_iter().find(|(_, name)| *name == reference).map(|(id, _)| id))
    }

    /// The tip of a remote's branch, if it is there; refuses a branch that k8tre may not write to, and a
    /// remote that has no room for it.
    pub async fn check_remote_branch(
        &self,
        target: &PushTarget,
        branch: &str,
        owned_by: &Owner,
    ) -> Result<Option<CommitId>> {
        let reference = names::branch_ref(branch)?;
        let above: Vec<String> = branch.match_indices('/').map(|(slash, _)| branch[..slash].to_owned()).collect();
        let mut patterns: Vec<String> = above.iter().map(|name| format!("refs/heads/{name}")).collect();
        patterns.extend([format!("{reference}/*"), reference.clone()]);
        let listed = self.listed(target, branch, &patterns).await?;
        // A pattern also matches longer names that end alike.
        let blocks = |name: &str| {
            let name = name.strip_prefix("refs/heads/")?;
            let blocking = above.iter().any(|above| above == name) || name.starts_with(&format!("{branch}/"));
            blocking.then(|| name.to_owned())
        };
        if let Some(blocker) = listed.iter().find_map(|(_, name)| blocks(name)) {
            return Err(Error::preflight(format!(
                "{} cannot take the branch {branch}: git keeps branches as paths, and there is a branch {blocker} there",
                target.shown()
            ))
            .hint("use the git server in the cluster: --source cluster; or rename that branch"));
        }
        let Some((tip, _)) = listed.into_iter().find(|(_, name)| *name == reference) else { return Ok(None) };
        self.bring(target, branch, tip).await?;
        let email = self.identity().await?.email;
        let repository = self.repository()?;
        if branch::carries_overlay(&repository, tip, owned_by, &email)? {
            return Ok(Some(tip));
        }
        Err(branch::not_ours(&repository, branch, tip, &format!("on {}", target.shown()))
            .hint("use another environment name: --name NAME"))
    }

    /// Branches of a remote that start alike, each with its tip.
    pub async fn remote_branches(&self, target: &PushTarget, start: &str) -> Result<Vec<(CommitId, String)>> {
        let listed = self.listed(target, &format!("{start}*"), &[format!("refs/heads/{start}*")]).await?;
        // A pattern also matches longer names that end alike.
        let branch = |(id, name): (CommitId, String)| {
            let name = name.strip_prefix("refs/heads/").filter(|name| name.starts_with(start))?;
            Some((id, name.to_owned()))
        };
        Ok(listed.into_iter().filter_map(branch).collect())
    }

    /// Brings the commit of a remote's branch here, without changing a branch of yours.
    pub async fn fetch(&self, target: &PushTarget, branch: &str) -> Result<Option<CommitId>> {
        let tip = self.remote_tip(target, branch).await?;
        if let Some(tip) = tip {
            self.bring(target, branch, tip).await?;
        }
        Ok(tip)
    }

    async fn bring(&self, target: &PushTarget, branch: &str, tip: CommitId) -> Result<()> {
        if self.repository()?.find_commit(tip.0).is_ok() {
            return Ok(());
        }
        let reference = names::branch_ref(branch)?;
        let quietly = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"];
        let (git, place) = self.at_push_address(target).await?;
        let git = git.args(quietly).args(["--no-auto-maintenance", "--", &place, &reference]);
        expect(git, &format!("cannot fetch the branch {branch} from {}", target.shown())).await?;
        Ok(())
    }

    async fn listed<S: AsRef<str>>(
        &self,
        target: &PushTarget,
        branch: &str,
        patterns: &[S],
    ) -> Result<Vec<(CommitId, String)>> {
        let (git, place) = self.at_push_address(target).await?;
        let git = git.args(["ls-remote", "--", &place]).args(patterns.iter().map(AsRef::as_ref));
        let what = format!("cannot ask {} for the branch {branch}", target.shown());
        let text = expect(git, &what).await?.text();
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        lines.map(|(id, name)| Ok((id.parse()?, name.to_owned()))).collect()
    }

    /// A run of git for reading, and the name under which it knows the place where pushes go.
    async fn at_push_address(&self, target: &PushTarget) -> Result<(Program, String)> {
        const PUSH_ADDRESS: &str = "k8tre-push-address";
        let git = self.git_for(target).await?;
        let PushTarget::Remote(name) = target else { return Ok((git, target.argument().to_owned())) };
        let addresses = |which: &[&str]| run(self.git().args(["remote", "get-url"]).args(which).arg(name));
        let (fetched, pushed) = tokio::try_join!(addresses(&[]), addresses(&["--push"]))?;
        if fetched.text() == pushed.text() {
            return Ok((git, name.clone()));
        }
        // An address can carry a password, and others can read a command line: it goes by environment, after
        // what the user has there.
        let count = self.variable("GIT_CONFIG_COUNT").and_then(|count| count.parse().ok()).unwrap_or(0_u32);
        let git = git
            .env("GIT_CONFIG_COUNT", (count + 1).to_string())
            .env(format!("GIT_CONFIG_KEY_{count}"), format!("remote.{PUSH_ADDRESS}.url"))
            .env(format!("GIT_CONFIG_VALUE_{count}"), pushed.text().lines().next().unwrap_or_default());
        Ok((git, PUSH_ADDRESS.to_owned()))
    }
}
