//! Runs of the `git` program: in one repository, without prompts, bounded, told in git's own words.

use std::path::Path;
use std::time::Duration;

use super::{Checkout, redacted};
use crate::error::{Error, Result, ResultExt};
use crate::ports::environment;
use crate::ports::process::{Output, Program};

/// Variables that would point git at another repository than the one named, as they are set inside a hook.
const POINTERS: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

/// A git that was asked to end holds its lock for a moment longer than who asked it: git itself waits for that, in
/// milliseconds. Its own choice is a tenth of a second.
const LOCK_WAIT: [&str; 2] = ["-c", "core.filesRefLockTimeout=3000"];

/// How long talking to a remote may take, the user's hooks included.
pub(super) const NETWORK_LIMIT: Duration = Duration::from_secs(120);

/// A run of git that asks nobody. Messages are English, because some are read; the character set stays the user's.
pub(super) fn program() -> Program {
    let git = Program::new("git").gently().env("GIT_TERMINAL_PROMPT", "0").env("LANGUAGE", "en");
    POINTERS.into_iter().fold(git, Program::env_remove)
}

/// A git command to paste, that works in a folder from anywhere.
pub(super) fn typed(folder: &Path, args: &[&str]) -> String {
    Program::new("git").arg("-C").arg(folder).args(args).shown()
}

impl Checkout {
    /// A run of git in this repository.
    pub(super) fn git(&self) -> Program {
        let git = program().folder(self.root()).args(LOCK_WAIT);
        self.variables.iter().fold(git, |git, (name, value)| git.env(name, value))
    }

    /// A run of git that may talk to a remote. ssh is told not to ask for passphrases or unknown host
    /// keys: it would ask on the terminal, past every redirection. A command of the user's own is kept
    /// and extended; a wrapper that is not ssh is left as it is, and then only the time limit helps.
    pub(super) async fn network_git(&self) -> Result<Program> {
        let own = match self.variable("GIT_SSH_COMMAND") {
            Some(command) => Some(command),
            None => self.setting("core.sshCommand").await?,
        };
        let wrapper = own.is_none() && self.variable("GIT_SSH").is_some();
        let command = own.unwrap_or_else(|| "ssh".into());
        let program = command.split_whitespace().next().unwrap_or_default();
        let is_ssh = program.rsplit('/').next() == Some("ssh");
        let git = self.git().limit(NETWORK_LIMIT).env("SSH_ASKPASS_REQUIRE", "never");
        Ok(match is_ssh && !wrapper {
            true => git.env("GIT_SSH_COMMAND", format!("{command} -o BatchMode=yes -o ConnectTimeout=20")),
            false => git,
        })
    }

    /// A setting as git sees it, with all its files, conditions and variables.
    pub(super) async fn setting(&self, key: &str) -> Result<Option<String>> {
        let output = run(self.git().args(["config", "--get", key])).await?;
        Ok(output.success().then(|| output.text()).filter(|value| !value.is_empty()))
    }

    /// Whether a yes-or-no setting is on.
    pub(super) async fn switched_on(&self, key: &str) -> Result<bool> {
        let output = run(self.git().args(["config", "--type=bool", "--get", key])).await?;
        Ok(output.success() && output.text() == "true")
    }

    /// A variable as git sees it.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        let own = self.variables.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone());
        own.or_else(|| environment::var(name))
    }
}

/// The installed git's version; refuses one that lacks what is used here (settings by environment, 2.31).
pub async fn check_version() -> Result<semver::Version> {
    let text = expect(program().arg("--version"), "cannot run git").await?.text();
    let numbers: Vec<u64> =
        text.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).take(3).collect();
    let [major, minor, rest @ ..] = &numbers[..] else {
        return Err(Error::failed(format!("git gives no version: {}", crate::text::one_line(&text, 60))));
    };
    let version = semver::Version::new(*major, *minor, rest.first().copied().unwrap_or(0));
    match version >= semver::Version::new(2, 31, 0) {
        true => Ok(version),
        false => Err(Error::preflight(format!("git {version} is too old: 2.31 is the oldest that works"))
            .hint("install a newer git: https://git-scm.com/downloads")),
    }
}

/// Runs git whatever its exit code; says how to get git when there is none.
pub(super) async fn run(git: Program) -> Result<Output> {
    git.output().await.map_err(|error| match error.to_string().contains("was not found") {
        true => error.with_kind(crate::error::Kind::Preflight).hint("install git: https://git-scm.com/downloads"),
        false => error,
    })
}

/// Runs git and fails with its own words unless it exits with 0.
pub(super) async fn expect(git: Program, what: &str) -> Result<Output> {
    let output = run(git).await.context(what)?;
    if output.success() { Ok(output) } else { Err(failure(what, &output)) }
}

/// What git said when it failed, without credentials, and with what usually mends it.
pub(super) fn failure(what: &str, output: &Output) -> Error {
    let words = redacted(&output.errors());
    let last = words.lines().rev().find(|line| line.starts_with("fatal:") || line.starts_with("error:"));
    let cause = last.map(|line| line.trim_start_matches("fatal:").trim_start_matches("error:").trim().to_owned());
    let error = match cause {
        Some(cause) => Error::failed(cause).context(what),
        None => Error::failed(what),
    };
    CURES
        .iter()
        .filter(|(symptom, _)| words.contains(symptom))
        .fold(error.detail(words.clone()), |error, (_, cure)| error.hint(*cure))
}

const CURES: [(&str, &str); 10] = [
    (
        "Host key verification failed",
        "connect once by hand and compare the key with the one the server's owner publishes: ssh -T git@HOST",
    ),
    ("Permission denied (publickey", "load your key into the agent: ssh-add; then try: git fetch"),
    (
        "terminal prompts disabled",
        "store a login for it: git config --global credential.helper store; then once by hand: git fetch",
    ),
    ("Authentication failed", "renew the stored login; once by hand: git fetch"),
    ("Could not resolve host", "check the network or VPN, and the remote's address: git remote -v"),
    ("does not appear to be a git repository", "check the remote's address: git remote -v"),
    ("Connection refused", "nothing listens there; check the remote's address: git remote -v"),
    (
        ".lock': File exists",
        "another git may be at work; if none is, remove the lock file that the message names and try again",
    ),
    ("gpg failed to sign", "try the signature by hand: echo test | gpg --clearsign; or unlock the key in your agent"),
    ("dubious ownership", "if you trust its owner, run the command that git names above"),
];
