//! The archive: written beside its final place, readable by its owner alone, bounded in size.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::error::{Error, Result, ResultExt};
use crate::redact::Redactor;

/// One file of the archive; what is longer keeps its end.
const FILE: usize = 2 << 20;
/// All files of the archive, before they are compressed.
const ALL: usize = 96 << 20;

pub struct Archive {
    tar: tar::Builder<GzEncoder<NamedTempFile>>,
    path: PathBuf,
    folder: String,
    pub redactor: Redactor,
    left: usize,
    missing: Vec<String>,
    time: u64,
}

impl Archive {
    pub fn create(path: &Path, folder: &str) -> Result<Archive> {
        let beside = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = tempfile::Builder::new()
            .prefix(".k8tre-")
            .make_in(beside, |p| OpenOptions::new().write(true).create_new(true).mode(0o600).open(p))
            .with_context(|| format!("cannot write {}", path.display()))
            .hint("name another place: --file FILE")?;
        Ok(Archive {
            tar: tar::Builder::new(GzEncoder::new(file, Compression::default())),
            path: path.to_owned(),
            folder: folder.to_owned(),
            redactor: Redactor::default(),
            left: ALL,
            missing: Vec::new(),
            time: u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or(0),
        })
    }

    /// Adds a text without its secrets.
    pub fn text(&mut self, name: &str, text: &str) -> Result<()> {
        // Redacted as a whole: a key that is cut in two would not be recognised.
        let text = self.redactor.text(text);
        self.add(name, &text)
    }

    pub fn json(&mut self, name: &str, value: &impl Serialize) -> Result<()> {
        let value: Value = self.redactor.json(&serde_json::to_value(value)?);
        let text = serde_json::to_string_pretty(&value)?;
        self.add(name, &text)
    }

    /// Says in the archive what is not in it.
    pub fn missing(&mut self, what: &str, error: &Error) {
        self.missing.push(format!("{what}: {error}"));
    }

    /// Adds what came of an attempt, or why nothing did.
    pub fn attempt<T>(&mut self, what: &str, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.missing(what, &error)).ok()
    }

    fn add(&mut self, name: &str, text: &str) -> Result<()> {
        let cut = text.len().saturating_sub(FILE);
        let from = (cut..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        let head = if from > 0 { format!("[the first {from} bytes are left out]\n") } else { String::new() };
        let size = head.len() + text.len() - from;
        if size > self.left {
            self.missing.push(format!("{name}: the archive is full"));
            return Ok(());
        }
        self.left -= size;
        let mut header = tar::Header::new_gnu();
        header.set_size(size as u64);
        header.set_mode(0o600);
        header.set_mtime(self.time);
        let content = head.as_bytes();
        let rest = &text.as_bytes()[from..];
        let path = format!("{}/{name}", self.folder);
        self.tar
            .append_data(&mut header, path, std::io::Read::chain(content, rest))
            .with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Puts it in its place; returns what could not be had.
    pub fn finish(mut self) -> Result<Vec<String>> {
        let missing = std::mem::take(&mut self.missing);
        if !missing.is_empty() {
            self.left = self.left.max(FILE);
            self.text("MISSING.txt", &missing.join("\n"))?;
        }
        let shown = self.path.display().to_string();
        let finish = || -> Result<()> {
            let mut file = self.tar.into_inner()?.finish()?;
            file.flush()?;
            file.as_file().sync_all()?;
            file.persist(&self.path).map_err(|error| error.error)?;
            Ok(())
        };
        finish().with_context(|| format!("cannot write {shown}"))?;
        Ok(missing)
    }
}
