//! Docker: there, new enough, and of the right kind.

use async_trait::async_trait;
use semver::Version;

use super::{Check, Context, Fact, Finding};
use crate::error::Result;
use crate::ports::docker::{Docker, Endpoint, EngineInfo, unknown_provider};

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
                if docker.endpoint().is_podman() {
                    findings.extend(podman(docker, info));
                } else if version(&info.version).is_some_and(|version| version < MINIMUM) {
                    findings.push(match docker.engine_name().await.ok().flatten() {
                        // Its versions count from somewhere else.
                        Some(name) if name.starts_with("Podman") => Finding::blocker(
                            "podman",
                            format!("{name} {} answers at {}", info.version, docker.endpoint()),
                        )
                        .why("kind has to be told to make nodes with Podman, which it calls experimental")
                        .fix("export KIND_EXPERIMENTAL_PROVIDER=podman, or name Docker's socket: export DOCKER_HOST=unix:///var/run/docker.sock"),
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
        if let Some(provider) = unknown_provider() {
            findings.push(
                Finding::warning("kind-provider", format!("KIND_EXPERIMENTAL_PROVIDER={provider} is not followed"))
                    .why("k8tre makes nodes with Docker, or with Podman")
                    .fix("unset KIND_EXPERIMENTAL_PROVIDER"),
            );
        }
        let is_podman = Endpoint::find().is_ok_and(|endpoint| endpoint.is_podman());
        if is_podman && which::which("podman").is_err() {
            findings.push(
                Finding::blocker("podman-program-missing", "the program podman is not on PATH")
                    .why("kind speaks to the engine through it")
                    .fix("sudo apt-get install podman"),
            );
        }
        if !is_podman && which::which("docker").is_err() {
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

/// What is known of kind's nodes in Podman.
fn podman(docker: &Docker, info: &EngineInfo) -> Vec<Finding> {
    let mut findings = vec![
        Finding::info("podman", format!("nodes are made with Podman {} at {}", info.version, docker.endpoint()))
            .why("kind calls that experimental; k8tre does not pause such environments, and prepares no node image")
            .fix("with Docker: unset KIND_EXPERIMENTAL_PROVIDER"),
    ];
    if info.rootless
        && info.cgroup_version == Some(2)
        && !info.cgroup_driver.is_empty()
        && info.cgroup_driver != "systemd"
    {
        findings.push(
            Finding::blocker(
                "podman-cgroups",
                format!("rootless Podman with the cgroup manager {}", info.cgroup_driver),
            )
            .why("the nodes' systemd gets no controllers")
            .fix("set cgroup_manager = \"systemd\" below [engine] in ~/.config/containers/containers.conf"),
        );
    }
    findings
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
