//! The address by which a shared Argo CD reaches the environment's cluster.

use std::net::IpAddr;

use crate::error::{Error, Result};

/// An address that means the machine itself, whoever uses it.
pub fn is_here(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
}

/// Refuses what could lead nowhere, or to Argo CD's own cluster.
pub fn check(server: &str) -> Result<()> {
    let shown = crate::text::one_line(server, 200);
    let hint = "an address that Argo CD's pods can reach, such as https://cluster.example.org:6443: --server URL";
    let uri = server.parse::<http::Uri>().ok().filter(|uri| uri.scheme_str() == Some("https"));
    let Some(host) = uri.as_ref().and_then(http::Uri::host) else {
        return Err(Error::usage(format!("\"{shown}\" is no https address of a cluster")).hint(hint));
    };
    let authority = uri.as_ref().and_then(http::Uri::authority).map(http::uri::Authority::as_str).unwrap_or_default();
    if authority.contains('@') {
        return Err(Error::usage("the address of the cluster holds a user or a password").hint(hint));
    }
    if is_here(host) {
        return Err(
            Error::usage(format!("{shown} means, to Argo CD, the machine that Argo CD itself runs on")).hint(hint)
        );
    }
    if host == "kubernetes.default" || host.starts_with("kubernetes.default.svc") {
        return Err(Error::usage(format!("{shown} means, to Argo CD, the cluster that it runs in itself")).hint(hint));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_lead_back_to_argo_cd_are_refused() {
        for wrong in [
            "https://127.0.0.1:6443",
            "https://localhost:6443",
            "https://[::1]:6443",
            "https://0.0.0.0:6443",
            "https://kubernetes.default.svc",
            "http://cluster.example.org",
            "cluster.example.org:6443",
            "https://user:secret@cluster.example.org",
        ] {
            assert_eq!(check(wrong).unwrap_err().exit_code(), 2, "{wrong}");
        }
        check("https://k8tre-alice-control-plane:6443").unwrap();
        check("https://192.0.2.7:6443").unwrap();
    }
}
