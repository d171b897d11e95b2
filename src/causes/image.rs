//! Images that cannot be pulled.

use super::view::{Pod, View};
use super::words::{group, innermost, pattern, quoted, unresolved};
use super::{Cause, Family};

pub const FAMILY: Family = Family { codes: &["image-name", "image-never-pulled", "image-pull"], explain };

fn explain(view: &View) -> Option<Cause> {
    view.pods.iter().find_map(|pod| {
        let (container, reason, message) = pod.containers().find_map(|container| {
            let (reason, message) = container.waiting()?;
            Some((container, reason, message))
        })?;
        let image = container.status["image"].as_str().unwrap_or_default();
        let made = |code| Cause::new(code).because_all(pod.links());
        match reason {
            "InvalidImageName" => {
                let root =
                    group(pattern!(r"invalid reference format:? ?(.*)$"), message).filter(|root| !root.is_empty());
                let cause = made("image-name").because(format!("\"{image}\" is no image name"));
                Some(cause.because_all(root.map(str::to_owned)).hint(pod.describe()))
            }
            "ErrImageNeverPull" => {
                let cause = made("image-never-pulled")
                    .because(format!("image {image} is not on the node, and its policy is Never"));
                Some(cause.hint(load(pod, image)))
            }
            "ErrImagePull" | "ImagePullBackOff" | "RegistryUnavailable" => {
                // A back-off says the reason or only that it backs off; the event has it in any case.
                let event = view.evidence.events.iter().filter(|event| event["involvedObject"]["name"] == pod.name);
                let event = event
                    .filter_map(|event| event["message"].as_str())
                    .find(|text| text.starts_with("Failed to pull image"));
                let said = if message.contains(": ") { message } else { event.unwrap_or(message) };
                let cause = made("image-pull").because(format!("image {image} cannot be pulled"));
                Some(cause.because_all(registry(said)).hint(format!("docker pull {}", quoted(image))))
            }
            _ => None,
        }
    })
}

/// How an image of this machine gets onto kind's node, if it is one of kind's.
fn load(pod: &Pod, image: &str) -> String {
    let node = pod.object["spec"]["nodeName"].as_str().unwrap_or_default();
    match group(pattern!(r"^(.+?)-(?:control-plane|worker)\d*$"), node) {
        Some(cluster) => format!("kind load docker-image {} --name {}", quoted(image), quoted(cluster)),
        None => pod.describe(),
    }
}

/// What the registry said, in few words.
fn registry(message: &str) -> Option<String> {
    if let Some(name) = unresolved(message) {
        return Some(format!("{name} does not resolve"));
    }
    let known = [
        ("toomanyrequests", "the registry's pull limit is reached"),
        ("429 Too Many Requests", "the registry's pull limit is reached"),
        ("insufficient_scope", "the registry has no such repository, or asks for a login"),
        ("unauthorized", "the registry asks for a login"),
        ("403 Forbidden", "the registry forbids it"),
        ("manifest unknown", "the registry has no such tag"),
        (": not found", "the registry has no such tag"),
        ("no match for platform", "the image is not made for this machine's architecture"),
        ("exec format error", "the image is not made for this machine's architecture"),
        ("x509", "the registry's certificate is not trusted"),
        ("no space left on device", "the node's disk is full"),
    ];
    let short = known.iter().find(|(said, _)| message.contains(said)).map(|(_, short)| (*short).to_owned());
    short.or_else(|| message.contains(": ").then(|| innermost(message).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_words_are_shortened() {
        for (said, short) in [
            (r#"failed to resolve reference "h/a:1": h/a:1: not found"#, "the registry has no such tag"),
            (
                "pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed",
                "the registry has no such repository, or asks for a login",
            ),
            (
                r#"failed to do request: Head "https://10.0.0.1:5000/v2/a": dial tcp 10.0.0.1:5000: connect: connection refused"#,
                "connection refused",
            ),
        ] {
            assert_eq!(registry(said).as_deref(), Some(short));
        }
    }
}
