//! `k8tre cache`: what is kept between environments, so that nothing of it is a surprise.

use std::fs;

use serde::Serialize;

use crate::cli::CacheArgs;
use crate::commands::App;
use crate::error::{Error, Result, ResultExt};
use crate::ports::docker::Docker;
use crate::providers::kind::prepared::{self, PREPARED_LABEL};
use crate::report::{SCHEMA, table};

#[derive(Debug, Serialize)]
struct Entry {
    what: &'static str,
    name: String,
}

pub async fn run(app: &App, args: &CacheArgs) -> Result<u8> {
    if args.clear {
        return clear(app).await;
    }
    let mut entries: Vec<Entry> = files(app)?.into_iter().map(|name| Entry { what: "fetched file", name }).collect();
    match images().await {
        Ok(images) => entries.extend(images.into_iter().map(|name| Entry { what: "prepared node image", name })),
        Err(error) => app.ui.warn(&format!("prepared node images are not listed: {error}")),
    }
    if app.ui.is_json() {
        app.ui.json(&serde_json::json!({"schema": SCHEMA, "folder": app.dirs.cache, "entries": entries}))?;
    } else if entries.is_empty() {
        app.ui.say("nothing is kept");
    } else {
        app.ui
            .data(&table(&["WHAT", "NAME"], entries.into_iter().map(|entry| vec![entry.what.to_owned(), entry.name])));
        app.ui.say("remove it: k8tre cache --clear");
    }
    Ok(0)
}

async fn clear(app: &App) -> Result<u8> {
    for name in files(app)? {
        let path = app.dirs.cache.join(name);
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    let left = prepared::remove_all(&Docker::open().await?).await?;
    if left.is_empty() {
        app.ui.say(&format!("{} nothing is kept any more", app.ui.tick()));
        return Ok(0);
    }
    Err(Error::failed(format!("still in use: {}", left.join(", "))).hint("k8tre dev list").hint("k8tre dev down NAME"))
}

/// Files that k8tre fetched: those at the top of its cache folder. Folders there are not its own.
fn files(app: &App) -> Result<Vec<String>> {
    let entries = match fs::read_dir(&app.dirs.cache) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e).with_context(|| format!("cannot read {}", app.dirs.cache.display())),
    };
    let file = |entry: fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file()).then(|| entry.file_name());
    let mut names: Vec<String> =
        entries.flatten().filter_map(file).map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

async fn images() -> Result<Vec<String>> {
    let images = Docker::open().await?.images_with_label(PREPARED_LABEL).await?;
    Ok(images.into_iter().flat_map(|image| image.tags).collect())
}
