//! A checkout: which repository it is, what it holds, whose it is. Only reads.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::run::{expect, run, typed};
use super::{CommitId, names, redacted, said};
use crate::error::{Error, Kind, Result, ResultExt};
use crate::names::{EnvName, slug};

/// A repository with a work tree.
#[derive(Debug, Clone)]
pub struct Checkout {
    root: PathBuf,
    folder: PathBuf,
    pub(super) variables: Vec<(String, String)>,
}

/// Who a commit made here would be by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub name: String,
    pub email: String,
}

/// How the work tree differs from the checked-out commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DirtySummary {
    /// Files that git knows.
    pub changed: usize,
    /// Files and folders that it does not.
    pub untracked: usize,
}

/// How two commits stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AheadBehind {
    /// Commits that only the first has.
    pub ahead: usize,
    /// Commits that only the second has.
    pub behind: usize,
}

impl Checkout {
    /// The repository that a file or folder belongs to.
    pub fn open(path: &Path) -> Result<Checkout> {
        let refused = |reason: &str| Error::usage(format!("{} {reason}", path.display()));
        if !path.exists() {
            return Err(refused("does not exist").hint("name a clone of a TRE repository: --repo PATH"));
        }
        let path = path.canonicalize().with_context(|| format!("cannot open {}", path.display()))?;
        let repository = git2::Repository::discover(&path).map_err(|error| unusable(&path, &error))?;
        // Without the slash that libgit2 puts at the end.
        let Some(root) = repository.workdir().map(|root| root.components().collect()) else {
            return Err(refused("is a bare repository: it has no work tree to edit")
                .hint("clone it and name the clone: git clone URL FOLDER, then --repo FOLDER"));
        };
        if let Some(remote) = promisor(&repository) {
            return Err(partial(&path, &remote));
        }
        let checkout = Checkout { root, folder: repository.path().to_owned(), variables: Vec::new() };
        if checkout.branches()?.is_empty() && repository.head().is_err() {
            return Err(refused("is a repository without commits")
                .hint(typed(&checkout.root, &["add", "--all"]))
                .hint(typed(&checkout.root, &["commit"])));
        }
        Ok(checkout)
    }

