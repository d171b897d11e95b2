//! Which Docker: the same choice as the `docker` program makes, so that k8tre, kind and the person
//! at the keyboard mean one engine.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result, ResultExt};
use crate::ports::environment;

const PODMAN_OF_ROOT: &str = "/run/podman/podman.sock";
const DEFAULT_SOCKET: &str = "unix:///var/run/docker.sock";

/// Where an engine listens, and what said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub host: String,
    pub source: Source,
    /// Folder with ca.pem, cert.pem and key.pem.
    pub certificates: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Variable,
    Context(String),
    Default,
    /// A Podman, which kind is told to use by `KIND_EXPERIMENTAL_PROVIDER`.
    Podman,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Variable => f.write_str("from DOCKER_HOST"),
            Source::Context(name) => write!(f, "from the Docker context {name}"),
            Source::Default => f.write_str("the default"),
            Source::Podman => f.write_str("from KIND_EXPERIMENTAL_PROVIDER=podman"),
        }
    }
}

#[derive(Deserialize)]
struct Config {
    #[serde(default, rename = "currentContext")]
    current_context: Option<String>,
}

#[derive(Deserialize)]
struct Context {
    #[serde(rename = "Endpoints")]
    endpoints: std::collections::BTreeMap<String, ContextEndpoint>,
}

#[derive(Deserialize)]
struct ContextEndpoint {
    #[serde(default, rename = "Host")]
    host: String,
}

/// What decides the endpoint; apart from the process, so that tests can say what it is.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    pub docker_host: Option<String>,
    pub docker_context: Option<String>,
    pub tls_verify: bool,
    pub cert_path: Option<PathBuf>,
    /// `~/.docker`, or `DOCKER_CONFIG`.
    pub config_dir: Option<PathBuf>,
    /// Where Podman's socket is looked for, in this order; empty if kind is not told to use it.
    pub podman: Vec<String>,
}

/// The variable by which kind is told what runs its nodes.
const PROVIDER: &str = "KIND_EXPERIMENTAL_PROVIDER";

/// What kind is told to use that k8tre does not know.
pub fn unknown_provider() -> Option<String> {
    environment::var(PROVIDER).filter(|provider| provider != "docker" && provider != "podman")
}

/// Podman's socket: the one that is named, the user's own, the system's.
fn podman() -> Vec<String> {
    if environment::var(PROVIDER).as_deref() != Some("podman") {
        return Vec::new();
    }
    let own = environment::var("XDG_RUNTIME_DIR").map(|folder| format!("{folder}/podman/podman.sock"));
    let user = rustix::process::geteuid();
    let own = own.or_else(|| (!user.is_root()).then(|| format!("/run/user/{}/podman/podman.sock", user.as_raw())));
    let system = user.is_root().then(|| PODMAN_OF_ROOT.to_owned());
    // The program `podman` works as its user: the system's Podman is another one's.
    environment::var("CONTAINER_HOST").into_iter().chain(own).chain(system).collect()
}

impl Surroundings {
    pub fn of_this_process() -> Surroundings {
        let home = environment::var_os("HOME").map(PathBuf::from);
        Surroundings {
            docker_host: environment::var("DOCKER_HOST"),
            docker_context: environment::var("DOCKER_CONTEXT"),
            tls_verify: environment::var("DOCKER_TLS_VERIFY").is_some(),
            cert_path: environment::var_os("DOCKER_CERT_PATH").map(PathBuf::from),
            config_dir: environment::var_os("DOCKER_CONFIG")
                .map(PathBuf::from)
                .or_else(|| home.map(|home| home.join(".docker"))),
            podman: podman(),
        }
    }
}

impl Endpoint {
    /// The endpoint of this process: `DOCKER_HOST`, else `DOCKER_CONTEXT`, else the current context
    /// of the configuration file, else the default socket.
    pub fn find() -> Result<Endpoint> {
        Self::from_surroundings(&Surroundings::of_this_process())
    }

