//! The network around an environment: whom to trust in it, and what stands between it and the rest of the world.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::text::hex;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct NetworkSpec {
    /// Certificates of authorities in PEM, besides the public ones: themselves and not their file, which may be gone when a
    /// later command needs them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorities: Option<String>,
    /// `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, as far as they are set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub proxies: BTreeMap<String, String>,
    /// Addresses to ask in place of a registry, in this order.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mirrors: BTreeMap<String, Vec<String>>,
}

/// What is on this machine or in the cluster, and what no proxy can reach.
const NEAR: [&str; 6] = ["localhost", "127.0.0.1", "127.0.0.0/8", "::1", ".svc", ".cluster.local"];

impl NetworkSpec {
    pub fn is_empty(&self) -> bool {
        *self == NetworkSpec::default()
    }

    /// Whether the nodes have to be told of it; proxies they are given when they are made.
    pub fn is_for_nodes(&self) -> bool {
        self.authorities.is_some() || !self.mirrors.is_empty()
    }

    /// Whether there is any proxy.
    pub fn has_proxy(&self) -> bool {
        self.proxies.keys().any(|name| name != "NO_PROXY")
    }

    /// The variables for a program, in both spellings; nothing without a proxy. What is near, and `more`, is not asked for
    /// through it.
    pub fn variables(&self, more: &[String]) -> BTreeMap<String, String> {
        if !self.has_proxy() {
            return BTreeMap::new();
        }
        let mut variables: BTreeMap<String, String> = self.proxies.clone();
        let own = self.proxies.get("NO_PROXY").map(String::as_str).unwrap_or_default();
        let mut bypass: Vec<&str> = own.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect();
        for entry in NEAR.into_iter().chain(more.iter().map(String::as_str)) {
            if !bypass.contains(&entry) {
                bypass.push(entry);
            }
        }
        variables.insert("NO_PROXY".to_owned(), bypass.join(","));
        let lower: Vec<(String, String)> =
            variables.iter().map(|(name, value)| (name.to_lowercase(), value.clone())).collect();
        variables.extend(lower);
        variables
    }

    /// Of all that is in it.
    pub fn digest(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        hex(&Sha256::digest(text)).chars().take(32).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_not_asked_for_through_the_proxy() {
        let proxies = [("HTTPS_PROXY", "http://proxy:3128"), ("NO_PROXY", "localhost, .hospital.example")];
        let proxies = proxies.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let network = NetworkSpec { proxies: proxies.into(), ..NetworkSpec::default() };
        let variables = network.variables(&["10.96.0.0/16".to_owned()]);
        assert_eq!(variables["https_proxy"], "http://proxy:3128");
        let bypass: Vec<&str> = variables["no_proxy"].split(',').collect();
        for entry in ["localhost", "127.0.0.1", ".hospital.example", ".svc", ".cluster.local", "10.96.0.0/16"] {
            assert_eq!(bypass.iter().filter(|one| **one == entry).count(), 1, "{entry} in {bypass:?}");
        }
        assert!(!variables.contains_key("HTTP_PROXY"));
        let only_bypass =
            NetworkSpec { proxies: [("NO_PROXY".to_owned(), "x".to_owned())].into(), ..Default::default() };
        assert!(only_bypass.variables(&[]).is_empty());
    }
}
