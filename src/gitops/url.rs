//! Addresses of git repositories, compared as Argo CD compares them.

/// One form for the ways to write the same address: `git@host:a/b`, `ssh://git@host/a/b.git`, `HTTPS://host/A/b.git/`.
pub fn normalized(url: &str) -> String {
    let url = url.trim().to_lowercase();
    let url = url.strip_suffix('/').unwrap_or(&url);
    let url = url.strip_suffix(".git").unwrap_or(url);
    match url.split_once(':') {
        // The short form of ssh has a colon after the host and no scheme.
        Some((host, path)) if !host.contains('/') && !path.starts_with("//") && !host.is_empty() => {
            format!("ssh://{host}/{}", path.trim_start_matches('/'))
        }
        _ => url.to_owned(),
    }
}

/// The address by which a repository can be read without the user's keys: https in place of ssh, and no user
/// or password in it. `None` for what only this machine can read.
pub fn public(url: &str) -> Option<String> {
    let url = url.trim();
    let without_user = |rest: &str| match rest.split_once('/') {
        Some((host, path)) => format!("{}/{path}", host.rsplit('@').next().unwrap_or(host)),
        None => rest.rsplit('@').next().unwrap_or(rest).to_owned(),
    };
    match url.split_once("://") {
        Some((scheme @ ("https" | "http"), rest)) => Some(format!("{scheme}://{}", without_user(rest))),
        Some(("git", rest)) if !is_here(rest) => Some(format!("git://{rest}")),
        Some(("ssh" | "git+ssh" | "ssh+git", rest)) => {
            let rest = without_user(rest);
            let (host, path) = rest.split_once('/')?;
            // A port of ssh is none of https.
            Some(format!("https://{}/{path}", host.split(':').next().unwrap_or(host)))
        }
        Some(_) => None,
        None => {
            let (host, path) = url.split_once(':')?;
            let plain = !host.contains('/') && !host.is_empty() && !path.is_empty() && !path.starts_with(':');
            plain.then(|| format!("https://{}/{}", without_user(host), path.trim_start_matches('/')))
        }
    }
    .filter(|url| !url.split_once("://").is_some_and(|(_, rest)| is_here(rest)))
}

/// Whether the host of an address is this very machine, which the cluster takes for itself.
fn is_here(rest: &str) -> bool {
    let authority = rest.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::{normalized, public};

    #[test]
    fn what_argo_cd_reads_has_neither_keys_nor_passwords() {
        let cases = [
            ("git@github.com:alice/k8tre.git", Some("https://github.com/alice/k8tre.git")),
            ("ssh://git@git.example.org:2222/tre.git", Some("https://git.example.org/tre.git")),
            ("https://alice:s3cret@git.example.org/tre", Some("https://git.example.org/tre")),
            ("git://172.17.0.1/tre.git", Some("git://172.17.0.1/tre.git")),
            ("http://127.0.0.1:3000/tre.git", None),
            ("git://localhost/tre.git", None),
            ("http://[::1]:3000/tre.git", None),
            ("/srv/tre.git", None),
            ("../tre.git", None),
            ("file:///srv/tre.git", None),
            ("ext::sh -c id", None),
        ];
        for (url, wanted) in cases {
            assert_eq!(public(url).as_deref(), wanted, "{url}");
        }
    }

    #[test]
    fn one_repository_has_one_address() {
        let https = normalized("https://github.com/k8tre/k8tre");
        assert_eq!(normalized("https://github.com/K8TRE/k8tre.git"), https);
        assert_eq!(normalized(" https://github.com/k8tre/k8tre/ "), https);
        assert_eq!(normalized("git@github.com:k8tre/k8tre.git"), normalized("ssh://git@github.com/k8tre/k8tre"));
        assert_ne!(normalized("https://github.com/k8tre/other"), https);
    }
}
