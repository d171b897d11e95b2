//! Proxy settings: alive, reachable from the nodes, and not in the way of this machine's own ports.

use std::time::Duration;

use async_trait::async_trait;
use tokio::net::TcpStream;

use super::{Check, Context, Finding};
use crate::error::Result;
use crate::redact::without_user;

const ANSWER: Duration = Duration::from_secs(3);

pub struct Proxies;

#[async_trait]
impl Check for Proxies {
    fn name(&self) -> &'static str {
        "proxy settings"
    }

    async fn run(&self, cx: &Context) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        let set: Vec<_> = cx.proxies.iter().filter(|(name, _)| **name != "NO_PROXY").collect();
        for (name, value) in &set {
            let shown = without_user(value);
            let Some((host, port)) = host_and_port(value) else {
                findings.push(
                    Finding::warning("proxy", format!("{name} is no address of a proxy: {shown}"))
                        .why("programs differ in what they make of it")
                        .fix(format!("export {name}=http://host:port, or: unset {name}")),
                );
                continue;
            };
            let connect = TcpStream::connect((host.trim_matches(['[', ']']), port));
            if !matches!(tokio::time::timeout(ANSWER, connect).await, Ok(Ok(_))) {
                findings.push(
                    Finding::warning("proxy", format!("the proxy {shown} ({name}) does not answer"))
                        .why("nothing can be fetched through it, and the nodes are given it too")
                        .fix(format!("start the proxy, or: unset {name} {}", name.to_lowercase())),
                );
            }
            if is_loopback(&host) {
                findings.push(
                    Finding::warning("proxy-loopback", format!("the proxy {shown} ({name}) listens on loopback"))
                        .why("kind hands it to the nodes, whose loopback is their own: they cannot pull images through it")
                        .fix(format!("preload images, or set {name} to an address that containers reach")),
                );
            }
        }
        let bypass = cx.proxies.get("NO_PROXY").map(String::as_str).unwrap_or_default();
        if !set.is_empty() && !covers_loopback(bypass) {
            let value = ["localhost,127.0.0.1", bypass].join(",");
            findings.push(
                Finding::warning("no-proxy", "NO_PROXY lacks localhost and 127.0.0.1")
                    .why(
                        "kubectl and others would ask the proxy for the cluster on this machine; k8tre itself does not",
                    )
                    .fix(format!("export NO_PROXY={}", value.trim_end_matches(','))),
            );
        }
        Ok(findings)
    }
}

fn host_and_port(value: &str) -> Option<(String, u16)> {
    let (scheme, rest) = value.split_once("://").unwrap_or(("http", value));
    let authority = rest.split('/').next()?.rsplit('@').next()?;
    let default = match scheme {
        "https" => 443,
        scheme if scheme.starts_with("socks") => 1080,
        _ => 80,
    };
    // The colons of an IPv6 address are inside brackets.
    let after_host = authority.rfind(']').map_or(0, |end| end + 1);
    let (host, port) = match authority[after_host..].rfind(':') {
        Some(colon) => (&authority[..after_host + colon], authority[after_host + colon + 1..].parse().ok()?),
        None => (authority, default),
    };
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.starts_with("127.") || host == "[::1]"
}

fn covers_loopback(no_proxy: &str) -> bool {
    let entries: Vec<_> = no_proxy.split(',').map(str::trim).collect();
    entries.contains(&"*") || (entries.contains(&"localhost") && entries.iter().any(|entry| entry.starts_with("127.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_proxies_are_read_as_programs_do() {
        assert_eq!(host_and_port("http://me:secret@proxy.corp:3128/"), Some(("proxy.corp".into(), 3128)));
        assert_eq!(host_and_port("proxy:8080"), Some(("proxy".into(), 8080)));
        assert_eq!(host_and_port("https://[::1]:8443"), Some(("[::1]".into(), 8443)));
        assert_eq!(host_and_port("http://:80"), None);
        assert_eq!(host_and_port("http://proxy:eighty"), None);
    }

    #[test]
    fn loopback_is_covered_by_name_and_address_or_by_everything() {
        assert!(covers_loopback("localhost, 127.0.0.0/8"));
        assert!(covers_loopback("*"));
        assert!(!covers_loopback("localhost"));
        assert!(!covers_loopback(""));
    }
}
