//! Images made here: a container to work in, and the image that becomes of it.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bollard::models::{ContainerConfig, ContainerCreateBody, HostConfig, ImageConfig, Mount, MountType};
use bollard::query_parameters::{
    CommitContainerOptionsBuilder, CreateContainerOptionsBuilder, ListImagesOptionsBuilder, RemoveImageOptionsBuilder,
};

use super::{ACTION, Docker, present};
use crate::error::{Error, Result};

/// Writing a layer of gigabytes.
const COMMIT: Duration = Duration::from_secs(300);

/// An image that carries a label of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledImage {
    pub id: String,
    pub tags: Vec<String>,
    pub labels: BTreeMap<String, String>,
}

impl Docker {
    /// Docker's ID of an image, which says what is in it; `None` if Docker does not hold it.
    pub async fn image_id(&self, reference: &str) -> Result<Option<String>> {
        let call = async { present(self.api.inspect_image(reference).await) };
        Ok(self.ask(&format!("inspect the image {reference}"), call).await?.and_then(|image| image.id))
    }

    async fn image_config(&self, reference: &str) -> Result<ImageConfig> {
        let call = self.api.inspect_image(reference);
        let image = self.ask(&format!("inspect the image {reference}"), call).await?;
        image.config.ok_or_else(|| Error::failed(format!("the image {reference} says nothing of how it is run")))
    }

    /// Images with a label, ours to remove.
    pub async fn images_with_label(&self, label: &str) -> Result<Vec<LabelledImage>> {
        let options = ListImagesOptionsBuilder::new().filters(&HashMap::from([("label", vec![label])])).build();
        let listed = self.ask("list images", self.api.list_images(Some(options))).await?;
        let image = |image: bollard::models::ImageSummary| LabelledImage {
            id: image.id,
            tags: image.repo_tags,
            labels: image.labels.into_iter().collect(),
        };
        Ok(listed.into_iter().map(image).collect())
    }

    /// Removes an image; one that is gone already is fine.
    pub async fn remove_image(&self, reference: &str) -> Result<()> {
        let options = RemoveImageOptionsBuilder::new().force(true).build();
        let call = async { present(self.api.remove_image(reference, Some(options), None).await) };
        self.bounded(ACTION, &format!("remove the image {reference}"), call).await.map(|_| ())
    }

    /// Starts a container that does nothing but wait for programs to be run in it. It is privileged,
    /// has no network, and an anonymous volume at `volume`.
    pub async fn start_workshop(&self, name: &str, image: &str, volume: &str, label: &str) -> Result<()> {
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            entrypoint: Some(vec!["sleep".into(), "infinity".into()]),
            cmd: Some(Vec::new()),
            labels: Some(HashMap::from([(label.to_owned(), String::new())])),
            host_config: Some(HostConfig {
                privileged: Some(true),
                network_mode: Some("none".into()),
                // Not as a volume of the container's configuration, which an image made of it would keep.
                mounts: Some(vec![Mount {
                    target: Some(volume.to_owned()),
                    typ: Some(MountType::VOLUME),
                    ..Default::default()
                }]),
                tmpfs: Some(HashMap::from([("/run".to_owned(), String::new()), ("/tmp".to_owned(), String::new())])),
                ..Default::default()
            }),
            ..Default::default()
        };
        let options = CreateContainerOptionsBuilder::new().name(name).build();
        let what = format!("create the container {name}");
        self.bounded(ACTION, &what, self.api.create_container(Some(options), body)).await?;
        self.start_container(name).await
    }

    /// Makes an image of a container: it is run as the image `like` is, and carries the labels.
    pub async fn commit(
        &self,
        container: &str,
        like: &str,
        (repository, tag): (&str, &str),
        labels: BTreeMap<String, String>,
    ) -> Result<()> {
        let image = self.image_config(like).await?;
        let config = ContainerConfig {
            entrypoint: image.entrypoint,
            cmd: image.cmd,
            stop_signal: image.stop_signal,
            volumes: image.volumes,
            labels: Some(labels.into_iter().collect()),
            ..Default::default()
        };
        let options =
            CommitContainerOptionsBuilder::new().container(container).repo(repository).tag(tag).pause(true).build();
        let what = format!("make the image {repository}:{tag}");
        self.bounded(COMMIT, &what, self.api.commit_container(options, config)).await.map(|_| ())
    }
}
