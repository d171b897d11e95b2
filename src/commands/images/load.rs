//! `k8tre images load`, and what `up --bundle` does of it: verified whole, then brought in.

use std::path::Path;

use serde_json::json;

use super::unless_cancelled;
use crate::bundle::{self, Bundle};
use crate::commands::App;
use crate::error::{Error, Result};
use crate::ports::dirs::Dirs;
use crate::ports::docker::Docker;
use crate::ports::fetch::Fetcher;
use crate::report::SCHEMA;

pub async fn run(app: &App, file: &Path) -> Result<u8> {
    let bundle = unless_cancelled(app, open(app, file)).await?;
    let docker = Docker::open().await?;
    unless_cancelled(app, load(app, &bundle, &docker)).await?;
    let list = &bundle.list;
    if app.ui.is_json() {
        app.ui.json(&json!({"schema": SCHEMA, "file": bundle.path, "contents": list}))?;
    } else {
        let (images, files) = (list.images.len(), list.files.len());
        app.ui.say(&format!("{} {images} images and {files} files are here", app.ui.tick()));
        for image in &list.left_out {
            app.ui.warn(&format!("it was made without {image}"));
        }
        app.ui.say("k8tre dev up --offline");
    }
    Ok(0)
}

/// Verifies a bundle, and brings its files into the cache folder.
pub async fn open(app: &App, file: &Path) -> Result<Bundle> {
    app.ui.say(&format!("verifying {}", file.display()));
    let (file, fetcher) = (std::path::absolute(file)?, Fetcher::new(&app.dirs.cache).offline(true));
    tokio::task::spawn_blocking(move || {
        let bundle = Bundle::open(&file)?;
        bundle.verify()?;
        bundle.bring_files(&fetcher)?;
        Ok(bundle)
    })
    .await?
}

/// Brings its images into Docker.
pub async fn load(app: &App, bundle: &Bundle, docker: &Docker) -> Result<()> {
    let (platform, here) = (&bundle.list.platform, docker.platform().await?);
    if *platform != here {
        return Err(Error::preflight(format!(
            "{} was made for {platform}, and this Docker runs {here}",
            bundle.path.display()
        ))
        .hint("make it on a machine of this kind: k8tre images save FILE"));
    }
    if !bundle.is_loaded(docker).await? {
        app.ui.say(&format!("loading {} images into Docker", bundle.list.images.len()));
        bundle.load_images(docker).await?;
    }
    let Dirs { cache, .. } = &app.dirs;
    bundle::remember(docker, cache, &bundle.list.images).await
}
