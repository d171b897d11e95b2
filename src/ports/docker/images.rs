//! Images: which Docker has, which a node has, and the way from one to the other.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::TryStreamExt;
use tokio_util::io::StreamReader;

use super::exec::succeeded;
use super::{Docker, full_reference, name_of, present};
use crate::error::{Result, ResultExt};

const LOOK: Duration = Duration::from_secs(10);

/// An image that Docker holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// As pods and settings name it.
    pub reference: String,
    /// As Docker names it: without its digest, if it came in an archive.
    pub name: String,
}

impl Docker {
    /// Whether Docker holds this image, so that it need not be pulled.
    pub async fn image_present(&self, reference: &str) -> Result<bool> {
        let call = async { present(self.api.inspect_image(reference).await) };
        Ok(self.ask(&format!("inspect the image {reference}"), call).await?.is_some())
    }

    /// An image under a name that can be exported, if Docker holds it. What is exported by its digest has no name.
    pub async fn held(&self, reference: &str) -> Result<Option<Held>> {
        let Some(id) = self.image_id(reference).await? else { return Ok(None) };
        let named = name_of(reference);
        let name = match named != reference && self.image_id(&named).await?.as_ref() == Some(&id) {
            true => named,
            false => reference.to_owned(),
        };
        Ok(Some(Held { reference: reference.to_owned(), name }))
    }

    /// The images in a kind node, by full reference.
    pub async fn images_in_node(&self, node: &str) -> Result<BTreeSet<String>> {
        let argv = ["ctr", "--namespace=k8s.io", "images", "list", "--quiet"];
        let output = self.exec_ok(node, &argv, LOOK).await?;
        Ok(output.text().lines().map(str::to_owned).collect())
    }

    /// Copies images from Docker into a node's containerd: one export for all, so that layers they
    /// share travel once, piped straight into the import, so that nothing is kept on the way.
    pub async fn load_images(&self, node: &str, images: &[Held], limit: Duration) -> Result<()> {
        if images.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = images.iter().map(|image| image.name.as_str()).collect();
        let what = format!("export {}", names.join(", "));
        let export = self.api.export_images(&names).map_err(|error| self.stream_error(&what, error));
        let snapshotter = self.snapshotter(node).await?;
        let option = format!("--snapshotter={snapshotter}");
        let argv =
            ["ctr", "--namespace=k8s.io", "images", "import", "--all-platforms", "--digests", option.as_str(), "-"];
        let output = self.exec_with_input(node, &argv, Some(StreamReader::new(Box::pin(export))), limit).await;
        output
            .and_then(|output| succeeded(node, &argv, output))
            .map(|_| ())
            .with_context(|| format!("cannot copy {} into {node}", names.join(", ")))
            .hint(format!("docker image inspect {}", names.join(" ")))?;
        for image in images {
            let (name, reference) = (full_reference(&image.name), full_reference(&image.reference));
            if name != reference {
                // Pods ask by the digest, which the archive does not carry.
                let argv = ["ctr", "--namespace=k8s.io", "images", "tag", "--force", &name, &reference];
                self.exec_ok(node, &argv, LOOK).await.with_context(|| format!("cannot name {reference} in {node}"))?;
            }
        }
        Ok(())
    }

    /// The snapshotter that the kubelet's containers use: layers unpacked for another would be
    /// unpacked again when the first pod starts.
    async fn snapshotter(&self, node: &str) -> Result<String> {
        let config = self.exec_ok(node, &["containerd", "config", "dump"], LOOK).await?.text();
        Ok(snapshotter_of(&config).unwrap_or_else(|| "overlayfs".to_owned()))
    }
}

/// containerd moved the setting between its versions; in each, the CRI plug-in holds it.
fn snapshotter_of(config: &str) -> Option<String> {
    let config: toml::Table = config.parse().ok()?;
    let plugins = config.get("plugins")?;
    let images = plugins.get("io.containerd.cri.v1.images");
    let grpc = plugins.get("io.containerd.grpc.v1.cri").and_then(|cri| cri.get("containerd"));
    images.or(grpc)?.get("snapshotter")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_snapshotter_is_read_from_every_version_of_the_configuration() {
        let two = "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd]\nsnapshotter = \"fuse-overlayfs\"\n";
        let three = "version = 3\n[plugins.\"io.containerd.cri.v1.images\"]\nsnapshotter = \"native\"\n";
        assert_eq!(snapshotter_of(two).as_deref(), Some("fuse-overlayfs"));
        assert_eq!(snapshotter_of(three).as_deref(), Some("native"));
        assert_eq!(snapshotter_of("version = 9\n"), None);
    }
}
