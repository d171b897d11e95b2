//! Docker: there, new enough, and of the right kind.

use async_trait::async_trait;
use semver::Version;

use super::{Check, Context, Fact, Finding};
use crate::error::Result;

/// kind needs private cgroup namespaces, which came with this engine.
const MINIMUM: Version = Version::new(20, 10, 0);

pub struct Engine;

#[async_trait]
impl Check for Engine {
    fn name(&self) -> &'static str {
        "Docker"
    }

    async fn run(&self, cx: &Context) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        match &cx.docker {
            Err(error) => findings.push(
                Finding::blocker("docker-unreachable", error.to_string())
                    .why("the cluster's nodes are containers")
                    .fix(error.hints().first().cloned().unwrap_or_default()),
            ),
            Ok((docker, info)) => {
                if info.os_type == "windows" {
                    findings.push(
                        Finding::blocker(
                            "docker-windows-containers",
                            format!("Docker at {} runs Windows containers", docker.endpoint()),
                        )
                        .why("Kubernetes nodes are Linux containers")
                        .fix("switch Docker Desktop to Linux containers"),
                    );
                }
                if version(&info.version).is_some_and(|version| version < MINIMUM) {
                    findings.push(match docker.engine_name().await.ok().flatten() {
                        // Its versions count from somewhere else.
                        Some(name) if name.starts_with("Podman") => Finding::blocker(
                            "podman",
                            format!("{name} {} answers at {}", info.version, docker.endpoint()),
                        )
                        .why("k8tre makes its nodes with Docker")
                        .fix("name Docker's socket: export DOCKER_HOST=unix:///var/run/docker.sock"),
                        _ => Finding::blocker(
                            "docker-too-old",
                            format!("Docker Engine {} at {} is older than {MINIMUM}", info.version, docker.endpoint()),
                        )
                        .why("kind cannot make nodes with it")
                        .fix("update Docker: https://docs.docker.com/engine/install/"),
                    });
                }
            }
        }
        if which::which("docker").is_err() {
            findings.push(
                Finding::blocker("docker-program-missing", "the program docker is not on PATH")
                    .why("kind speaks to the engine through it")
                    .fix(if cfg!(target_os = "macos") {
                        "brew install docker"
                    } else {
                        "sudo apt-get install docker-cli || sudo apt-get install docker.io"
                    }),
            );
        }
        Ok(findings)
    }

    async fn facts(&self, cx: &Context) -> Vec<Fact> {
        let Ok((docker, info)) = &cx.docker else { return Vec::new() };
        let cgroup = info.cgroup_version.map_or_else(String::new, |version| format!(", cgroup v{version}"));
        let rootless = if info.rootless { ", rootless" } else { "" };
        let what = format!("{} at {} ({}{cgroup}{rootless})", info.version, docker.endpoint(), info.operating_system);
        vec![Fact::new("Docker", what)]
    }
}

/// `28.1.1+1`, `20.10.24-ce`, `24.0` are all in use.
fn version(text: &str) -> Option<Version> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    Some(Version::new(numbers.next()?, numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engine_versions_are_read_in_every_spelling() {
        assert_eq!(version("28.1.1+1"), Some(Version::new(28, 1, 1)));
        assert!(version("19.03.15").unwrap() < MINIMUM);
        assert!(version("24.0").unwrap() > MINIMUM);
    }
}
