//! What a node has to know of the network around it: authorities to trust, and mirrors to ask in place of registries.
//! Proxies kind hands it when it makes it.

use std::time::Duration;

use crate::error::{Error, Result, ResultExt};
use crate::ports::docker::Docker;
use crate::ports::fetch;
use crate::spec::NetworkSpec;

/// Says, inside a node, what it was told last.
const TOLD: &str = "/k8tre/network";
const AUTHORITIES: &str = "/usr/local/share/ca-certificates";
/// Where containerd reads for each registry how it is reached.
pub const HOSTS: &str = "/etc/containerd/certs.d";
const MARK: &str = "# Written by k8tre.";
const END: &str = "K8TRE_END";
const LIMIT: Duration = Duration::from_secs(120);
const SHORT: Duration = Duration::from_secs(20);

pub async fn is_told(docker: &Docker, node: &str, network: &NetworkSpec) -> Result<bool> {
    let told = docker.exec(node, &["cat", TOLD], SHORT).await?;
    Ok(told.code == 0 && told.text().trim() == network.digest())
}

pub async fn tell(docker: &Docker, node: &str, network: &NetworkSpec) -> Result<()> {
    if !network.mirrors.is_empty() {
        let config = docker.exec_ok(node, &["containerd", "config", "dump"], SHORT).await?.text();
        if !config.contains(HOSTS) {
            return Err(Error::failed(format!("{node} was made without mirrors in mind, and reads none"))
                .hint("make it again: k8tre dev down, then up"));
        }
    }
    let script = script(network)?;
    let argv = ["sh", "-s"];
    let output = docker.exec_with_input(node, &argv, Some(script.as_bytes()), LIMIT).await?;
    match output.code {
        0 => Ok(()),
        code => Err(Error::failed(format!("{node} could not be told of the network (exit code {code})"))
            .detail(crate::text::printable(&output.errors()))
            .hint(format!("docker exec {node} journalctl -u containerd --no-pager -n 20"))),
    }
}

/// All of it anew, so that nothing of an earlier network remains. What is told is noted last.
fn script(network: &NetworkSpec) -> Result<String> {
    let mut script = format!(
        "set -eu\nmkdir -p {AUTHORITIES} /k8tre\nrm -f {AUTHORITIES}/k8tre-*.crt\n\
         for file in {HOSTS}/*/hosts.toml; do if grep -qs '^{MARK}' \"$file\"; then rm \"$file\"; fi; done\n"
    );
    let mut write = |path: &str, text: &str| -> Result<()> {
        if text.lines().any(|line| line == END) {
            return Err(Error::failed(format!("{path} cannot be written: it has a line {END}")));
        }
        let folder = path.rsplit_once('/').map_or("/", |(folder, _)| folder);
        let text = text.trim_end();
        script.push_str(&format!("mkdir -p '{folder}'\ncat > '{path}' <<'{END}'\n{text}\n{END}\n"));
        Ok(())
    };
    let authorities = network.authorities.as_deref().unwrap_or_default();
    for (number, certificate) in fetch::each(authorities).enumerate() {
        write(&format!("{AUTHORITIES}/k8tre-{number}.crt"), certificate)?;
    }
    for (registry, mirrors) in &network.mirrors {
        write(&format!("{HOSTS}/{registry}/hosts.toml"), &hosts(registry, mirrors)).context("a mirror")?;
    }
    // containerd reads the authorities when it starts; the containers it keeps do not notice.
    script.push_str(&format!(
        "update-ca-certificates >/dev/null 2>&1\nsystemctl restart containerd\n\
         i=0; until ctr version >/dev/null 2>&1; do i=$((i+1)); [ $i -lt 200 ] || {{ echo 'containerd does not answer' >&2; exit 1; }}; sleep 0.2; done\n\
         echo {} > {TOLD}\n",
        network.digest()
    ));
    Ok(script)
}

/// How containerd reaches a registry: the mirrors in their order, and the registry itself when none of them has the image.
fn hosts(registry: &str, mirrors: &[String]) -> String {
    let server = if registry == "docker.io" { "registry-1.docker.io" } else { registry };
    let mut text = format!("{MARK}\nserver = \"https://{server}\"\n");
    for mirror in mirrors {
        let mirror = mirror.trim_end_matches('/');
        text.push_str(&format!("\n[host.\"{mirror}\"]\n  capabilities = [\"pull\", \"resolve\"]\n"));
        if mirror.contains("/v2/") || mirror.ends_with("/v2") {
            // A path below the API, as registries that are proxies for several have it.
            text.push_str("  override_path = true\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_are_asked_in_their_order_before_the_registry() {
        let mirrors = ["https://a.example/".to_owned(), "https://b.example/v2/hub".to_owned()];
        let text = hosts("docker.io", &mirrors);
        let read: toml::Table = text.parse().unwrap();
        assert_eq!(read["server"].as_str(), Some("https://registry-1.docker.io"));
        assert!(text.find("a.example").unwrap() < text.find("b.example").unwrap());
        let hosts = read["host"].as_table().unwrap();
        assert!(hosts["https://a.example"].get("override_path").is_none());
        assert_eq!(hosts["https://b.example/v2/hub"]["override_path"].as_bool(), Some(true));
    }

    #[test]
    fn each_certificate_is_a_file_of_its_own() {
        let one = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let network = NetworkSpec { authorities: Some(format!("{one}{one}")), ..NetworkSpec::default() };
        let script = script(&network).unwrap();
        assert!(script.contains("k8tre-0.crt") && script.contains("k8tre-1.crt") && !script.contains("k8tre-2.crt"));
        assert!(script.trim_end().ends_with(&format!("echo {} > {TOLD}", network.digest())));
        let evil = NetworkSpec { authorities: Some(format!("-----BEGIN CERTIFICATE-----\n{END}\n")), ..network };
        assert!(super::script(&evil).is_err());
    }
}
