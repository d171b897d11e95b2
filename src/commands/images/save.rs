//! `k8tre images save`: what can be had is gathered first, and the file written last, as a whole or not at all.

use std::fs::File;
use std::path::PathBuf;

use serde_json::json;

use super::{size, unless_cancelled};
use crate::bundle::{self, Archive, BundledFile, BundledImage, List};
use crate::cli::ImagesSaveArgs;
use crate::commands::{App, up};
use crate::context::Context;
use crate::error::{Error, Kind, Result, ResultExt};
use crate::gitops::unseen::Unseen;
use crate::needed::{self, Image, Needed};
use crate::ports::docker::{Docker, name_of};
use crate::ports::fetch::{Checksum, copy_hashed};
use crate::report::SCHEMA;

pub async fn run(app: &App, args: &ImagesSaveArgs) -> Result<u8> {
    let cx = unless_cancelled(app, up::looking(app, &args.up)).await?;
    let mut needed = unless_cancelled(app, needed::of(&cx)).await?;
    let docker = cx.docker().await?;
    let (images, left_out) = unless_cancelled(app, images(app, &cx, args, &needed.images)).await?;
    let files = unless_cancelled(app, files(app, &cx, &mut needed)).await?;
    let mut archive = Archive::create(&args.file)?;
    for (file, path) in &files {
        let mut from = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        archive.add(&file.part(), &mut from)?;
        if archive.parts().last().is_none_or(|part| part.sha256 != file.sha256) {
            return Err(Error::failed(format!("{} changed while it was read", path.display())));
        }
    }
    app.ui.say(&format!("writing {} images and {} files into {}", images.len(), files.len(), args.file.display()));
    let (archive, images) = with_images(app, docker, archive, images).await?;
    let list = List {
        schema: bundle::SCHEMA,
        k8tre: env!("CARGO_PKG_VERSION").to_owned(),
        made: jiff::Timestamp::now(),
        platform: docker.platform().await?,
        images,
        files: files.into_iter().map(|(file, _)| file).collect(),
        parts: Vec::new(),
        left_out,
        unknown: needed.unknown,
    };
    let parts = archive.parts().to_vec();
    let length = tokio::task::spawn_blocking({
        let list = list.clone();
        move || archive.finish(&list)
    })
    .await??;
    report(app, args, &List { parts, ..list }, length)
}

fn report(app: &App, args: &ImagesSaveArgs, list: &List, length: u64) -> Result<u8> {
    let file = std::path::absolute(&args.file)?;
    if app.ui.is_json() {
        app.ui.json(&json!({"schema": SCHEMA, "file": file, "size": length, "contents": list}))?;
        return Ok(0);
    }
    for image in &list.left_out {
        app.ui.warn(&format!("left out: {image}"));
    }
    for one in &list.unknown {
        app.ui.warn(&format!("what {} needs is known only in part: {}", one.what, one.why));
    }
    let (images, files) = (list.images.len(), list.files.len());
    app.ui.say(&format!("{} {images} images and {files} files, {}", app.ui.tick(), size(length)));
    app.ui.say(&format!("there, without a network: k8tre dev up --offline --bundle {}", args.file.display()));
    Ok(0)
}

