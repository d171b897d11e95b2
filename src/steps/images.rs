//! Images that Docker holds already are copied into the nodes, so that nothing is pulled twice.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::Result;
use crate::ports::docker::{Held, full_reference};
use crate::ports::kube::Type;
use crate::prerequisites;
use crate::providers::Provider;
use crate::steps::{CLUSTER, IMAGES};

const LIMIT: Duration = Duration::from_secs(300);

pub struct Images {
    pub provider: Box<dyn Provider>,
    pub needs: Vec<StepId>,
}

/// For each running node, the images that Docker has and the node has not.
async fn missing(cx: &Context) -> Result<Vec<(String, Vec<Held>)>> {
    let docker = cx.docker().await?;
    let mut wanted: BTreeSet<String> = cx.images().await?.into_iter().collect();
    wanted.extend(cx.outlined_prerequisites().await?.iter().flat_map(|one| one.images.clone()));
    wanted.extend(cx.planned().await?.iter().flat_map(|one| prerequisites::images(std::slice::from_ref(&one.object))));
    let here = cx.held_of(wanted).await?;
    // The kubelet's own list is one question to the API server; a look into the node is a process.
    if let Some(kube) = cx.kube().await? {
        let nodes = kube.list(&Type::new("v1", "Node"), "", "").await.unwrap_or_default();
        if !nodes.is_empty() && nodes.iter().all(|node| here.iter().all(|image| lists(node, &image.reference))) {
            return Ok(Vec::new());
        }
    }
    let mut missing = Vec::new();
    if here.is_empty() {
        return Ok(missing);
    }
    for node in cx.provider().image_nodes(cx).await? {
        let there: BTreeSet<String> = docker.images_in_node(&node).await?;
        let lacking: Vec<Held> =
            here.iter().filter(|image| !there.contains(&full_reference(&image.reference))).cloned().collect();
        if !lacking.is_empty() {
            missing.push((node, lacking));
        }
    }
    Ok(missing)
}

fn lists(node: &Value, image: &str) -> bool {
    let image = full_reference(image);
    let images = node["status"]["images"].as_array().into_iter().flatten();
    images.flat_map(|entry| entry["names"].as_array().into_iter().flatten()).any(|name| *name == image)
}

#[async_trait]
impl Step<Context> for Images {
    fn id(&self) -> StepId {
        IMAGES
    }

    fn needs(&self) -> &[StepId] {
        &self.needs
    }

    fn inside(&self) -> Option<StepId> {
        Some(CLUSTER)
    }

    fn describe(&self) -> String {
        match self.provider.loads_images() {
            true => "images from Docker, copied into the node".into(),
            false => "nothing: the cluster pulls its images itself".into(),
        }
    }

    fn leaves_nothing(&self) -> bool {
        !self.provider.loads_images()
    }

    fn limit(&self) -> Duration {
        LIMIT
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        if cx.kube().await?.is_none() {
            return Ok(Context::needs_cluster());
        }
        if !self.provider.loads_images() {
            return Ok(State::Ready);
        }
        let missing = missing(cx).await?;
        Ok(match missing.first() {
            None => State::Ready,
            Some((node, images)) => {
                let images: Vec<&str> = images.iter().map(|image| image.reference.as_str()).collect();
                State::Drifted(format!("{node} lacks {}", images.join(", ")))
            }
        })
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        if !self.provider.loads_images() {
            return Ok(());
        }
        let docker = cx.docker().await?;
        for (node, images) in missing(cx).await? {
            cx.detail(IMAGES, &format!("copying {} images into {node}", images.len()));
            docker.load_images(&node, &images, LIMIT).await?;
        }
        Ok(())
    }

    async fn undo(&self, _cx: &Context) -> Result<()> {
        // They are in the node, and go with it.
        Ok(())
    }
}
