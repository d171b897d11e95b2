//! Programs that k8tre drives: kind and git; and those that only some commands need.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use semver::Version;

use super::{Check, Context, Fact, Finding, Remedy};
use crate::error::Result;
use crate::ports::process::Program;
use crate::providers::kind::binary;
use crate::text::one_line;

/// The oldest git with the options that k8tre uses.
const GIT: Version = Version::new(2, 31, 0);

/// Programs without which something cannot be done: how they tell their version, and what needs them.
const OPTIONAL: [(&str, &[&str], &str); 3] = [
    ("kubectl", &["version", "--client"], "dev kubeconfig --merge, and your own looks into the cluster"),
    ("helm", &["version", "--short"], "--provider vcluster, and prerequisites that are charts"),
    ("kustomize", &["version"], "dev preview --render"),
];

pub struct Kind;

#[async_trait]
impl Check for Kind {
    fn name(&self) -> &'static str {
        "kind"
    }

    async fn run(&self, cx: &Context) -> Result<Vec<Finding>> {
        Ok(kind(cx).await.into_iter().collect())
    }

    async fn facts(&self, cx: &Context) -> Vec<Fact> {
        let what = match binary::on_path().await {
            Ok(Some(found)) if found.version >= binary::MINIMUM => {
                format!("{} from PATH: {}", found.version, found.path.display())
            }
            _ => match fetched(cx) {
                Some(path) => format!("{} fetched: {}", binary::FETCHED, path.display()),
                None => format!("{} is still to be fetched", binary::FETCHED),
            },
        };
        vec![Fact::new("kind", what)]
    }
}

pub struct Tools;

#[async_trait]
impl Check for Tools {
    fn name(&self) -> &'static str {
        "git and other programs"
    }

    async fn run(&self, _cx: &Context) -> Result<Vec<Finding>> {
        Ok(git().await.into_iter().collect())
    }

    async fn facts(&self, _cx: &Context) -> Vec<Fact> {
        let mut facts = Vec::new();
        if let Ok(path) = which::which("git") {
            facts.push(Fact::new("git", told(&path, &["--version"]).await));
        }
        for (name, args, use_of_it) in OPTIONAL {
            facts.push(match which::which(name) {
                Ok(path) => Fact::new(name, told(&path, args).await),
                Err(_) => Fact::new(name, format!("not on PATH; needed only for {use_of_it}")),
            });
        }
        facts
    }
}

/// The version of a program on PATH, and where it is.
async fn told(path: &Path, args: &[&str]) -> String {
    let said = Program::new(path).args(args).limit(Duration::from_secs(5)).run().await;
    let version = said.map(|output| output.text()).unwrap_or_default();
    let first = version.lines().next().unwrap_or_default();
    let words =
        first.split_whitespace().find(|word| word.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit()));
    format!("{} from PATH: {}", one_line(words.unwrap_or("of an unknown version"), 40), path.display())
}

/// The kind in the cache folder.
fn fetched(cx: &Context) -> Option<std::path::PathBuf> {
    let wanted = binary::wanted(&binary::FETCHED, std::env::consts::OS, std::env::consts::ARCH).ok()?;
    Some(cx.fetcher.path(&wanted)).filter(|path| path.exists())
}

async fn kind(cx: &Context) -> Option<Finding> {
    let problem = match binary::on_path().await {
        Ok(Some(found)) if found.version >= binary::MINIMUM => return None,
        Ok(Some(old)) => format!("kind {} at {} is older than {}", old.version, old.path.display(), binary::MINIMUM),
        Ok(None) => "kind is not on PATH".to_owned(),
        Err(error) => format!("the kind on PATH does not work: {error}"),
    };
    if fetched(cx).is_some() {
        return None;
    }
    let fix = format!("go install sigs.k8s.io/kind@v{}", binary::FETCHED);
    let why = format!("kind {} will be fetched into the cache folder when it is needed", binary::FETCHED);
    Some(match cx.fetcher.is_offline() {
        true => Finding::warning("kind", problem).why("and --offline forbids fetching one").fix(fix),
        false => Finding::info("kind", problem).why(why).fix(fix).remedy(Remedy::FetchKind),
    })
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
