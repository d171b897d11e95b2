//! What a check says: facts, findings, and what can be done about these.

use std::path::PathBuf;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::ports::fetch::Fetcher;
use crate::ports::process::Program;
use crate::providers::kind::binary;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Blocker,
    Warning,
    Info,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub code: &'static str,
    pub severity: Severity,
    pub what: String,
    pub why: String,
    /// A command or a setting, to be used as it stands.
    pub fix: String,
    /// What `doctor --fix` does about it, if it may.
    #[serde(skip)]
    pub remedy: Option<Remedy>,
}

impl Finding {
    pub fn blocker(code: &'static str, what: impl Into<String>) -> Finding {
        let (why, fix) = (String::new(), String::new());
        Finding { code, severity: Severity::Blocker, what: what.into(), why, fix, remedy: None }
    }

    pub fn warning(code: &'static str, what: impl Into<String>) -> Finding {
        Finding { severity: Severity::Warning, ..Self::blocker(code, what) }
    }

    pub fn info(code: &'static str, what: impl Into<String>) -> Finding {
        Finding { severity: Severity::Info, ..Self::blocker(code, what) }
    }

    /// What an error says, with its first way out.
    pub fn of(code: &'static str, error: &Error) -> Finding {
        let causes = error.causes().iter().map(|cause| format!(": {cause}")).collect::<String>();
        Finding::blocker(code, format!("{}{causes}", error.message()))
            .fix(error.hints().first().cloned().unwrap_or_default())
    }

    pub fn why(mut self, why: impl Into<String>) -> Finding {
        self.why = why.into();
        self
    }

    pub fn fix(mut self, fix: impl Into<String>) -> Finding {
        self.fix = fix.into();
        self
    }

    pub fn remedy(mut self, remedy: Remedy) -> Finding {
        self.remedy = Some(remedy);
        self
    }
}

/// Something that is as it is: a version, a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    pub topic: &'static str,
    pub what: String,
}

impl Fact {
    pub fn new(topic: &'static str, what: impl Into<String>) -> Fact {
        Fact { topic, what: what.into() }
    }
}

/// A fix that takes nothing away from anybody and can be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// Fetch kind into the cache folder.
    FetchKind,
    /// Have git learn what its remote has; no branch moves.
    GitFetch { repo: PathBuf, remote: String },
    /// Raise a limit of the kernel until the next start of the machine.
    Sysctl(String),
}

impl Remedy {
    pub fn describe(&self) -> String {
        match self {
            Remedy::FetchKind => format!("fetch kind {} into the cache folder", binary::FETCHED),
            Remedy::GitFetch { repo, remote } => format!("run: git -C {} fetch {remote}", repo.display()),
            Remedy::Sysctl(setting) => format!("run: {}sysctl -w {setting}", if is_root() { "" } else { "sudo -n " }),
        }
    }

    /// Does it; says what was done.
    pub async fn apply(&self, fetcher: &Fetcher) -> Result<String> {
        match self {
            Remedy::FetchKind => {
                let kind = binary::ensure(fetcher).await?;
                Ok(format!("kind {} is at {}", kind.version, kind.path.display()))
            }
            Remedy::GitFetch { repo, remote } => {
                let git = Program::new("git").arg("-C").arg(repo).args(["fetch", "--quiet", "--", remote]);
                git.env("GIT_TERMINAL_PROMPT", "0").run().await?;
                Ok(format!("fetched from {remote}"))
            }
            Remedy::Sysctl(setting) => {
                let program = match is_root() {
                    true => Program::new("sysctl"),
                    // Without a password at hand it says so instead of asking for one.
                    false => Program::new("sudo").args(["-n", "sysctl"]),
                };
                program.args(["-w", setting]).run().await?;
                Ok(format!("{setting}, until this machine starts again"))
            }
        }
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
