//! One folder of the developer's branch taken from another commit, as git objects; and whose commits are in it.

use super::commit::owner;
use super::run::expect;
use super::{Checkout, CommitId, Owner, branch, names, redacted, said};
use crate::error::{Error, Result, ResultExt};
use crate::ports::process::Program;
use crate::text::one_line;

/// A folder, and what in it stays the branch's own.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    pub folder: &'a str,
    /// A folder inside it.
    pub keep: &'a str,
}

impl Part<'_> {
    fn keeps(&self, path: &str) -> bool {
        path.strip_prefix(self.keep).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl Checkout {
    /// Where two commits part.
    pub fn common_ancestor(&self, one: CommitId, other: CommitId) -> Result<Option<CommitId>> {
        match self.repository()?.merge_base(one.0, other.0) {
            Ok(id) => Ok(Some(CommitId(id))),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(said(error)),
        }
    }

    /// Refuses early what could not be written to: a branch that is checked out.
    pub async fn check_movable(&self, branch: &str) -> Result<()> {
        self.check_not_checked_out(branch, &names::branch_ref(branch)?).await
    }

    /// Whether a commit has a folder.
    pub fn has_folder(&self, commit: CommitId, folder: &str) -> Result<bool> {
        let repository = self.repository()?;
        let tree = branch::tree_of(&repository, commit)?;
        Ok(tree.get_path(folder.as_ref()).is_ok_and(|entry| entry.kind() == Some(git2::ObjectType::Tree)))
    }

    /// Files of the part in which two commits differ.
    pub fn part_differences(&self, one: CommitId, other: CommitId, part: Part<'_>) -> Result<Vec<String>> {
        let repository = self.repository()?;
        let (one, other) = (branch::tree_of(&repository, one)?, branch::tree_of(&repository, other)?);
        differences(&repository, Some(&one), &other, part)
    }

    /// Files of the part that commits of the developer's own changed, without those that other commits have.
    pub fn own_changes(&self, tip: CommitId, without: &[CommitId], part: Part<'_>) -> Result<Vec<String>> {
        let repository = self.repository()?;
        let mut walk = repository.revwalk().map_err(said)?;
        walk.push(tip.0).map_err(said)?;
        for commit in without.iter().filter(|commit| repository.find_commit(commit.0).is_ok()) {
            walk.hide(commit.0).map_err(said)?;
        }
        let mut files = Vec::new();
        for id in walk {
            let id = id.map_err(said)?;
            if owner(&repository, id)?.is_some() {
                continue;
            }
            let commit = repository.find_commit(id).map_err(said)?;
            let before = commit.parent(0).and_then(|parent| parent.tree()).ok();
            let after = commit.tree().map_err(said)?;
            files.extend(differences(&repository, before.as_ref(), &after, part)?);
        }
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// Adds a commit to the branch that has the part as another commit has it.
    pub async fn put_part(
        &self,
        branch: &str,
        owned_by: &Owner,
        from: CommitId,
        part: Part<'_>,
        message: &str,
    ) -> Result<CommitId> {
        let reference = names::branch_ref(branch)?;
        let tip = self.check_branch(branch, owned_by).await?;
        let tip = tip.ok_or_else(|| Error::failed(format!("the branch {branch} is gone")).hint("k8tre dev up"))?;
        let tree = {
            let repository = self.repository()?;
            let (ours, theirs) = (branch::tree_of(&repository, tip)?, branch::tree_of(&repository, from)?);
            let entry = |tree: &git2::Tree<'_>, path: &str| {
                tree.get_path(path.as_ref()).ok().map(|entry| (entry.id(), entry.filemode()))
            };
            let kept = entry(&ours, part.keep);
            let taken = replaced(&repository, Some(&theirs), part.keep, kept)?;
            let taken = repository.find_tree(taken).map_err(said)?;
            let folder = entry(&taken, part.folder).ok_or_else(|| {
                Error::usage(format!("commit {} has no folder {}", from.short(), one_line(part.folder, 100)))
            })?;
            let tree = replaced(&repository, Some(&ours), part.folder, Some(folder))?;
            if tree == ours.id() {
                return Ok(tip);
            }
            tree
        };
        self.check_not_checked_out(branch, &reference).await?;
        let commit = self.commit(tree, tip, message, owned_by).await?;
        self.move_branch(branch, &reference, Some(tip), commit, "k8tre: use").await?;
        Ok(commit)
    }

    /// Brings a branch of any repository here, or what is checked out there, without a reference to it. Returns its
    /// name and commit.
    pub async fn fetch_from(&self, address: &str, branch: Option<&str>) -> Result<(String, CommitId)> {
        check_address(address)?;
        let shown = redacted(address);
        let reference = branch.map_or_else(|| Ok("HEAD".to_owned()), names::branch_ref)?;
        let (git, place) = self.git_at(address).await?;
        let what = format!("cannot ask {shown} for its branches");
        let text = expect(git.args(["ls-remote", "--symref", "--", &place, &reference]), &what).await?.text();
        let pointed = || text.lines().find_map(|line| line.strip_prefix("ref: refs/heads/")?.split_once('\t'));
        let name = branch.map(str::to_owned).or_else(|| pointed().map(|(name, _)| name.to_owned()));
        let found = text
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .find_map(|(id, name)| (name == reference).then(|| id.parse::<CommitId>().ok()).flatten());
        let commit = found.ok_or_else(|| {
            let branch = branch.map_or_else(|| "nothing checked out".into(), |branch| format!("no branch {branch}"));
            Error::usage(format!("{shown} has {branch}")).hint("name one of its branches: --branch BRANCH")
        })?;
        if !self.has(commit)? {
            let (git, place) = self.git_at(address).await?;
            let quietly = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"];
            let git = git.args(quietly).args(["--no-auto-maintenance", "--", &place, &reference]);
            expect(git, &format!("cannot fetch from {shown}")).await?;
        }
        if !self.has(commit)? {
            return Err(Error::failed(format!("{shown} went on while it was read")).hint("try again"));
        }
        Ok((name.unwrap_or(reference), commit))
    }

    /// A run of git that knows an address by a name. An address can carry a password, and others can read a command
    /// line: so it goes by environment, after what the user has there.
    async fn git_at(&self, address: &str) -> Result<(Program, String)> {
        const PLACE: &str = "k8tre-use-address";
        let count = self.variable("GIT_CONFIG_COUNT").and_then(|count| count.parse().ok()).unwrap_or(0_u32);
        let git = self.network_git().await?;
        let git = git
            .env("GIT_CONFIG_COUNT", (count + 1).to_string())
            .env(format!("GIT_CONFIG_KEY_{count}"), format!("remote.{PLACE}.url"))
            .env(format!("GIT_CONFIG_VALUE_{count}"), address);
        Ok((git, PLACE.to_owned()))
    }
}

/// Refuses what git could take for an option, or for a program to run.
fn check_address(address: &str) -> Result<()> {
    let runs = address.split_once("::").is_some_and(|(helper, _)| helper.chars().all(|c| c.is_ascii_alphanumeric()));
    if address.is_empty() || address.starts_with('-') || address.chars().any(char::is_control) || runs {
        let shown = one_line(&redacted(&address.escape_debug().to_string()), 60);
        return Err(Error::usage(format!("\"{shown}\" cannot be the address of a repository"))
            .hint("addresses are written as https://HOST/PATH, ssh://HOST/PATH, HOST:PATH or a folder"));
    }
    Ok(())
}

/// Files of the part in which two trees differ.
fn differences(
    repository: &git2::Repository,
    before: Option<&git2::Tree<'_>>,
    after: &git2::Tree<'_>,
    part: Part<'_>,
) -> Result<Vec<String>> {
    let mut options = git2::DiffOptions::new();
    options.pathspec(part.folder).disable_pathspec_match(true).ignore_submodules(true);
    let diff = repository.diff_tree_to_tree(before, Some(after), Some(&mut options)).map_err(said)?;
    let path = |file: git2::DiffFile<'_>| file.path_bytes().map(|path| String::from_utf8_lossy(path).into_owned());
    let paths = diff.deltas().filter_map(|delta| path(delta.new_file()).or_else(|| path(delta.old_file())));
    Ok(paths.filter(|path| !part.keeps(path)).collect())
}

/// A tree with another entry at a path, or with none; folders on the way are made.
fn replaced(
    repository: &git2::Repository,
    tree: Option<&git2::Tree<'_>>,
    path: &str,
    entry: Option<(git2::Oid, i32)>,
) -> Result<git2::Oid> {
    let (name, rest) = path.split_once('/').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let mut builder = repository.treebuilder(tree).map_err(said)?;
    let entry = match rest {
        None => entry,
        Some(rest) => {
            let inner = tree.and_then(|tree| tree.get_name(name)).filter(|e| e.kind() == Some(git2::ObjectType::Tree));
            let inner = inner.map(|inner| repository.find_tree(inner.id())).transpose().map_err(said)?;
            let id = replaced(repository, inner.as_ref(), rest, entry)?;
            let is_empty = repository.find_tree(id).map_err(said)?.is_empty();
            (!is_empty).then_some((id, git2::FileMode::Tree.into()))
        }
    };
    match entry {
        Some((id, mode)) => drop(builder.insert(name, id, mode).map_err(said).context("cannot write a tree")?),
        None if builder.get(name).map_err(said)?.is_some() => builder.remove(name).map_err(said)?,
        None => {}
    }
    builder.write().map_err(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_git_could_misread_are_refused() {
        for address in ["", "-u", "--upload-pack=id", "ext::sh -c id", "fd::7", "a\nb"] {
            assert!(check_address(address).is_err(), "{address:?}");
        }
        for address in ["https://h/x.git", "git@h:x.git", "ssh://[::1]/x", "/tmp/x", "../x"] {
            assert!(check_address(address).is_ok(), "{address:?}");
        }
    }

    #[test]
    fn what_is_kept_is_a_folder_and_not_a_prefix() {
        let part = Part { folder: "apps/a", keep: "apps/a/envs/dev-al" };
        assert!(part.keeps("apps/a/envs/dev-al/x") && part.keeps("apps/a/envs/dev-al"));
        assert!(!part.keeps("apps/a/envs/dev-alice/x") && !part.keeps("apps/a/x"));
    }
}
