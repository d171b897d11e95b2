//! Files from the network, pinned by checksum and kept in the cache folder.
//!
//! Nothing that was not verified is ever found under its final name: a download goes to a temporary
//! file beside it, is checked there, and is then renamed.

mod authorities;
mod cache;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use ureq::tls::TlsConfig;
use ureq::{Agent, Proxy};

use crate::error::{Error, Result, ResultExt};
use crate::ports::dirs;
use crate::ports::machine::proxy_variables;
use crate::redact::without_user;
use crate::text::hex;

pub use authorities::{SYSTEM, Trust, certificates, each, system};
pub use cache::Brought;

const CHECKSUM_LIMIT: u64 = 64 << 10;

/// How it is known that a file is the right one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checksum {
    /// SHA-256 in hexadecimal, known beforehand.
    Known(String),
    /// Address of the publisher's own checksum file. What it says the first time is recorded in the
    /// cache folder, and from then on a different answer is an error.
    FromPublisher(String),
    /// Nobody publishes one: what comes first is recorded, and from then on anything else is an error.
    FirstUse,
}

/// One file to have.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub url: String,
    pub sha256: Checksum,
    /// Name in the cache folder.
    pub name: String,
    pub limit: u64,
    pub executable: bool,
}

/// Fetches into one cache folder.
#[derive(Debug, Clone)]
pub struct Fetcher {
    cache: PathBuf,
    offline: bool,
    trust: Option<Trust>,
    limit: Duration,
    proxies: BTreeMap<&'static str, String>,
}

impl Fetcher {
    pub fn new(cache: impl Into<PathBuf>) -> Fetcher {
        Fetcher {
            cache: cache.into(),
            offline: false,
            trust: None,
            limit: Duration::from_secs(300),
            proxies: proxy_variables(),
        }
    }

    /// Refuses all fetching, and says where to put what is missing.
    pub fn offline(mut self, offline: bool) -> Fetcher {
        self.offline = offline;
        self
    }

    /// A PEM file with certificate authorities to trust besides the system's.
    pub fn ca_bundle(self, path: Option<PathBuf>) -> Fetcher {
        self.trust(path.map(Trust::File))
    }

    /// Authorities to trust besides the system's.
    pub fn trust(mut self, trust: Option<Trust>) -> Fetcher {
        self.trust = trust;
        self
    }

    pub fn time_limit(mut self, limit: Duration) -> Fetcher {
        self.limit = limit;
        self
    }

    /// In place of the proxy variables of the environment.
    pub fn proxies(mut self, proxies: BTreeMap<&'static str, String>) -> Fetcher {
        self.proxies = proxies;
        self
    }

    /// Where the file is or will be.
    pub fn path(&self, wanted: &Wanted) -> PathBuf {
        self.cache.join(&wanted.name)
    }

    /// The file, from the cache if it is there and right, else fetched and verified.
    pub async fn get(&self, wanted: &Wanted) -> Result<PathBuf> {
        let (fetcher, wanted) = (self.clone(), wanted.clone());
        tokio::task::spawn_blocking(move || fetcher.get_blocking(&wanted)).await?
    }

    pub fn is_offline(&self) -> bool {
        self.offline
    }

    /// What a server takes the time to be, and when it was asked; none if it does not answer soon.
    pub async fn date(&self, url: &str) -> Option<jiff::Timestamp> {
        let (fetcher, url) = (self.clone().time_limit(Duration::from_secs(5)), url.to_owned());
        tokio::task::spawn_blocking(move || {
            let asked = fetcher.agent().ok()?.head(&url).config().http_status_as_error(false).build().call().ok()?;
            let date = asked.headers().get("date")?.to_str().ok()?;
            jiff::fmt::rfc2822::parse(date).ok().map(|date| date.timestamp())
        })
        .await
        .ok()?
    }

    /// How many certificates the file of authorities has; an error says what is wrong with it.
    pub fn authorities_in(path: &Path) -> Result<usize> {
        authorities::read(path).map(|all| all.len())
    }

