//! Where k8tre keeps things, and files that only their owner can read.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result, ResultExt};
use crate::ports::environment;

/// The platform's folders for this program.
#[derive(Debug, Clone)]
pub struct Dirs {
    /// Journals and kubeconfigs: what must not be lost.
    pub data: PathBuf,
    /// Fetched programs and manifests: what can be fetched again.
    pub cache: PathBuf,
    /// The user's settings file.
    pub config: PathBuf,
}

impl Dirs {
    pub fn find() -> Result<Dirs> {
        let from_variable = |name: &str| environment::var_os(name).map(PathBuf::from);
        Dirs::of(from_variable, directories::ProjectDirs::from("", "", "k8tre").as_ref())
    }

    fn of(
        from_variable: impl Fn(&str) -> Option<PathBuf>,
        platform: Option<&directories::ProjectDirs>,
    ) -> Result<Dirs> {
        let folder = |variable, pick: fn(&directories::ProjectDirs) -> &Path| {
            from_variable(variable).or_else(|| platform.map(|dirs| pick(dirs).to_owned())).ok_or_else(|| {
                Error::usage("there is no home folder to keep the environments' journals in")
                    .hint(format!("set HOME, or name a folder: export {variable}=/path/to/folder"))
            })
        };
        Ok(Dirs {
            data: folder("K8TRE_DATA_DIR", |dirs| dirs.data_dir())?,
            cache: folder("K8TRE_CACHE_DIR", |dirs| dirs.cache_dir())?,
            config: folder("K8TRE_CONFIG_DIR", |dirs| dirs.config_dir())?,
        })
    }

    pub fn environments(&self) -> PathBuf {
        self.data.join("environments")
    }

    /// The folder of one environment: journal, lock, kubeconfig.
    pub fn environment(&self, name: &str) -> PathBuf {
        self.environments().join(name)
    }

    /// The environment's own kubeconfig.
    pub fn kubeconfig(&self, name: &str) -> PathBuf {
        self.environment(name).join("kubeconfig")
    }
}

/// Creates a folder that only its owner can enter, whatever the umask.
pub fn create_private_dir(path: &Path) -> Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .with_context(|| format!("cannot create the folder {}", path.display()))
}

/// Removes a file; fine when it is not there.
pub fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Writes a file as a whole or not at all, readable by its owner alone: a new file beside it, forced
/// to disk, then renamed over the old one.
pub fn write_private(path: &Path, content: &[u8]) -> Result<()> {
    write_whole(path, content, 0o600)
}

/// The same with other rights.
pub fn write_whole(path: &Path, content: &[u8], mode: u32) -> Result<()> {
    let write = || -> Result<()> {
        let folder = path.parent().ok_or_else(|| Error::failed("it has no folder"))?;
        create_private_dir(folder)?;
        let mut file = tempfile::Builder::new()
            .prefix(".k8tre-")
            .make_in(folder, |p| fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(p))?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|e| e.error)?;
        fs::File::open(folder).and_then(|folder| folder.sync_all())?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_home_folder_the_variables_do_and_else_the_error_names_them() {
        let dirs = Dirs::of(|name| Some(PathBuf::from("/k8tre").join(name)), None).unwrap();
        assert_eq!(dirs.data, Path::new("/k8tre/K8TRE_DATA_DIR"));
        let error = Dirs::of(|name| (name == "K8TRE_DATA_DIR").then(PathBuf::new), None).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(
            error.hints().iter().any(|hint| hint.contains("HOME") && hint.contains("K8TRE_CACHE_DIR")),
            "{error:?}"
        );
    }
}
