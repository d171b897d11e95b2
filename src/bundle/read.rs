//! A bundle that somebody brought: nothing in it is used before all of it is what its list says.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::{IMAGES, LIST, List, Part, SCHEMA};
use crate::error::{Error, Result, ResultExt};
use crate::ports::docker::Docker;
use crate::ports::fetch::{Brought, Fetcher, copy_hashed};

const LIST_LIMIT: u64 = 16 << 20;

/// A bundle whose list was read.
#[derive(Debug, Clone)]
pub struct Bundle {
    pub path: PathBuf,
    pub list: List,
    /// Where each part begins.
    places: BTreeMap<String, u64>,
}

impl Bundle {
    /// Reads the list, and looks whether each part is there in its whole length.
    pub fn open(path: &Path) -> Result<Bundle> {
        read(path).with_context(|| format!("{} cannot be used as a bundle", path.display()))
    }

    /// Whether it has an image.
    pub fn has_image(&self, reference: &str) -> bool {
        self.list.images.iter().any(|image| image.reference == reference)
    }

    /// Whether it has a file for the cache folder.
    pub fn has_file(&self, name: &str) -> bool {
        self.list.files.iter().any(|file| file.name == name)
    }

    /// Compares every part with its checksum. For a thread that may block.
    pub fn verify(&self) -> Result<()> {
        for part in &self.list.parts {
            let (actual, _) = copy_hashed(&mut self.read(part)?, &mut std::io::sink())?;
            if actual != part.sha256 {
                return Err(Error::failed(format!(
                    "{} is damaged: the SHA-256 of {} is {actual}, but it should be {}",
                    self.path.display(),
                    part.path,
                    part.sha256
                ))
                .hint("copy it again, or make it again: k8tre images save FILE"));
            }
        }
        Ok(())
    }

    /// Brings its files into the cache folder. For a thread that may block.
    pub fn bring_files(&self, fetcher: &Fetcher) -> Result<()> {
        for file in &self.list.files {
            let part = self.part(&file.part())?;
            let brought = Brought {
                name: &file.name,
                sha256: &file.sha256,
                recorded: file.recorded,
                executable: file.executable,
            };
            fetcher.take(brought, &mut self.read(part)?)?;
        }
        Ok(())
    }

    /// Whether Docker holds all its images already, each the very same.
    pub async fn is_loaded(&self, docker: &Docker) -> Result<bool> {
        for image in &self.list.images {
            if docker.image_id(&image.name).await?.as_ref() != Some(&image.id) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Gives its images to Docker, unless that has them.
    pub async fn load_images(&self, docker: &Docker) -> Result<()> {
        if self.list.images.is_empty() || self.is_loaded(docker).await? {
            return Ok(());
        }
        let part = self.part(IMAGES)?;
        let mut file = tokio::fs::File::open(&self.path).await?;
        tokio::io::AsyncSeekExt::seek(&mut file, SeekFrom::Start(self.place(part)?)).await?;
        docker.load_archive(tokio::io::AsyncReadExt::take(file, part.size)).await?;
        for image in &self.list.images {
            if !docker.image_present(&image.name).await? {
                return Err(Error::failed(format!(
                    "Docker has no {} after it has loaded {}",
                    image.name,
                    self.path.display()
                )));
            }
        }
        Ok(())
    }

    fn part(&self, path: &str) -> Result<&Part> {
        let part = self.list.parts.iter().find(|part| part.path == path);
        part.ok_or_else(|| Error::failed(format!("{} has no {path}", self.path.display())))
    }

    fn place(&self, part: &Part) -> Result<u64> {
        let place = self.places.get(&part.path).copied();
        place.ok_or_else(|| Error::failed(format!("{} has no {}", self.path.display(), part.path)))
    }

    fn read(&self, part: &Part) -> Result<impl Read> {
        let mut file = File::open(&self.path).with_context(|| format!("cannot read {}", self.path.display()))?;
        file.seek(SeekFrom::Start(self.place(part)?))?;
        Ok(file.take(part.size))
    }
}

fn read(path: &Path) -> Result<Bundle> {
    let no_bundle = || {
        Error::usage("it is no bundle of k8tre's, or it was cut short: there is no list in it")
            .hint("make one where there is a network: k8tre images save FILE")
    };
    let length = File::open(path)?.metadata()?.len();
    let mut archive = tar::Archive::new(File::open(path)?);
    let (mut sizes, mut places, mut list) = (BTreeMap::new(), BTreeMap::new(), None);
    for entry in archive.entries_with_seek()? {
        let Ok(mut entry) = entry else { return Err(no_bundle()) };
        let name = entry.path().map_err(|_| no_bundle())?.display().to_string();
        if name == LIST {
            let mut text = Vec::new();
            entry.by_ref().take(LIST_LIMIT).read_to_end(&mut text)?;
            list = Some(text);
        }
        if entry.raw_file_position() + entry.size() > length {
            return Err(no_bundle());
        }
        sizes.insert(name.clone(), entry.size());
        places.insert(name, entry.raw_file_position());
    }
    let text = list.ok_or_else(no_bundle)?;
    let schema = serde_json::from_slice::<serde_json::Value>(&text).ok().and_then(|list| list["schema"].as_u64());
    if schema.is_some_and(|schema| schema != u64::from(SCHEMA)) {
        return Err(Error::usage(format!("it is of another format than this k8tre reads ({SCHEMA})"))
            .hint("make it again with this version: k8tre images save FILE"));
    }
    let list: List = serde_json::from_slice(&text).context("its list cannot be read")?;
    for part in &list.parts {
        if sizes.get(&part.path) != Some(&part.size) {
            return Err(Error::usage(format!("{} is not as long as its list says", part.path)));
        }
    }
    Ok(Bundle { path: path.to_owned(), list, places })
}
