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

#[cfg(test)]
mod tests {
    use super::normalized;

    #[test]
    fn one_repository_has_one_address() {
        let https = normalized("https://github.com/k8tre/k8tre");
        assert_eq!(normalized("https://github.com/K8TRE/k8tre.git"), https);
        assert_eq!(normalized(" https://github.com/k8tre/k8tre/ "), https);
        assert_eq!(normalized("git@github.com:k8tre/k8tre.git"), normalized("ssh://git@github.com/k8tre/k8tre"));
        assert_ne!(normalized("https://github.com/k8tre/other"), https);
    }
}
