//! Docker, through its API. Every call is bounded, and every error names the endpoint.

mod archive;
mod build;
mod containers;
mod endpoint;
mod exec;
mod images;
mod networks;
mod reference;

use std::time::Duration;

use bollard::errors::Error as ApiError;
use bollard::{API_DEFAULT_VERSION, ClientVersion};

use crate::error::{Error, Result};

pub use build::LabelledImage;
pub use containers::{Container, ContainerState, HostPort, Mount};
pub use endpoint::{Endpoint, Source, Surroundings, unknown_provider};
pub use exec::ExecOutput;
pub use images::Held;
pub use networks::Network;
pub use reference::{full_reference, is_latest, name_of, registry_of};

/// A question that Docker answers from memory.
const ANSWER: Duration = Duration::from_secs(10);
/// Starting, stopping and removing a container with its volumes.
const ACTION: Duration = Duration::from_secs(60);

/// An engine that answered.
#[derive(Clone)]
pub struct Docker {
    api: bollard::Docker,
    endpoint: Endpoint,
}

/// What the engine says of itself and its host.
#[derive(Debug, Clone, Default)]
pub struct EngineInfo {
    pub version: String,
    pub operating_system: String,
    pub os_type: String,
    pub architecture: String,
    pub kernel: String,
    pub cgroup_version: Option<u8>,
    pub cgroup_driver: String,
    pub rootless: bool,
    pub memory: Option<u64>,
    pub cpus: Option<u64>,
    pub root_dir: String,
    pub storage_driver: String,
    /// What time it is there.
    pub time: Option<jiff::Timestamp>,
}

impl Docker {
    /// The engine of this process's environment.
    pub async fn open() -> Result<Docker> {
        Self::connect(Endpoint::find()?).await
    }

    /// Connects and agrees on an API version, so that the first failure is a clear one.
    pub async fn connect(endpoint: Endpoint) -> Result<Docker> {
        let docker = Docker { api: client(&endpoint, API_DEFAULT_VERSION)?, endpoint };
        // `/version`, by which bollard would agree on one, has Docker start containerd and runc to ask them for theirs,
        // which takes a third of a second. A ping is answered at once, also by an engine that is older than we are.
        let pinged = docker.limited(ANSWER, "answer", docker.api.ping()).await?;
        match pinged {
            Ok(_) => Ok(docker),
            Err(ApiError::DockerResponseServerError { status_code: 400, message }) if newest(&message).is_some() => {
                let version = newest(&message).expect("just seen");
                Ok(Docker { api: client(&docker.endpoint, &version)?, ..docker })
            }
            Err(error) => Err(explained(&docker.endpoint, "answer", error)),
        }
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// See [`Endpoint::child_env`].
    pub fn child_env(&self) -> Vec<(&'static str, Option<String>)> {
        self.endpoint.child_env()
    }

    pub async fn info(&self) -> Result<EngineInfo> {
        let info = self.ask("describe itself", self.api.info()).await?;
        let number = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok()).filter(|value| *value > 0);
        Ok(EngineInfo {
            version: info.server_version.unwrap_or_default(),
            operating_system: info.operating_system.unwrap_or_default(),
            os_type: info.os_type.unwrap_or_default(),
            architecture: info.architecture.unwrap_or_default(),
            kernel: info.kernel_version.unwrap_or_default(),
            cgroup_version: info.cgroup_version.and_then(|version| version.to_string().parse().ok()),
            cgroup_driver: info.cgroup_driver.map(|driver| driver.to_string()).unwrap_or_default(),
            rootless: info.security_options.unwrap_or_default().iter().any(|option| option.contains("name=rootless")),
            memory: number(info.mem_total),
            cpus: number(info.ncpu),
            root_dir: info.docker_root_dir.unwrap_or_default(),
            storage_driver: info.driver.unwrap_or_default(),
            time: info.system_time.and_then(|time| time.parse().ok()),
        })
    }