    fn get_blocking(&self, wanted: &Wanted) -> Result<PathBuf> {
        let path = self.path(wanted);
        let known = self.known_checksum(wanted)?;
        if let (Some(expected), true) = (&known, path.exists()) {
            let actual = sha256_of(&path)?;
            if actual == *expected {
                return Ok(path);
            }
            tracing::warn!(path = %path.display(), expected, actual, "the cached file has changed; it is fetched again");
        }
        if self.offline {
            return Err(self.refusal(wanted, &path, known.as_deref()));
        }
        let agent = self.agent()?;
        let expected = match (known, &wanted.sha256) {
            (Some(expected), _) => Some(expected),
            (None, Checksum::FirstUse) => None,
            (None, _) => Some(self.publishers_checksum(&agent, wanted)?),
        };
        self.download(&agent, wanted, expected.as_deref(), &path)
            .with_context(|| format!("cannot fetch {}", wanted.url))?;
        Ok(path)
    }

    fn refusal(&self, wanted: &Wanted, path: &Path, known: Option<&str>) -> Error {
        let error = Error::failed(format!("{} is not here, and --offline forbids fetching it", wanted.name))
            .hint(format!("put {} at {}", wanted.url, path.display()));
        match known {
            Some(sha256) => error.hint(format!("its SHA-256 is {sha256}")),
            None => error.hint(format!("and its SHA-256, in hexadecimal, at {}", self.record(wanted).display())),
        }
    }

    fn record(&self, wanted: &Wanted) -> PathBuf {
        self.cache.join(format!("{}.sha256", wanted.name))
    }

    fn known_checksum(&self, wanted: &Wanted) -> Result<Option<String>> {
        match &wanted.sha256 {
            Checksum::Known(hex) => Ok(Some(hex.to_lowercase())),
            Checksum::FromPublisher(_) | Checksum::FirstUse => {
                let record = self.record(wanted);
                match fs::read_to_string(&record) {
                    Ok(text) => Ok(Some(first_sha256(&text).with_context(|| format!("{}", record.display()))?)),
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(error).with_context(|| format!("cannot read {}", record.display())),
                }
            }
        }
    }

    fn publishers_checksum(&self, agent: &Agent, wanted: &Wanted) -> Result<String> {
        let Checksum::FromPublisher(url) = &wanted.sha256 else {
            return Err(Error::failed(format!("there is no checksum for {}", wanted.name)));
        };
        let fetch = || -> Result<String> {
            let mut text = String::new();
            let mut response = agent.get(url).call()?;
            response.body_mut().with_config().limit(CHECKSUM_LIMIT).reader().read_to_string(&mut text)?;
            first_sha256(&text)
        };
        let sha256 = fetch().with_context(|| format!("cannot learn the checksum of {} from {url}", wanted.name))?;
        dirs::write_private(&self.record(wanted), format!("{sha256}\n").as_bytes())?;
        Ok(sha256)
    }