    /// Sets a variable for every git that runs here.
    pub fn with_variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// The top folder of the work tree.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn repository(&self) -> Result<git2::Repository> {
        git2::Repository::open(&self.folder).map_err(|error| unusable(&self.root, &error))
    }

    /// The checked-out branch; none when HEAD is a commit.
    pub fn head_branch(&self) -> Option<String> {
        let repository = self.repository().ok()?;
        let head = repository.find_reference("HEAD").ok()?;
        head.symbolic_target().ok()??.strip_prefix("refs/heads/").map(str::to_owned)
    }

    /// The checked-out commit.
    pub fn head(&self) -> Result<CommitId> {
        let repository = self.repository()?;
        let commit = repository.head().and_then(|head| head.peel_to_commit()).map_err(said);
        commit.map(|commit| CommitId(commit.id())).context("cannot tell the checked-out commit")
    }

    /// The commit of a branch: the local one, else origin's.
    pub fn resolve(&self, branch: &str) -> Result<CommitId> {
        let local = names::branch_ref(branch)?;
        let repository = self.repository()?;
        for name in [local, format!("refs/remotes/origin/{branch}")] {
            if let Ok(reference) = repository.find_reference(&name) {
                return Ok(CommitId(reference.peel_to_commit().map_err(said)?.id()));
            }
        }
        // A CI checks out a commit, and no branch has it.
        if let (40, Ok(commit)) = (branch.len(), git2::Oid::from_str(branch))
            && let Ok(commit) = repository.find_commit(commit)
        {
            return Ok(CommitId(commit.id()));
        }
        let error = Error::usage(format!("there is no branch {branch} in {}", self.root.display()));
        let near = near(branch, self.branches()?);
        Err(match near.is_empty() {
            true => error.hint(typed(&self.root, &["branch", "--all"])),
            false => error.hint(format!("similar: {}", near.join(", "))),
        })
    }

    /// The tip of a local branch, if it is there.
    pub fn tip(&self, branch: &str) -> Result<Option<CommitId>> {
        tip(&self.repository()?, &names::branch_ref(branch)?)
    }

    /// Where a remote's branch was when it was last fetched.
    pub fn remote_branch(&self, remote: &str, branch: &str) -> Result<Option<CommitId>> {
        names::check_remote(remote)?;
        names::branch_ref(branch)?;
        tip(&self.repository()?, &format!("refs/remotes/{remote}/{branch}"))
    }

    /// Local branches and those of origin, without repetition.
    pub fn branches(&self) -> Result<Vec<String>> {
        let repository = self.repository()?;
        let references = repository.references().map_err(said)?;
        let mut branches: Vec<String> = references
            .flatten()
            .filter_map(|reference| {
                let name = reference.name().ok()?;
                let branch = name.strip_prefix("refs/heads/").or_else(|| name.strip_prefix("refs/remotes/origin/"))?;
                (branch != "HEAD").then(|| branch.to_owned())
            })
            .collect();
        branches.sort();
        branches.dedup();
        Ok(branches)
    }

    /// Names of the configured remotes.
    pub fn remotes(&self) -> Result<Vec<String>> {
        let remotes = self.repository()?.remotes().map_err(said)?;
        Ok(remotes.iter().filter_map(|name| name.ok().flatten().map(str::to_owned)).collect())
    }

    /// How far the first commit is ahead of the second, and behind it.
    pub fn ahead_behind(&self, first: CommitId, second: CommitId) -> Result<AheadBehind> {
        let counted = self.repository()?.graph_ahead_behind(first.0, second.0).map_err(said);
        let (ahead, behind) =
            counted.with_context(|| format!("cannot compare {} with {}", first.short(), second.short()))?;
        Ok(AheadBehind { ahead, behind })
    }

    /// How many files differ from the checked-out commit; as `git status` counts, and without its index refresh.
    pub async fn dirty(&self) -> Result<DirtySummary> {
        let status = ["--no-optional-locks", "status", "--porcelain=v1", "-z", "--untracked-files=normal"];
        let git = self.git().args(status).arg("--ignore-submodules=dirty").limit(Duration::from_secs(10));
        let output = expect(git, "cannot tell what differs from the checked-out commit").await?;
        let mut summary = DirtySummary::default();
        let mut entries = output.stdout.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        while let Some(entry) = entries.next() {
            match entry {
                [b'?', ..] => summary.untracked += 1,
                // A renamed file's former path follows as an entry of its own.
                [b'R' | b'C', ..] | [_, b'R' | b'C', ..] => {
                    summary.changed += 1;
                    entries.next();
                }
                _ => summary.changed += 1,
            }
        }
        Ok(summary)
    }

    /// Who `git commit` would name as author here; refuses where `git commit` would refuse.
    pub async fn identity(&self) -> Result<Identity> {
        let ident = |role| run(self.git().args(["var", role]));
        let (author, committer) = tokio::try_join!(ident("GIT_AUTHOR_IDENT"), ident("GIT_COMMITTER_IDENT"))?;
        if let Some(failed) = [&author, &committer].into_iter().find(|output| !output.success()) {
            return Err(Error::new(Kind::Preflight, "git does not know who you are, so it cannot commit")
                .detail(redacted(&failed.errors()))
                .hint("git config --global user.name \"Your Name\"")
                .hint("git config --global user.email you@example.org"));
        }
        let text = author.text();
        let (name, rest) = text.rsplit_once(" <").unwrap_or(("", &text));
        let email = rest.split_once('>').map_or(rest, |(email, _)| email);
        Ok(Identity { name: name.to_owned(), email: email.to_owned() })
    }

    /// Whether a yes-or-no setting is on here, such as a mark that k8tre left.
    pub async fn marked(&self, key: &str) -> Result<bool> {
        self.switched_on(key).await
    }

    /// A name for the developer's environment, from the identity.
    pub async fn developer_slug(&self) -> Result<EnvName> {
        Ok(self.identity().await?.proposal())
    }
}

