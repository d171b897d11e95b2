//! Programs that k8tre drives: kind and git.

use std::time::Duration;

use async_trait::async_trait;
use semver::Version;

use super::{Check, Context, Finding};
use crate::error::Result;
use crate::ports::process::Program;
use crate::providers::kind::binary;

/// The oldest git with the options that k8tre uses.
const GIT: Version = Version::new(2, 30, 0);

pub struct Tools;

#[async_trait]
impl Check for Tools {
    fn name(&self) -> &'static str {
        "kind and git"
    }

    async fn run(&self, cx: &Context) -> Result<Vec<Finding>> {
        Ok(kind(cx.offline).await.into_iter().chain(git().await).collect())
    }
}

async fn kind(offline: bool) -> Option<Finding> {
    let problem = match binary::on_path().await {
        Ok(Some(found)) if found.version >= binary::MINIMUM => return None,
        Ok(Some(old)) => format!("kind {} at {} is older than {}", old.version, old.path.display(), binary::MINIMUM),
        Ok(None) => "kind is not on PATH".to_owned(),
        Err(error) => format!("the kind on PATH does not work: {error}"),
    };
    let fix = format!("go install sigs.k8s.io/kind@v{}", binary::FETCHED);
    // Whether the cache has one already is found out, with a better message, by the step that needs it.
    let finding = if offline { Finding::warning("kind", problem) } else { Finding::info("kind", problem) };
    Some(finding.why(format!("kind {} is used from the cache folder, or fetched into it", binary::FETCHED)).fix(fix))
}

async fn git() -> Option<Finding> {
    let fix = if cfg!(target_os = "macos") { "xcode-select --install" } else { "sudo apt-get install git" };
    let why = "branches are fetched and pushed with it, so that your agents and credentials work";
    let said = Program::new("git").arg("--version").limit(Duration::from_secs(5)).run().await;
    let problem = match said.map(|output| output.text()) {
        Err(error) => error.to_string(),
        Ok(text) => match version_in(&text) {
            Some(version) if version >= GIT => return None,
            Some(version) => format!("git {version} is older than {GIT}"),
            None => format!("git says of its version: {}", crate::text::one_line(&text, 60)),
        },
    };
    Some(Finding::blocker("git", problem).why(why).fix(fix))
}

/// `git version 2.39.5 (Apple Git-154)`, `git version 2.47.windows.1`.
fn version_in(text: &str) -> Option<Version> {
    let word = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut numbers = word.split('.').map_while(|part| part.parse().ok());
    Some(Version::new(numbers.next()?, numbers.next()?, numbers.next().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_versions_are_read_in_every_spelling() {
        assert_eq!(version_in("git version 2.39.5 (Apple Git-154)"), Some(Version::new(2, 39, 5)));
        assert_eq!(version_in("git version 2.47.windows.1"), Some(Version::new(2, 47, 0)));
        assert_eq!(version_in("nonsense"), None);
    }
}
