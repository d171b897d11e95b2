//! The repository server on a network with a proxy and authorities of its own: it is the part of Argo CD that fetches.

use serde_json::json;

use crate::argocd::manifest::Settings;
use crate::spec::NetworkSpec;

/// A Secret, since the address of a proxy may have a password in it.
const PROXY: &str = "k8tre-proxy";
const AUTHORITIES: &str = "k8tre-authorities";
const CERTIFICATES: &str = "k8tre-certificates";
/// Where the image's programs (git, helm, Argo CD itself) look for authorities.
const SYSTEM: &str = "/etc/ssl/certs";

/// Gives the repository server and its plugins the proxies and the authorities. `near` is reached without a proxy.
pub fn add(settings: &mut Settings, network: &NetworkSpec, near: &[String]) {
    let labels = json!({"app.kubernetes.io/part-of": "argocd"});
    let mut variables = network.variables(near);
    // Loopback of a pod is its own.
    variables.retain(|name, value| name.eq_ignore_ascii_case("NO_PROXY") || !is_loopback(value));
    let has_proxy = variables.keys().any(|name| !name.eq_ignore_ascii_case("NO_PROXY"));
    if has_proxy {
        settings.extra.push(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": PROXY, "labels": labels}, "stringData": variables
        }));
        settings.repo_server.env_from.push(json!({"secretRef": {"name": PROXY}}));
    }
    if let Some(pem) = &network.authorities {
        settings.extra.push(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": AUTHORITIES, "labels": labels}, "data": {"authorities.pem": pem}
        }));
        // One file with the image's own and these: git reads a file, and no folder.
        let script =
            format!("cat {SYSTEM}/ca-certificates.crt /authorities/authorities.pem > /all/ca-certificates.crt");
        settings.repo_server.init.push(json!({
            "name": "k8tre-authorities",
            "command": ["sh", "-c", script],
            "securityContext": {
                "runAsNonRoot": true, "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}
            },
            "volumeMounts": [
                {"name": AUTHORITIES, "mountPath": "/authorities", "readOnly": true},
                {"name": CERTIFICATES, "mountPath": "/all"}
            ]
        }));
        settings.repo_server.mounts.push(json!({"name": CERTIFICATES, "mountPath": SYSTEM, "readOnly": true}));
        settings.volumes.extend([
            json!({"name": AUTHORITIES, "configMap": {"name": AUTHORITIES}}),
            json!({"name": CERTIFICATES, "emptyDir": {}}),
        ]);
    }
    if has_proxy || network.authorities.is_some() {
        // Read when it starts: another network starts it again.
        settings.repo_server.annotations.insert("k8tre.dev/network".to_owned(), network.digest());
    }
}

fn is_loopback(proxy: &str) -> bool {
    let uri = proxy.parse::<http::Uri>().ok();
    let host = uri.as_ref().and_then(http::Uri::host).unwrap_or(proxy);
    host == "localhost" || host.starts_with("127.") || host == "[::1]"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn network(proxy: &str) -> NetworkSpec {
        let proxies = BTreeMap::from([("HTTPS_PROXY".to_owned(), proxy.to_owned())]);
        NetworkSpec { authorities: Some("PEM".into()), proxies, mirrors: BTreeMap::new() }
    }

    #[test]
    fn a_password_is_in_the_secret_alone() {
        let mut settings = Settings::default();
        add(&mut settings, &network("http://me:secret@proxy:3128"), &["10.96.0.0/16".to_owned()]);
        let (with, without): (Vec<_>, Vec<_>) =
            settings.extra.iter().partition(|object| object.to_string().contains("secret@"));
        assert_eq!(with.len(), 1);
        assert_eq!(with[0]["kind"], "Secret");
        assert!(with[0]["stringData"]["no_proxy"].as_str().unwrap().contains("10.96.0.0/16"));
        assert_eq!(without[0]["kind"], "ConfigMap");
        assert!(!format!("{:?}", settings.repo_server).contains("secret@"));
    }

    #[test]
    fn a_proxy_on_loopback_is_of_no_use_in_a_pod() {
        let mut settings = Settings::default();
        add(&mut settings, &NetworkSpec { authorities: None, ..network("http://127.0.0.1:3128") }, &[]);
        assert!(settings.extra.is_empty() && settings.repo_server.env_from.is_empty());
    }
}