    pub fn from_surroundings(around: &Surroundings) -> Result<Endpoint> {
        if !around.podman.is_empty() {
            let is_there = |place: &&String| place.contains("://") || Path::new(place.as_str()).exists();
            let found = around.docker_host.as_ref().or_else(|| around.podman.iter().find(is_there));
            let host = found.or(around.podman.first()).map(|place| normal(place)).unwrap_or_default();
            return Ok(Endpoint { host, source: Source::Podman, certificates: None });
        }
        if let Some(host) = &around.docker_host {
            let certificates = (around.tls_verify || around.cert_path.is_some())
                .then(|| around.cert_path.clone().or_else(|| around.config_dir.clone()))
                .flatten()
                .filter(|_| host.starts_with("tcp://") || host.starts_with("https://"));
            return Ok(Endpoint { host: normal(host), source: Source::Variable, certificates });
        }
        let context = match &around.docker_context {
            Some(name) => Some(name.clone()),
            None => around.config_dir.as_deref().map(current_context).transpose()?.flatten(),
        };
        match (context, &around.config_dir) {
            (Some(name), Some(dir)) if name != "default" => from_context(dir, name),
            _ => Ok(Endpoint { host: DEFAULT_SOCKET.into(), source: Source::Default, certificates: None }),
        }
    }

    /// The socket file, where the engine listens on one.
    pub fn socket(&self) -> Option<&Path> {
        self.host.strip_prefix("unix://").map(Path::new)
    }

    /// Whether nodes are to be made by Podman.
    pub fn is_podman(&self) -> bool {
        self.source == Source::Podman
    }

    /// The program that people, and kind, speak to this engine with.
    pub fn program(&self) -> &'static str {
        if self.is_podman() { "podman" } else { "docker" }
    }

    /// What a child needs in its environment to use this very engine; `None` removes a variable.
    pub fn child_env(&self) -> Vec<(&'static str, Option<String>)> {
        let certificates = self.certificates.as_ref().map(|dir| dir.display().to_string());
        vec![
            ("DOCKER_HOST", Some(self.host.clone())),
            ("DOCKER_CONTEXT", None),
            ("DOCKER_TLS_VERIFY", certificates.as_ref().map(|_| "1".to_owned())),
            ("DOCKER_CERT_PATH", certificates),
        ]
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)
    }
}

/// `docker` takes a bare path and `host:port` too.
fn normal(host: &str) -> String {
    match host {
        path if path.starts_with('/') => format!("unix://{path}"),
        url if url.contains("://") => url.to_owned(),
        address => format!("tcp://{address}"),
    }
}

fn current_context(dir: &Path) -> Result<Option<String>> {
    let path = dir.join("config.json");
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let config: Config =
        serde_json::from_slice(&text).with_context(|| format!("{} is not valid JSON", path.display()))?;
    Ok(config.current_context.filter(|name| !name.is_empty()))
}

