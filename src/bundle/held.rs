//! Images that came in a bundle and are asked for by a digest, which Docker cannot know of them: remembered, with the ID
//! that Docker gave them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::BundledImage;
use crate::error::{Result, ResultExt};
use crate::ports::dirs;
use crate::ports::docker::{Docker, Held};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Loaded {
    name: String,
    id: String,
}

type Record = BTreeMap<String, Loaded>;

fn file(cache: &Path) -> PathBuf {
    cache.join("loaded-images.json")
}

fn record(cache: &Path) -> Record {
    // What cannot be read is loaded again.
    std::fs::read(file(cache)).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Remembers what Docker has just loaded of a bundle that was verified.
pub async fn remember(docker: &Docker, cache: &Path, images: &[BundledImage]) -> Result<()> {
    let mut record = record(cache);
    for image in images.iter().filter(|image| image.name != image.reference) {
        if let Some(id) = docker.image_id(&image.name).await? {
            record.insert(image.reference.clone(), Loaded { name: image.name.clone(), id });
        }
    }
    if record.is_empty() {
        return Ok(());
    }
    dirs::write_private(&file(cache), &serde_json::to_vec_pretty(&record)?).context("cannot remember what was loaded")
}

/// An image that Docker holds: under the name that it is asked for, or as it came in a bundle.
pub async fn held(docker: &Docker, cache: &Path, reference: &str) -> Result<Option<Held>> {
    if let Some(held) = docker.held(reference).await? {
        return Ok(Some(held));
    }
    if !reference.contains('@') {
        return Ok(None);
    }
    let Some(loaded) = record(cache).remove(reference) else { return Ok(None) };
    // Another image may have that name by now.
    let same = docker.image_id(&loaded.name).await? == Some(loaded.id);
    Ok(same.then(|| Held { reference: reference.to_owned(), name: loaded.name }))
}