impl Identity {
    /// A usable environment name: the address' local part, or the name where there is none.
    pub fn proposal(&self) -> EnvName {
        let (local, host) = self.email.split_once('@').unwrap_or((&self.email, ""));
        let local = match host == "users.noreply.github.com" {
            true => local.rsplit('+').next().unwrap_or(local),
            false => local,
        };
        slug(if local.trim().is_empty() { &self.name } else { local })
    }
}

pub(super) fn tip(repository: &git2::Repository, reference: &str) -> Result<Option<CommitId>> {
    match repository.refname_to_id(reference) {
        Ok(id) => Ok(Some(CommitId(id))),
        Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
        Err(error) => Err(said(error).context(format!("cannot read {reference}"))),
    }
}

fn near(wanted: &str, branches: Vec<String>) -> Vec<String> {
    let mut scored: Vec<(f64, String)> =
        branches.into_iter().map(|branch| (strsim::jaro_winkler(wanted, &branch), branch)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    scored.into_iter().take_while(|(score, _)| *score > 0.7).take(3).map(|(_, branch)| branch).collect()
}

/// The remote that has the objects which a partial clone left out.
fn promisor(repository: &git2::Repository) -> Option<String> {
    let config = repository.config().ok()?;
    let entries = config.entries(Some(r"^remote\..*\.promisor$")).ok()?;
    let mut remote = None;
    entries
        .for_each(|entry| {
            let key = entry.name().unwrap_or_default();
            if config.get_bool(key).unwrap_or(false) {
                remote = key.strip_prefix("remote.").and_then(|key| key.strip_suffix(".promisor")).map(str::to_owned);
            }
        })
        .ok()?;
    remote
}

/// git would fetch what is missing in the middle of reading; libgit2 does not.
fn partial(path: &Path, remote: &str) -> Error {
    let fetch = typed(path, &["fetch", "--refetch", "--no-filter", remote]);
    let forget = typed(path, &["config", "--unset", &format!("remote.{remote}.promisor")]);
    Error::usage(format!(
        "{} is a partial clone (git clone --filter): files of other branches are missing in it",
        path.display()
    ))
    .hint(format!("to complete it: {fetch} && {forget}"))
    .hint("or name a full clone: git clone URL FOLDER, then --repo FOLDER")
}

/// Why libgit2 does not open it, and what to do.
fn unusable(path: &Path, error: &git2::Error) -> Error {
    let shown = path.display();
    let extension = error.message().strip_prefix("unsupported extension name extensions.");
    match (error.code(), extension) {
        (git2::ErrorCode::NotFound, _) => Error::usage(format!("{shown} is not in a git repository"))
            .hint("name a clone of a TRE repository: --repo PATH; or try the sample: k8tre dev up --sample"),
        (git2::ErrorCode::Owner, _) => {
            let root = path.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(path);
            let trust = ["config", "--global", "--add", "safe.directory", &root.to_string_lossy()];
            Error::usage(format!("{shown} belongs to another user, so git does not trust it"))
                .hint(format!("if you trust its owner: {}", typed(root, &trust)))
        }
        (_, Some(extension)) => Error::usage(format!("{shown} uses {extension}, a git feature that k8tre cannot read"))
            .hint("name an ordinary clone: git clone URL FOLDER, then --repo FOLDER"),
        _ => Error::usage(redacted(error.message())).context(format!("cannot open the repository of {shown}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proposed_name_comes_from_the_address_or_else_the_name() {
        for (name, email, proposal) in [
            ("Alice Smith", "alice@example.org", "alice"),
            ("Alice Smith", "12345+alice@users.noreply.github.com", "alice"),
            ("alice", "", "alice"),
        ] {
            assert_eq!(Identity { name: name.into(), email: email.into() }.proposal().as_str(), proposal);
        }
    }
}