    /// What its images run on, such as `linux/amd64`.
    pub async fn platform(&self) -> Result<String> {
        let info = self.info().await?;
        let architecture = match info.architecture.as_str() {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        Ok(format!("{}/{architecture}", info.os_type))
    }

    /// What the engine calls itself, such as `Podman Engine`; slow, as every part of it is asked.
    pub async fn engine_name(&self) -> Result<Option<String>> {
        let version = self.ask("tell its version", self.api.version()).await?;
        let mut names = version.components.unwrap_or_default().into_iter().map(|component| component.name);
        Ok(names.find(|name| name.ends_with("Engine")).or_else(|| version.platform.map(|platform| platform.name)))
    }

    /// A call that Docker answers at once.
    async fn ask<T>(&self, what: &str, call: impl Future<Output = Result<T, ApiError>>) -> Result<T> {
        self.bounded(ANSWER, what, call).await
    }

    async fn bounded<T>(
        &self,
        limit: Duration,
        what: &str,
        call: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T> {
        self.limited(limit, what, call).await?.map_err(|error| explained(&self.endpoint, what, error))
    }

    async fn limited<T>(&self, limit: Duration, what: &str, call: impl Future<Output = T>) -> Result<T> {
        tokio::time::timeout(limit, call).await.map_err(|_| {
            Error::failed(format!("Docker at {} did not {what} within {} s", self.endpoint, limit.as_secs()))
                .hint("docker info")
        })
    }
}

/// The newest API version of an engine that refuses ours, in its own words.
fn newest(refusal: &str) -> Option<ClientVersion> {
    let (_, version) = refusal.split_once("Maximum supported API version is ")?;
    let (major, minor) = version.trim().split_once('.')?;
    let digits: String = minor.chars().take_while(char::is_ascii_digit).collect();
    Some(ClientVersion { major_version: major.parse().ok()?, minor_version: digits.parse().ok()? })
}

/// `None` when the thing is not there; other errors stay errors.
fn present<T>(result: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(ApiError::DockerResponseServerError { status_code: 404, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn client(endpoint: &Endpoint, version: &ClientVersion) -> Result<bollard::Docker> {
    // Streams of whole images pass through this client: each call has its own bound instead.
    let limit = 3600;
    let host = endpoint.host.as_str();
    let connected = match (host.split("://").next(), &endpoint.certificates) {
        (Some("unix"), _) => bollard::Docker::connect_with_unix(host, limit, version),
        (Some("tcp" | "https"), Some(dir)) => bollard::Docker::connect_with_ssl(
            host,
            &dir.join("key.pem"),
            &dir.join("cert.pem"),
            &dir.join("ca.pem"),
            limit,
            version,
        ),
        (Some("tcp" | "http"), _) => bollard::Docker::connect_with_http(host, limit, version),
        (Some("ssh"), _) => {
            return Err(Error::failed(format!(
                "Docker at {host} ({}) is reached through SSH, which k8tre does not do by itself",
                endpoint.source
            ))
            .hint(format!("ssh -nNT -L \"$HOME/k8tre-docker.sock\":/var/run/docker.sock {}", ssh_target(host)))
            .hint("then: export DOCKER_HOST=\"unix://$HOME/k8tre-docker.sock\""));
        }
        _ => {
            return Err(Error::failed(format!(
                "Docker at {host} ({}) has an unknown kind of address",
                endpoint.source
            ))
            .hint("DOCKER_HOST is unix:///path/to/docker.sock or tcp://host:port"));
        }
    };
    connected.map_err(|error| explained(endpoint, "answer", error))
}

fn ssh_target(host: &str) -> &str {
    host.trim_start_matches("ssh://").split('/').next().unwrap_or_default()
}

fn explained(endpoint: &Endpoint, what: &str, error: ApiError) -> Error {
    match error {
        ApiError::DockerResponseServerError { status_code, message } => {
            Error::failed(format!("Docker at {endpoint} could not {what}: {} (HTTP {status_code})", message.trim()))
        }
        ApiError::SocketNotFoundError(path) => silent(endpoint, format!("there is no socket {path}")),
        // hyper's own words for a refused connection say nothing; the last cause does.
        error => {
            let chain = Error::from(error);
            let cause = chain.causes().last().map_or_else(|| chain.message().to_owned(), Clone::clone);
            silent(endpoint, cause)
        }
    }
}

/// The engine cannot be reached: what to start depends on whose socket it is.
fn silent(endpoint: &Endpoint, cause: String) -> Error {
    let denied = cause.to_lowercase().contains("permission denied");
    let error = Error::failed(format!("Docker at {endpoint} ({}) does not answer: {cause}", endpoint.source));
    match &endpoint.host {
        _ if denied => error.hint("sudo usermod -aG docker \"$USER\""),
        host if host.contains("colima") => error.hint("colima start"),
        host if host.contains("orbstack") => error.hint("orb start"),
        host if host.contains("rancher") || host.contains(".rd/") => error.hint("open Rancher Desktop"),
        host if host.contains("podman") => error.hint("systemctl --user start podman.socket"),
        host if host.contains("/.docker/") || cfg!(target_os = "macos") => {
            error.hint("open Docker Desktop, or: colima start").hint("docker context ls")
        }
        host if host.contains("/run/user/") => error.hint("systemctl --user start docker"),
        host if host.starts_with("tcp://") => error.hint("check the address in DOCKER_HOST or: docker context ls"),
        _ => error.hint("sudo systemctl start docker").hint("docker context ls"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(host: &str) -> Endpoint {
        Endpoint { host: host.into(), source: Source::Variable, certificates: None }
    }

    #[tokio::test]
    async fn an_engine_that_is_not_there_is_named_with_what_to_start() {
        let error = Docker::connect(endpoint("unix:///nowhere/docker.sock")).await.err().unwrap();
        assert!(error.to_string().contains("Docker at unix:///nowhere/docker.sock"), "{error}");
        assert!(!error.hints().is_empty());
        let error = Docker::connect(endpoint("tcp://127.0.0.1:1")).await.err().unwrap();
        assert!(error.to_string().contains("refused"), "{error}");
    }

    #[test]
    fn the_newest_version_of_an_older_engine_is_read() {
        let newest = |text: &str| newest(text).map(|version| version.to_string());
        let docker = "client version 1.53 is too new. Maximum supported API version is 1.41";
        assert_eq!(newest(docker).as_deref(), Some("1.41"));
        assert_eq!(newest(&format!("{docker}.\n")).as_deref(), Some("1.41"));
        assert_eq!(newest("client version 1.20 is too old. Minimum supported API version is 1.44"), None);
    }

    #[tokio::test]
    async fn ssh_is_refused_with_a_way_that_works() {
        let error = Docker::connect(endpoint("ssh://me@box")).await.err().unwrap();
        assert!(error.hints().iter().any(|hint| hint.starts_with("ssh -nNT") && hint.ends_with("me@box")), "{error:?}");
    }
}
