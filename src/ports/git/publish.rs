//! Pushing: with a lease on what was seen there, told in the server's words, and looked at afterwards.

use super::run::{failure, run};
use super::{Checkout, CommitId, Owner, PushTarget, Removal, names, redacted, said};
use crate::error::{Error, Result};
use crate::ports::process::{Output, Program};

/// What the remote's branch may be replaced from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// It must not be there.
    Absent,
    /// It must be at this commit.
    At(CommitId),
    /// Whatever it is: for a server that serves this environment alone.
    Any,
}

/// A branch that is where it was pushed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pushed {
    pub commit: CommitId,
    /// Whether the remote had another commit before.
    pub changed: bool,
}

/// What there is of an environment's branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remains {
    Nothing,
    /// k8tre made it, and it may go.
    Ours(CommitId),
    /// Why it stays.
    Kept(String),
}

impl Checkout {
    /// Publishes a commit as the environment's branch, never over commits that it does not contain. `known`
    /// is a commit of ours that may be replaced, as after a rebase.
    pub async fn publish(
        &self,
        target: &PushTarget,
        branch: &str,
        commit: CommitId,
        owned_by: &Owner,
        known: Option<CommitId>,
    ) -> Result<Pushed> {
        let Some(tip) = self.check_remote_branch(target, branch, owned_by).await? else {
            return self.push(target, branch, commit, Lease::Absent).await;
        };
        if tip == commit {
            return Ok(Pushed { commit, changed: false });
        }
        let contained = self.repository()?.graph_descendant_of(commit.0, tip.0).map_err(said)?;
        if contained || known == Some(tip) {
            return self.push(target, branch, commit, Lease::At(tip)).await;
        }
        Err(moved(target, branch, Some(tip)))
    }

    /// Pushes a commit as a branch if the lease holds, and makes sure that it is there.
    pub async fn push(&self, target: &PushTarget, branch: &str, commit: CommitId, lease: Lease) -> Result<Pushed> {
        let reference = names::branch_ref(branch)?;
        let output = self.push_refspec(target, &reference, &format!("{commit}:{reference}"), lease).await?;
        let result = judged(target, branch, &output, &format!("cannot push {branch} to {}", target.shown()))?;
        // The server in the cluster has no proxy or mirror in front: what it reports is what it holds.
        if matches!(target, PushTarget::Remote(_)) {
            let there = self.remote_tip(target, branch).await?;
            if there != Some(commit) {
                let there = there.map_or("no such branch".to_owned(), |tip| tip.short());
                return Err(Error::failed(format!(
                    "{} accepted {branch} at {}, but has {there}",
                    target.shown(),
                    commit.short()
                ))
                .detail(redacted(&output.errors()))
                .hint("something on the server or another push changed it; look at it and try again"));
            }
        }
        Ok(Pushed { commit, changed: result != '=' })
    }

    /// Deletes a remote's branch whose tip k8tre made for this environment, unless that would lose a commit of the developer's.
    pub async fn delete_remote_branch(&self, target: &PushTarget, branch: &str, owned_by: &Owner) -> Result<Removal> {
        let reference = names::branch_ref(branch)?;
        let tip = match self.remote_remains(target, branch, owned_by).await? {
            Remains::Nothing => return Ok(Removal::Absent),
            Remains::Kept(reason) => return Ok(Removal::Kept(reason)),
            Remains::Ours(tip) => tip,
        };
        let output = self.push_refspec(target, &reference, &format!(":{reference}"), Lease::At(tip)).await?;
        judged(target, branch, &output, &format!("cannot delete {branch} on {}", target.shown()))?;
        match self.remote_tip(target, branch).await? {
            None => Ok(Removal::Deleted(tip)),
            Some(now) => Ok(Removal::Kept(format!("was deleted, but is there again at {}", now.short()))),
        }
    }

