//! A node image of our own: the chosen one, with images in it that are unpacked already.
//!
//! Unpacking is most of the work of a starting node, and of Argo CD's start in it. Measured on two
//! busy cores, `kind create` took 9-11 s of CPU with such an image, with Argo CD's images in it,
//! where it took 30-47 s without them. Making it costs about what it saves, once.

use std::collections::BTreeMap;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::error::{Result, ResultExt};
use crate::ports::docker::{Docker, Held};

/// Marks the images and the containers in which they are made.
pub const PREPARED_LABEL: &str = "io.k8tre.prepared";

const REPOSITORY: &str = "k8tre/node";
const SCRIPT: &str = include_str!("prepare.sh");
const VOLUME: &str = "/prepare";
const LIMIT: Duration = Duration::from_secs(300);

/// A node image with images in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    node_image: String,
    images: Vec<Held>,
    tag: String,
}

impl Prepared {
    /// What would be made of these, all of which Docker must hold; `None` if it lacks one.
    pub async fn plan(docker: &Docker, node_image: &str, images: Vec<Held>) -> Result<Option<Prepared>> {
        let mut hash = Sha256::new();
        hash.update(SCRIPT);
        let named = images.iter().map(|image| (image.reference.as_str(), image.name.as_str()));
        for (reference, name) in std::iter::once((node_image, node_image)).chain(named) {
            let Some(id) = docker.image_id(name).await? else { return Ok(None) };
            hash.update(format!("{reference} {id}\n"));
        }
        let tag = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Ok(Some(Prepared { node_image: node_image.to_owned(), images, tag }))
    }

    /// Reference for `kind create cluster --image`.
    pub fn reference(&self) -> String {
        format!("{REPOSITORY}:{}", self.tag)
    }

    pub async fn is_made(&self, docker: &Docker) -> Result<bool> {
        docker.image_present(&self.reference()).await
    }

    /// Makes the image, and removes older ones of ours. Fine when it is made already.
    pub async fn make(&self, docker: &Docker) -> Result<()> {
        if self.is_made(docker).await? {
            return Ok(());
        }
        let workshop = format!("k8tre-prepare-{}", self.tag);
        docker.remove_container(&workshop).await?;
        let made = self.make_in(docker, &workshop).await;
        let removed = docker.remove_container(&workshop).await;
        made.with_context(|| format!("cannot prepare a node image from {}", self.node_image))?;
        removed?;
        self.remove_older(docker).await
    }

    async fn make_in(&self, docker: &Docker, workshop: &str) -> Result<()> {
        docker.start_workshop(workshop, &self.node_image, VOLUME, PREPARED_LABEL).await?;
        docker
            .exec_ok(workshop, &["sh", "-c", SCRIPT, "prepare", "start"], LIMIT)
            .await
            .context("starting containerd")?;
        docker.load_images(workshop, &self.images, LIMIT).await?;
        docker.exec_ok(workshop, &["sh", "-c", SCRIPT, "prepare", "finish"], LIMIT).await.context("unpacking")?;
        let references: Vec<&str> = self.images.iter().map(|image| image.reference.as_str()).collect();
        let labels = BTreeMap::from([
            (PREPARED_LABEL.to_owned(), self.node_image.clone()),
            ("io.k8tre.images".to_owned(), references.join(" ")),
        ]);
        docker.commit(workshop, &self.node_image, (REPOSITORY, &self.tag), labels).await
    }

    async fn remove_older(&self, docker: &Docker) -> Result<()> {
        for image in docker.images_with_label(PREPARED_LABEL).await? {
            if !image.tags.contains(&self.reference()) {
                // One that a cluster still runs on stays until that is gone.
                if let Err(error) = docker.remove_image(&image.id).await {
                    tracing::debug!(%error, "an older prepared image stays");
                }
            }
        }
        Ok(())
    }
}

/// Removes all prepared images and what an interrupted preparation left. Tells what stays.
pub async fn remove_all(docker: &Docker) -> Result<Vec<String>> {
    for container in docker.containers(&[PREPARED_LABEL]).await? {
        if container.name.starts_with("k8tre-prepare-") {
            docker.remove_container(&container.name).await?;
        }
    }
    let mut left = Vec::new();
    for image in docker.images_with_label(PREPARED_LABEL).await? {
        if docker.remove_image(&image.id).await.is_err() {
            left.extend(image.tags);
        }
    }
    Ok(left)
}