    fn download(&self, agent: &Agent, wanted: &Wanted, expected: Option<&str>, path: &Path) -> Result<()> {
        dirs::create_private_dir(&self.cache)?;
        let mut file = tempfile::Builder::new().prefix(".k8tre-").tempfile_in(&self.cache)?;
        let mut response = agent.get(&wanted.url).call().map_err(|error| self.explained(error))?;
        // One byte more than allowed, so that a file that is too long is not mistaken for a whole one.
        let mut body = response.body_mut().with_config().limit(wanted.limit + 1).reader();
        let (actual, total) = copy_hashed(&mut body, &mut file)?;
        if total > wanted.limit {
            return Err(Error::failed(format!("it is longer than {} MiB", wanted.limit >> 20)));
        }
        if let Some(expected) = expected
            && actual != expected
        {
            let error =
                Error::failed(format!("its SHA-256 is {actual}, but it should be {expected}; nothing was kept"))
                    .hint("a proxy may have answered in place of the publisher: open the address in a browser");
            return Err(match wanted.sha256 {
                Checksum::Known(_) => error,
                Checksum::FromPublisher(_) | Checksum::FirstUse => {
                    error.hint(format!("if the publisher did change it: rm {}", self.record(wanted).display()))
                }
            });
        }
        set_mode(file.path(), if wanted.executable { 0o755 } else { 0o644 })?;
        file.as_file().sync_all()?;
        if expected.is_none() {
            dirs::write_private(&self.record(wanted), format!("{actual}\n").as_bytes())?;
        }
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    fn explained(&self, error: ureq::Error) -> Error {
        let error = Error::from(error);
        match proxy_of(&self.proxies) {
            Some((name, value)) => error.hint(format!("{name} is {}: is that proxy alive?", without_user(value))),
            None => error.hint("behind a proxy: export HTTPS_PROXY=http://proxy:port"),
        }
    }

    fn agent(&self) -> Result<Agent> {
        let tls = match &self.trust {
            None => TlsConfig::builder().build(),
            Some(trust) => TlsConfig::builder().root_certs(trust.roots()?).build(),
        };
        let config = Agent::config_builder()
            .tls_config(tls)
            .proxy(proxy(&self.proxies))
            .timeout_connect(Some(Duration::from_secs(15)))
            .timeout_recv_response(Some(Duration::from_secs(30)))
            .timeout_global(Some(self.limit))
            .user_agent(concat!("k8tre/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(config.new_agent())
    }
}

fn proxy_of<'a>(variables: &'a BTreeMap<&'static str, String>) -> Option<(&'static str, &'a str)> {
    let names = ["HTTPS_PROXY", "ALL_PROXY", "HTTP_PROXY"];
    names.into_iter().find_map(|name| Some((name, variables.get(name)?.as_str())))
}

/// The proxy of the environment. Loopback never goes through it, whatever `NO_PROXY` says: nothing
/// on this machine is reached through another one.
fn proxy(variables: &BTreeMap<&'static str, String>) -> Option<Proxy> {
    let parsed = Proxy::new(proxy_of(variables)?.1).ok()?;
    let mut builder = Proxy::builder(parsed.protocol()).host(parsed.host()).port(parsed.port());
    if let (Some(user), password) = (parsed.username(), parsed.password().unwrap_or_default()) {
        builder = builder.username(user).password(password);
    }
    for entry in ["localhost", "127.*", "[::1]", "::1"] {
        builder = builder.no_proxy(entry);
    }
    let listed = variables.get("NO_PROXY").map(String::as_str).unwrap_or_default();
    for entry in listed.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        builder = builder.no_proxy(entry);
        // curl and Go mean the domain and all below it by a plain name; ureq means that host alone.
        if entry.parse::<IpAddr>().is_err() && !entry.starts_with(['.', '*']) {
            builder = builder.no_proxy(&format!(".{entry}"));
        }
    }
    builder.build().ok()
}

/// The first thing in a checksum file that is a SHA-256.
fn first_sha256(text: &str) -> Result<String> {
    let is_sha256 = |word: &&str| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.split_whitespace()
        .find(is_sha256)
        .map(str::to_lowercase)
        .ok_or_else(|| Error::failed("there is no SHA-256 in it"))
}

fn sha256_of(path: &Path) -> Result<String> {
    let mut file = fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(copy_hashed(&mut file, &mut std::io::sink())?.0)
}

/// Copies, and returns the SHA-256 and the length of what was copied.
pub fn copy_hashed(from: &mut impl Read, to: &mut impl Write) -> Result<(String, u64)> {
    let (mut hash, mut total, mut buffer) = (Sha256::new(), 0, vec![0; 128 << 10]);
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Ok((hex(&hash.finalize()), total));
        }
        total += read as u64;
        hash.update(&buffer[..read]);
        to.write_all(&buffer[..read])?;
    }
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
}