    /// What of the environment's branch is on a remote, and whether it may go.
    pub async fn remote_remains(&self, target: &PushTarget, branch: &str, owned_by: &Owner) -> Result<Remains> {
        let reference = names::branch_ref(branch)?;
        let Some(tip) = self.fetch(target, branch).await? else { return Ok(Remains::Nothing) };
        let reason = self.reason_to_keep(branch, &reference, tip, owned_by)?;
        Ok(reason.map_or(Remains::Ours(tip), Remains::Kept))
    }

    async fn push_refspec(&self, target: &PushTarget, reference: &str, refspec: &str, lease: Lease) -> Result<Output> {
        let git = self.git_for(target).await?;
        let git = match target {
            PushTarget::Remote(_) => git.arg("push"),
            // Settings that suit the user's own remotes do not suit a bare server in the cluster.
            PushTarget::Command { .. } => {
                git.args(["-c", "push.pushOption=", "push", "--no-verify", "--no-signed", "--recurse-submodules=no"])
            }
        };
        let git = git.args(["--porcelain", "--no-follow-tags"]);
        let git: Program = match lease {
            Lease::Absent => git.arg(format!("--force-with-lease={reference}:")),
            Lease::At(commit) => git.arg(format!("--force-with-lease={reference}:{commit}")),
            Lease::Any => git.arg("--force"),
        };
        run(git.args(["--", target.argument(), refspec])).await.map_err(|error| {
            error.context(format!("cannot push to {}", target.shown())).hint(format!(
                "a hook, a login window or the network may be in the way; look by hand: git push {} {refspec}",
                target.shown()
            ))
        })
    }
}

/// Reads git's report: the flag of the branch, or why it was not pushed.
fn judged(target: &PushTarget, branch: &str, output: &Output, what: &str) -> Result<char> {
    let text = output.text();
    let lines: Vec<(char, &str)> = text.lines().filter_map(report_line).collect();
    if let Some((_, reason)) = lines.iter().find(|(flag, _)| *flag == '!') {
        if reason.contains("stale info") || reason.contains("fetch first") {
            return Err(moved(target, branch, None));
        }
        return Err(rejected(target, branch, reason, output));
    }
    match lines.first() {
        Some((flag, _)) if output.success() => Ok(*flag),
        _ => Err(failure(what, output)),
    }
}

/// One line of `git push --porcelain`: flag, source and destination, what happened.
fn report_line(line: &str) -> Option<(char, &str)> {
    let (flag, rest) = line.split_once('\t')?;
    let (_, summary) = rest.split_once('\t')?;
    // A fast-forward's flag is a space.
    let flag = flag.chars().next().unwrap_or(' ');
    Some((flag, summary))
}

fn rejected(target: &PushTarget, branch: &str, reason: &str, output: &Output) -> Error {
    let words = redacted(&output.errors());
    let server: Vec<&str> = words
        .lines()
        .filter_map(|line| line.strip_prefix("remote:"))
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let error = Error::failed(format!("{} rejected {branch}: {}", target.shown(), redacted(reason)));
    if server.is_empty() { error.detail(words) } else { error.detail(server.join("\n")) }
}

fn moved(target: &PushTarget, branch: &str, tip: Option<CommitId>) -> Error {
    let at = tip.map_or(String::new(), |tip| format!(" ({})", tip.short()));
    let error = Error::preflight(format!(
        "{} has commits on {branch} that are not in your branch{at}; they are not overwritten",
        target.shown()
    ));
    match target {
        PushTarget::Remote(name) => error
            .hint(format!("to look at them: git fetch {name} {branch} && git log FETCH_HEAD"))
            .hint(format!("to take them in: git fetch {name} {branch}:{branch}")),
        PushTarget::Command { .. } => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_of_the_report_is_read() {
        let report = "To ../r.git\n*\tabc:refs/heads/dev/a\t[new branch]\n \ta:b\t1..2\n!\ta:b\t[remote rejected] (hook declined)\nDone";
        let lines: Vec<_> = report.lines().filter_map(report_line).collect();
        assert_eq!(lines, [('*', "[new branch]"), (' ', "1..2"), ('!', "[remote rejected] (hook declined)")]);
    }
}
