//! A bundle on its way to disk: each part as it comes, whatever its length; under its name only when it is whole.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::{Stream, StreamExt};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use tokio_util::sync::CancellationToken;

use super::{LIST, List, Part};
use crate::error::{Error, Result, ResultExt};
use crate::text::hex;

/// Nothing comes for so long: whoever sends it hangs.
const SILENCE: Duration = Duration::from_secs(120);
/// Pieces that wait to be written.
const AHEAD: usize = 8;
const BLOCK: u64 = 512;

/// An archive that is being written beside its place.
pub struct Archive {
    path: PathBuf,
    file: NamedTempFile,
    parts: Vec<Part>,
}

/// A part whose length is not known yet.
struct Open {
    path: String,
    header: u64,
    hash: Sha256,
    size: u64,
}

impl Archive {
    pub fn create(path: &Path) -> Result<Archive> {
        let path = std::path::absolute(path)?;
        let folder = path.parent().ok_or_else(|| Error::usage("a bundle needs the name of a file"))?;
        let file = tempfile::Builder::new()
            .prefix(".k8tre-")
            .tempfile_in(folder)
            .with_context(|| format!("cannot write into {}", folder.display()))?;
        Ok(Archive { path, file, parts: Vec::new() })
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    pub fn add(&mut self, path: &str, from: &mut impl Read) -> Result<()> {
        let mut part = self.begin(path)?;
        let mut buffer = vec![0; 256 << 10];
        loop {
            match from.read(&mut buffer)? {
                0 => return self.end(part),
                read => self.write(&mut part, &buffer[..read])?,
            }
        }
    }

    /// Adds a part as it streams in. It is written on a thread of its own, and no more of it is held than a few pieces.
    pub async fn add_stream<B>(
        mut self,
        path: &str,
        stream: impl Stream<Item = std::io::Result<B>>,
        cancel: &CancellationToken,
    ) -> Result<Archive>
    where
        B: AsRef<[u8]> + Send + 'static,
    {
        let (to, mut from) = tokio::sync::mpsc::channel::<B>(AHEAD);
        let name = path.to_owned();
        let writing = tokio::task::spawn_blocking(move || -> Result<Archive> {
            let mut part = self.begin(&name)?;
            while let Some(piece) = from.blocking_recv() {
                self.write(&mut part, piece.as_ref())?;
            }
            self.end(part)?;
            Ok(self)
        });
        let feed = async {
            let mut stream = std::pin::pin!(stream);
            loop {
                let next = tokio::time::timeout(SILENCE, stream.next()).await;
                let silence = || Error::failed(format!("nothing came for {} s", SILENCE.as_secs()));
                let Some(piece) = next.map_err(|_| silence())? else { return Ok(()) };
                if to.send(piece?).await.is_err() {
                    // Writing has failed, and says itself why.
                    return Ok(());
                }
            }
        };
        let fed: Result<()> = tokio::select! {
            fed = feed => fed,
            () = cancel.cancelled() => Err(Error::interrupted()),
        };
        drop(to);
        // Waited for in any case: the file is removed when the thread lets go of it.
        let written = writing.await?;
        fed.with_context(|| format!("cannot read what is to be {path}"))?;
        written
    }

    fn begin(&mut self, path: &str) -> Result<Open> {
        let header = self.file.stream_position()?;
        self.file.write_all(&[0; BLOCK as usize])?;
        Ok(Open { path: path.to_owned(), header, hash: Sha256::new(), size: 0 })
    }

    fn write(&mut self, part: &mut Open, bytes: &[u8]) -> Result<()> {
        part.hash.update(bytes);
        part.size += bytes.len() as u64;
        self.file.write_all(bytes).with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Fills the part up to whole blocks, and goes back to say how long it has become.
    fn end(&mut self, part: Open) -> Result<()> {
        let padding = part.size.next_multiple_of(BLOCK) - part.size;
        self.file.write_all(&vec![0; padding as usize])?;
        let mut header = tar::Header::new_gnu();
        header.set_path(&part.path).with_context(|| format!("{} is no path for a part", part.path))?;
        header.set_size(part.size);
        header.set_mode(0o644);
        header.set_mtime(jiff::Timestamp::now().as_second().unsigned_abs());
        header.set_cksum();
        self.file.seek(SeekFrom::Start(part.header))?;
        self.file.write_all(header.as_bytes())?;
        self.file.seek(SeekFrom::End(0))?;
        self.parts.push(Part { path: part.path, sha256: hex(&part.hash.finalize()), size: part.size });
        Ok(())
    }

    /// Adds the list, forces all to disk and gives the file its name. Tells its length.
    pub fn finish(mut self, list: &List) -> Result<u64> {
        let list = List { parts: self.parts.clone(), ..list.clone() };
        self.add(LIST, &mut serde_json::to_vec_pretty(&list)?.as_slice())?;
        self.file.write_all(&[0; 2 * BLOCK as usize])?;
        self.file.as_file().sync_all()?;
        let size = self.file.as_file().metadata()?.len();
        let path = self.path.clone();
        self.file
            .persist(&path)
            .map_err(|error| error.error)
            .with_context(|| format!("cannot write {}", path.display()))?;
        if let Some(folder) = path.parent() {
            fs::File::open(folder).and_then(|folder| folder.sync_all())?;
        }
        Ok(size)
    }
}
