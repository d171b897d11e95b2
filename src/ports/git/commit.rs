//! Commits of k8tre's own: how they are made, and how they are recognised.

use std::fmt;

use super::run::{NETWORK_LIMIT, expect};
use super::{Checkout, CommitId, said};
use crate::error::{Error, Kind, Result, ResultExt};
use crate::names::EnvName;

const TRAILER: &str = "K8tre-Environment";

/// The environment that a commit was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub name: EnvName,
    /// Unlike the name, never used again.
    pub id: String,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.id)
    }
}

impl Owner {
    fn parse(text: &str) -> Option<Owner> {
        let (name, id) = text.trim().split_once(' ')?;
        Some(Owner { name: name.parse().ok()?, id: id.trim().to_owned() })
    }
}

impl Checkout {
    /// The environment that a commit was made for by k8tre; none for anybody else's commit.
    pub fn owner(&self, commit: CommitId) -> Result<Option<Owner>> {
        owner(&self.repository()?, commit.0)
    }

    /// Whether this person is the author of a commit.
    pub async fn is_by_this_person(&self, commit: CommitId) -> Result<bool> {
        let email = self.identity().await?.email;
        let repository = self.repository()?;
        let commit = repository.find_commit(commit.0).map_err(said)?;
        Ok(commit.author().email() == Ok(email.as_str()))
    }

    /// A trailer of a commit's message.
    pub fn trailer(&self, commit: CommitId, key: &str) -> Result<Option<String>> {
        let repository = self.repository()?;
        let commit = repository.find_commit(commit.0).map_err(said)?;
        let Ok(message) = commit.message() else { return Ok(None) };
        let trailers = git2::message_trailers_strs(message).map_err(said)?;
        Ok(trailers.iter().find(|(known, _)| *known == key).map(|(_, value)| value.trim().to_owned()))
    }

    /// Whether k8tre made the commit for the environment with this id.
    pub fn is_ours(&self, commit: CommitId, id: &str) -> Result<bool> {
        Ok(self.owner(commit)?.is_some_and(|owner| owner.id == id))
    }

    /// Makes a commit object as `git commit` would: same author, same committer, signed if commits are
    /// to be signed. Nothing refers to it yet.
    pub(super) async fn commit(
        &self,
        tree: git2::Oid,
        parent: CommitId,
        message: &str,
        owner: &Owner,
    ) -> Result<CommitId> {
        let message = marked(message, owner)?;
        self.identity().await?;
        self.commit_as(tree, parent, &message, &[]).await
    }

    /// The same without a signature.
    pub(super) async fn commit_unsigned(
        &self,
        tree: git2::Oid,
        parent: CommitId,
        message: &str,
        owner: &Owner,
    ) -> Result<CommitId> {
        let message = marked(message, owner)?;
        let git = self.git().args(["commit-tree", "-p", &parent.to_string(), "-F", "-", &tree.to_string()]);
        let output = expect(git.stdin(message), "cannot make a commit").await;
        match output {
            Ok(output) => output.text().parse(),
            // Asked only now: a commit that succeeds needs no question.
            Err(error) => self.identity().await.and(Err(error)),
        }
    }

    /// Makes a commit object with variables that say who its author is, when that is not the user.
    pub(super) async fn commit_as(
        &self,
        tree: git2::Oid,
        parent: CommitId,
        message: &str,
        author: &[(&str, String)],
    ) -> Result<CommitId> {
        let signed = self.switched_on("commit.gpgSign").await?;
        let git = self.git().args(["commit-tree", "-p", &parent.to_string()]);
        let git = author.iter().fold(git, |git, (name, value)| git.env(name, value));
        let git = if signed { git.arg("-S") } else { git };
        let git = git.args(["-F", "-", &tree.to_string()]).stdin(message).limit(NETWORK_LIMIT);
        let what = if signed { "cannot make a signed commit" } else { "cannot make a commit" };
        let output = expect(git, what).await.map_err(|error| match signed {
            true => error
                .with_kind(Kind::Preflight)
                .hint("commits are to be signed here (commit.gpgSign); see what `git commit` says in this repository"),
            false => error,
        })?;
        output.text().parse()
    }
}

/// The message with the trailer by which the commit is recognised.
fn marked(message: &str, owner: &Owner) -> Result<String> {
    if owner.id.is_empty() || owner.id.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(Error::failed(format!("\"{}\" cannot be the id of an environment", owner.id.escape_debug())));
    }
    let message = message.trim_end();
    // Beside a trailer that is there already, not in a paragraph of its own.
    let has_trailers = git2::message_trailers_strs(message).is_ok_and(|found| found.iter().next().is_some());
    let gap = if has_trailers { "\n" } else { "\n\n" };
    Ok(format!("{message}{gap}{TRAILER}: {owner}\n"))
}

pub(super) fn owner(repository: &git2::Repository, commit: git2::Oid) -> Result<Option<Owner>> {
    let commit =
        repository.find_commit(commit).map_err(said).with_context(|| format!("cannot read commit {commit}"))?;
    let Ok(message) = commit.message() else { return Ok(None) };
    let trailers = git2::message_trailers_strs(message).map_err(said)?;
    Ok(trailers.iter().filter(|(key, _)| *key == TRAILER).find_map(|(_, value)| Owner::parse(value)))
}