/// The images, pulled if need be; and those that cannot be had and are done without.
async fn images(
    app: &App,
    cx: &Context,
    args: &ImagesSaveArgs,
    needed: &[Image],
) -> Result<(Vec<String>, Vec<String>)> {
    let (mut here, mut missing) = (Vec::new(), Vec::new());
    for image in needed {
        if cx.held(&image.reference).await?.is_none() {
            let had = match cx.options.offline {
                true => Err(Error::failed("it is not in Docker, and --offline forbids pulling it")),
                false => {
                    app.ui.say(&format!("pulling {}", image.reference));
                    cx.docker().await?.pull(&image.reference).await
                }
            };
            if let Err(error) = had {
                missing.push((image, error));
                continue;
            }
        }
        here.push(image.reference.clone());
    }
    let fatal: Vec<_> = missing.iter().filter(|(image, _)| image.required || !args.allow_missing).collect();
    if let Some((first, error)) = fatal.first() {
        let names: Vec<&str> = fatal.iter().map(|(image, _)| image.reference.as_str()).collect();
        let error = Error::new(Kind::Preflight, format!("{} cannot be had", names.join(", ")))
            .detail(format!("{error}"))
            .hint(format!("docker pull {}", first.reference));
        return Err(match fatal.iter().any(|(image, _)| image.required) {
            true => error,
            false => error.hint("do without them: --allow-missing"),
        });
    }
    Ok((here, missing.into_iter().map(|(image, _)| image.reference.clone()).collect()))
}

/// The files, fetched if need be. A file of the user's goes along only where it is the very one that would be fetched.
async fn files(app: &App, cx: &Context, needed: &mut Needed) -> Result<Vec<(BundledFile, PathBuf)>> {
    let mut files = Vec::new();
    for file in &needed.files {
        let wanted = &file.wanted;
        let (path, sha256) = match &file.given {
            Some(path) => {
                let mut from = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
                let (sha256, _) = copy_hashed(&mut from, &mut std::io::sink())?;
                if wanted.sha256 != Checksum::Known(sha256.clone()) {
                    let why = format!("{} is a file of your own: take it along", path.display());
                    needed.unknown.push(Unseen { what: file.use_of_it.to_owned(), why });
                    continue;
                }
                (path.clone(), sha256)
            }
            None => match cx.fetcher().get(wanted).await {
                Ok(path) => match cx.fetcher().kept(wanted).await? {
                    Some((path, sha256)) => (path, sha256),
                    None => return Err(Error::failed(format!("{} changed meanwhile", path.display()))),
                },
                Err(error) if file.optional => {
                    app.ui.warn(&format!("{} is not in the file: {error}", wanted.name));
                    let why = format!("{} could not be fetched: it has to be on PATH there", wanted.name);
                    needed.unknown.push(Unseen { what: file.use_of_it.to_owned(), why });
                    continue;
                }
                Err(error) => return Err(error),
            },
        };
        let bundled = BundledFile {
            name: wanted.name.clone(),
            url: crate::redact::without_user(&wanted.url),
            sha256,
            recorded: !matches!(wanted.sha256, Checksum::Known(_)),
            executable: wanted.executable,
        };
        files.push((bundled, path));
    }
    Ok(files)
}

/// Streams the images into the archive, each by a name: what is exported by its digest or its ID has none.
async fn with_images(
    app: &App,
    docker: &Docker,
    archive: Archive,
    references: Vec<String>,
) -> Result<(Archive, Vec<BundledImage>)> {
    let (mut images, mut lent) = (Vec::new(), Vec::new());
    for reference in references {
        let (name, id) = (name_of(&reference), docker.image_id(&reference).await?);
        let there = docker.image_id(&name).await?;
        let id = match (id, &there) {
            (Some(id), _) => id,
            (None, Some(id)) => id.clone(),
            (None, None) => return Err(Error::failed(format!("Docker has no {reference} any more"))),
        };
        match there {
            Some(there) if there == id => {}
            // The name is another image's here: that one must not go along in its place.
            Some(_) => {
                return Err(Error::failed(format!("{name} is another image here than {reference}"))
                    .hint(format!("docker tag {reference} {name}")));
            }
            None => {
                docker.tag(&id, &name).await?;
                lent.push(name.clone());
            }
        }
        images.push(BundledImage { reference, name, id });
    }
    if images.is_empty() {
        return Ok((archive, images));
    }
    let names: Vec<&str> = images.iter().map(|image| image.name.as_str()).collect();
    let written = archive.add_stream(bundle::IMAGES, docker.export(&names), &app.cancel).await;
    for name in lent {
        docker.untag(&name).await?;
    }
    Ok((written?, images))
}
