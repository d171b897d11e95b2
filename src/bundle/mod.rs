//! One file with all that an environment needs from elsewhere, for a machine without a network.
//!
//! It is a tar archive: the fetched files, Docker's own archive of the images, and, last, a list that has the SHA-256 of
//! each part. A file that was cut short has no list, so it is never taken for a whole one.

mod held;
mod read;
mod write;

use serde::{Deserialize, Serialize};

use crate::gitops::unseen::Unseen;

pub use held::{held, remember};
pub use read::Bundle;
pub use write::Archive;

pub const SCHEMA: u32 = 1;
const LIST: &str = "k8tre-bundle.json";
/// The part with the images.
pub const IMAGES: &str = "images.tar";
const FILES: &str = "files/";

/// What is in a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    pub schema: u32,
    /// Version of the program that made it.
    pub k8tre: String,
    pub made: jiff::Timestamp,
    /// What its images and programs run on, as Docker says it.
    pub platform: String,
    pub images: Vec<BundledImage>,
    pub files: Vec<BundledFile>,
    pub parts: Vec<Part>,
    /// Images that were left out.
    pub left_out: Vec<String>,
    /// What an environment may need besides and that could not be known.
    pub unknown: Vec<Unseen>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundledImage {
    /// As it is asked for.
    pub reference: String,
    /// Its name in the archive, without a digest.
    pub name: String,
    /// Docker's ID of it where it was saved.
    pub id: String,
}

/// A file for the cache folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundledFile {
    pub name: String,
    pub url: String,
    pub sha256: String,
    /// Whether nobody publishes the checksum, so that it is remembered with the file.
    pub recorded: bool,
    pub executable: bool,
}

impl BundledFile {
    /// The part that it is.
    pub fn part(&self) -> String {
        format!("{FILES}{}", self.name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub path: String,
    pub sha256: String,
    pub size: u64,
}