fn from_context(dir: &Path, name: String) -> Result<Endpoint> {
    let id: String = Sha256::digest(name.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let path = dir.join("contexts/meta").join(&id).join("meta.json");
    let read = || -> Result<String> {
        let context: Context = serde_json::from_slice(&std::fs::read(&path)?)?;
        let host = context.endpoints.get("docker").map(|endpoint| endpoint.host.clone()).unwrap_or_default();
        if host.is_empty() { Err(Error::failed("it has no Docker endpoint")) } else { Ok(host) }
    };
    let host = read()
        .with_context(|| format!("the Docker context \"{name}\" cannot be used ({})", path.display()))
        .hint("docker context ls")
        .hint("docker context use default")?;
    let certificates = dir.join("contexts/tls").join(&id).join("docker");
    let certificates = certificates.join("ca.pem").exists().then_some(certificates);
    Ok(Endpoint { host: normal(&host), source: Source::Context(name), certificates })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config_dir(current: &str, contexts: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config.json"), format!("{{\"currentContext\":\"{current}\"}}")).unwrap();
        for (name, host) in contexts {
            let id: String = Sha256::digest(name.as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
            let meta = dir.path().join("contexts/meta").join(id);
            std::fs::create_dir_all(&meta).unwrap();
            let json = serde_json::json!({"Name": name, "Metadata": {}, "Endpoints": {"docker": {"Host": host, "SkipTLSVerify": false}}});
            std::fs::write(meta.join("meta.json"), json.to_string()).unwrap();
        }
        dir
    }

    fn host(around: Surroundings) -> String {
        Endpoint::from_surroundings(&around).unwrap().host
    }

    #[test]
    fn the_order_is_that_of_the_docker_program() {
        let dir = config_dir("colima", &[("colima", "unix:///colima.sock"), ("lab", "tcp://10.0.0.1:2375")]);
        let config_dir = Some(dir.path().to_owned());
        let all = Surroundings {
            docker_host: Some("unix:///own.sock".into()),
            docker_context: Some("lab".into()),
            config_dir: config_dir.clone(),
            ..Default::default()
        };
        assert_eq!(host(all.clone()), "unix:///own.sock");
        assert_eq!(host(Surroundings { docker_host: None, ..all.clone() }), "tcp://10.0.0.1:2375");
        assert_eq!(host(Surroundings { config_dir, ..Default::default() }), "unix:///colima.sock");
        let default = Surroundings { docker_context: Some("default".into()), docker_host: None, ..all };
        assert_eq!(host(default), DEFAULT_SOCKET);
        assert_eq!(host(Surroundings::default()), DEFAULT_SOCKET);
    }

    #[test]
    fn podman_is_asked_where_kind_is_told_to_use_it() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("podman.sock").display().to_string();
        let podman = vec![own.clone(), "/run/podman/podman.sock".to_owned()];
        let around = Surroundings { docker_context: Some("lab".into()), podman: podman.clone(), ..Default::default() };
        // Where none is there yet, the first is named, which is the user's to start.
        assert_eq!(host(around.clone()), format!("unix://{own}"));
        std::fs::write(&own, "").unwrap();
        let found = Endpoint::from_surroundings(&around).unwrap();
        assert_eq!((found.host.as_str(), found.program()), (format!("unix://{own}").as_str(), "podman"));
        let named = Surroundings { docker_host: Some("unix:///own.sock".into()), ..around };
        assert_eq!(host(named), "unix:///own.sock");
    }

    #[test]
    fn a_context_that_is_gone_is_named() {
        let dir = config_dir("gone", &[]);
        let around = Surroundings { config_dir: Some(dir.path().to_owned()), ..Default::default() };
        let error = Endpoint::from_surroundings(&around).unwrap_err();
        assert!(error.to_string().contains("\"gone\""), "{error}");
        assert!(error.hints().iter().any(|hint| hint == "docker context ls"));
    }

    #[test]
    fn children_get_this_endpoint_and_no_other_context() {
        let around = Surroundings {
            docker_host: Some("tcp://10.0.0.1:2376".into()),
            tls_verify: true,
            cert_path: Some("/certs".into()),
            ..Default::default()
        };
        let env = Endpoint::from_surroundings(&around).unwrap().child_env();
        assert!(env.contains(&("DOCKER_HOST", Some("tcp://10.0.0.1:2376".into()))));
        assert!(env.contains(&("DOCKER_CONTEXT", None)));
        assert!(env.contains(&("DOCKER_CERT_PATH", Some("/certs".into()))));
    }

    #[test]
    fn bare_paths_and_addresses_are_understood() {
        assert_eq!(normal("/run/docker.sock"), "unix:///run/docker.sock");
        assert_eq!(normal("localhost:2375"), "tcp://localhost:2375");
    }
}
