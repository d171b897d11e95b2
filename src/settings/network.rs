//! The network around an environment, from flags, variables, the journal and files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::FileSettings;
use crate::cli::UpArgs;
use crate::error::{Error, Result};
use crate::ports::fetch;
use crate::ports::machine::proxy_variables;
use crate::redact::without_user;
use crate::spec::{NetworkSpec, Spec};

/// Whom to trust on this network, and what stands between it and the rest of the world.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FileNetwork {
    /// PEM file with certificates of authorities to trust besides the public ones, from where the settings file is.
    pub ca_bundle: Option<PathBuf>,
    /// Proxy for http. Without it: the variable `HTTP_PROXY`.
    pub http_proxy: Option<String>,
    /// Proxy for https. Without it: the variable `HTTPS_PROXY`.
    pub https_proxy: Option<String>,
    /// What is reached without a proxy, with commas between. Without it: the variable `NO_PROXY`.
    pub no_proxy: Option<String>,
    /// Addresses that the nodes ask in place of a registry, in this order: `"docker.io" = ["https://mirror.example.org"]`.
    pub registry_mirrors: BTreeMap<String, Vec<String>>,
}

/// All answers, put together. A file of certificates that cannot be used is told by the preflight, with what else there is.
pub fn network(args: &UpArgs, saved: Option<&Spec>, files: &[FileSettings]) -> Result<NetworkSpec> {
    let saved = saved.map(|saved| saved.network.clone()).unwrap_or_default();
    let files = files.iter().map(|file| &file.network);
    let bundle = match &args.run.ca_bundle {
        Some(given) => Some(given.clone()),
        None if saved.authorities.is_some() => None,
        None => files.clone().find_map(|file| file.ca_bundle.clone()),
    };
    let authorities = match bundle {
        Some(bundle) => fetch::certificates(&bundle).ok(),
        None => saved.authorities,
    };
    let mut proxies = BTreeMap::new();
    type Get = fn(&FileNetwork) -> Option<&String>;
    let of_files: [(&str, Get); 3] = [
        ("HTTP_PROXY", |file| file.http_proxy.as_ref()),
        ("HTTPS_PROXY", |file| file.https_proxy.as_ref()),
        ("NO_PROXY", |file| file.no_proxy.as_ref()),
    ];
    let variables = proxy_variables();
    for (name, of_file) in of_files {
        let value = variables.get(name).or_else(|| saved.proxies.get(name));
        if let Some(value) = value.or_else(|| files.clone().find_map(of_file)) {
            if name != "NO_PROXY" {
                check(name, value)?;
            }
            proxies.insert(name.to_owned(), value.clone());
        }
    }
    let mut mirrors: BTreeMap<String, Vec<String>> = match saved.mirrors.is_empty() {
        false => saved.mirrors,
        true => files.map(|file| &file.registry_mirrors).find(|all| !all.is_empty()).cloned().unwrap_or_default(),
    };
    let mut given: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (registry, mirror) in &args.registry_mirrors {
        given.entry(registry.clone()).or_default().push(mirror.clone());
    }
    mirrors.extend(given);
    for (registry, addresses) in &mirrors {
        for address in addresses {
            mirror(registry, address)?;
        }
    }
    Ok(NetworkSpec { authorities, proxies, mirrors })
}

fn check(name: &str, proxy: &str) -> Result<()> {
    // Lines would become lines of other files.
    match proxy.chars().any(|c| c.is_control() || c.is_whitespace()) {
        false => Ok(()),
        true => Err(Error::usage(format!("{name} is no address of a proxy: {}", without_user(proxy).escape_debug()))
            .hint(format!("export {name}=http://host:port"))),
    }
}

fn mirror(registry: &str, address: &str) -> Result<()> {
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
    let is_address = address.parse::<http::Uri>().is_ok_and(|uri| {
        uri.host().is_some() && matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none()
    });
    let plain = !address.contains(['"', '\\', '@']);
    match !registry.is_empty() && registry.chars().all(is_host) && is_address && plain {
        true => Ok(()),
        false => Err(Error::usage(format!("{registry}={} is no mirror of a registry", without_user(address)))
            .hint("--registry-mirror docker.io=https://mirror.example.org")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_are_hosts_with_addresses() {
        assert!(mirror("docker.io", "https://mirror.example.org").is_ok());
        assert!(mirror("localhost:5000", "http://10.0.0.1:5000/v2/hub").is_ok());
        for (registry, address) in [
            ("", "https://m"),
            ("docker.io", "m.example.org"),
            ("a/b", "https://m"),
            ("a", "https://u:p@m"),
            ("a", "x\"y"),
        ] {
            assert!(mirror(registry, address).is_err(), "{registry} {address}");
        }
    }

    #[test]
    fn a_recorded_network_is_kept_until_a_flag_or_variable_says_otherwise() {
        let file = FileNetwork {
            registry_mirrors: [("a".to_owned(), vec!["https://file".to_owned()])].into(),
            ..Default::default()
        };
        let files = [FileSettings { network: file, ..FileSettings::default() }];
        let of = |args: &UpArgs, saved: Option<&Spec>| network(args, saved, &files).unwrap().mirrors;
        let none = UpArgs::default();
        assert_eq!(of(&none, None)["a"], ["https://file"]);
        let mut saved = super::super::of_name(&"alice".parse().unwrap()).unwrap();
        saved.network.mirrors = [("b".to_owned(), vec!["https://saved".to_owned()])].into();
        assert_eq!(of(&none, Some(&saved)), saved.network.mirrors);
        let args = UpArgs { registry_mirrors: vec![("b".into(), "https://flag".into())], ..UpArgs::default() };
        assert_eq!(of(&args, Some(&saved))["b"], ["https://flag"]);
    }
}
