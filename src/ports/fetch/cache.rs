//! The cache folder without the network: what it has, and what is brought into it.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{Fetcher, Wanted, copy_hashed, first_sha256, set_mode, sha256_of};
use crate::error::{Error, Result, ResultExt};
use crate::ports::dirs;

/// A file that was brought along, as the list of it says.
#[derive(Debug, Clone, Copy)]
pub struct Brought<'a> {
    /// Name in the cache folder.
    pub name: &'a str,
    pub sha256: &'a str,
    /// Whether the checksum was learnt with the file, and is to be remembered.
    pub recorded: bool,
    pub executable: bool,
}

impl Fetcher {
    /// The file and its SHA-256, if the cache has the right one. Nothing is fetched.
    pub async fn kept(&self, wanted: &Wanted) -> Result<Option<(PathBuf, String)>> {
        let (fetcher, wanted) = (self.clone(), wanted.clone());
        tokio::task::spawn_blocking(move || {
            let path = fetcher.path(&wanted);
            match fetcher.known_checksum(&wanted)? {
                Some(expected) if path.exists() && sha256_of(&path)? == expected => Ok(Some((path, expected))),
                _ => Ok(None),
            }
        })
        .await?
    }

    /// Puts a file into the cache, if it is what its checksum says. What was recorded here of another file of that name
    /// stays, and is an error.
    pub fn take(&self, file: Brought, from: &mut impl Read) -> Result<()> {
        let Brought { name, sha256, recorded, executable } = file;
        let mut take = || -> Result<()> {
            if Path::new(name).file_name() != Some(name.as_ref()) || name.starts_with('.') {
                return Err(Error::failed("that is no name for a file in the cache"));
            }
            let record = self.cache.join(format!("{name}.sha256"));
            if recorded
                && let Ok(known) = fs::read_to_string(&record)
                && first_sha256(&known)? != sha256
            {
                return Err(Error::failed(format!("another file was recorded under this name: {}", known.trim()))
                    .hint(format!("if this one is right: rm {}", record.display())));
            }
            dirs::create_private_dir(&self.cache)?;
            let mut kept = tempfile::Builder::new().prefix(".k8tre-").tempfile_in(&self.cache)?;
            let (actual, _) = copy_hashed(from, &mut kept)?;
            if actual != sha256 {
                return Err(Error::failed(format!("its SHA-256 is {actual}, but it should be {sha256}")));
            }
            set_mode(kept.path(), if executable { 0o755 } else { 0o644 })?;
            kept.as_file().sync_all()?;
            if recorded {
                dirs::write_private(&record, format!("{sha256}\n").as_bytes())?;
            }
            kept.persist(self.cache.join(name)).map_err(|error| error.error)?;
            Ok(())
        };
        take().with_context(|| format!("cannot take {} into the cache", name.escape_debug()))
    }
}
