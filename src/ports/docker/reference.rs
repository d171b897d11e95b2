//! References of images, as people, Docker and containerd write them.

/// A reference as containerd writes it: `redis:7` is `docker.io/library/redis:7`. With a digest, the tag does not count.
pub fn full_reference(reference: &str) -> String {
    let (first, rest) = reference.split_once('/').unwrap_or(("", reference));
    let named = match first {
        "" => format!("docker.io/library/{rest}"),
        host if host.contains(['.', ':']) || host == "localhost" => reference.to_owned(),
        _ => format!("docker.io/{reference}"),
    };
    if let Some((tagged, digest)) = named.split_once('@') {
        return format!("{}@{digest}", without_tag(tagged));
    }
    if tag_of(&named).is_some() { named } else { format!("{named}:latest") }
}

/// A name for an image that is pinned by its digest, under which it can be kept where the digest is not known: an
/// archive does not carry it. Any other reference is its own name.
pub fn name_of(reference: &str) -> String {
    match reference.split_once('@') {
        None => reference.to_owned(),
        Some((tagged, _)) if tag_of(tagged).is_some() => tagged.to_owned(),
        Some((name, digest)) => {
            let digest: String = digest.chars().filter(char::is_ascii_alphanumeric).take(24).collect();
            format!("{name}:{digest}")
        }
    }
}

/// The registry that an image comes from.
pub fn registry_of(reference: &str) -> String {
    full_reference(reference).split('/').next().unwrap_or_default().to_owned()
}

/// Whether the kubelet asks the registry for it each time, unless the pod says otherwise.
pub fn is_latest(reference: &str) -> bool {
    !reference.contains('@') && tag_of(reference).is_none_or(|tag| tag == "latest")
}

fn tag_of(name: &str) -> Option<&str> {
    name.rsplit('/').next()?.split_once(':').map(|(_, tag)| tag)
}

fn without_tag(name: &str) -> &str {
    match tag_of(name) {
        Some(tag) => &name[..name.len() - tag.len() - 1],
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_written_as_containerd_writes_them() {
        assert_eq!(full_reference("redis"), "docker.io/library/redis:latest");
        assert_eq!(full_reference("a/b:1"), "docker.io/a/b:1");
        assert_eq!(full_reference("quay.io/a/b@sha256:1"), "quay.io/a/b@sha256:1");
        assert_eq!(full_reference("quay.io/a/b:v2@sha256:1"), "quay.io/a/b@sha256:1");
        assert_eq!(full_reference("localhost:5000/x"), "localhost:5000/x:latest");
    }

    #[test]
    fn what_is_pinned_by_digest_gets_a_name() {
        assert_eq!(name_of("kindest/node:v1.34.11@sha256:44e2"), "kindest/node:v1.34.11");
        assert_eq!(name_of("localhost:5000/x@sha256:0123"), "localhost:5000/x:sha2560123");
        assert_eq!(name_of("redis:8"), "redis:8");
    }

    #[test]
    fn registries_and_moving_tags_are_told() {
        assert_eq!(registry_of("kindest/node:v1"), "docker.io");
        assert_eq!(registry_of("localhost:5000/x"), "localhost:5000");
        assert!(is_latest("localhost:5000/x") && is_latest("a:latest"));
        assert!(!is_latest("a:1") && !is_latest("a@sha256:1"));
    }
}
