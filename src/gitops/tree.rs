//! The files of a repository, wherever they are: in memory, in a folder, in a git commit.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result, ResultExt};

/// A read-only tree of files.
pub trait Tree: Send + Sync {
    /// Path of every file, '/'-separated, sorted.
    fn paths(&self) -> &[String];

    /// Content of one file of [`Tree::paths`].
    fn read(&self, path: &str) -> Result<Vec<u8>>;

    /// Whether there is a file of this path.
    fn contains(&self, path: &str) -> bool {
        self.paths().binary_search_by(|p| p.as_str().cmp(path)).is_ok()
    }

    /// The files below a folder, by their whole path.
    fn below(&self, folder: &str) -> &[String] {
        let paths = self.paths();
        let prefix = format!("{}/", folder.trim_end_matches('/'));
        if prefix == "/" || prefix == "./" {
            return paths;
        }
        let start = paths.partition_point(|p| p.as_str() < prefix.as_str());
        let length = paths[start..].iter().take_while(|p| p.starts_with(&prefix)).count();
        &paths[start..start + length]
    }
}

/// Files in memory, alone or laid over another tree, whose files they replace.
#[derive(Default)]
pub struct MemoryTree<'a> {
    base: Option<&'a dyn Tree>,
    files: BTreeMap<String, Vec<u8>>,
    paths: Vec<String>,
}

impl<'a> MemoryTree<'a> {
    pub fn new<P: Into<String>, C: Into<Vec<u8>>>(files: impl IntoIterator<Item = (P, C)>) -> Self {
        let files: BTreeMap<String, Vec<u8>> = files.into_iter().map(|(p, c)| (p.into(), c.into())).collect();
        MemoryTree { base: None, paths: files.keys().cloned().collect(), files }
    }

    /// The base with these files added or replaced.
    pub fn over<P: Into<String>, C: Into<Vec<u8>>>(
        base: &'a dyn Tree,
        files: impl IntoIterator<Item = (P, C)>,
    ) -> Self {
        let mut tree = Self::new(files);
        tree.paths.extend(base.paths().iter().filter(|p| !tree.files.contains_key(*p)).cloned());
        tree.paths.sort();
        tree.base = Some(base);
        tree
    }
}

impl Tree for MemoryTree<'_> {
    fn paths(&self) -> &[String] {
        &self.paths
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        match (self.files.get(path), self.base) {
            (Some(content), _) => Ok(content.clone()),
            (None, Some(base)) => base.read(path),
            (None, None) => Err(Error::not_found(format!("there is no file {path}"))),
        }
    }
}

/// A folder on disk. The listing is made once; `.git` and links that lead out of the folder are left out.
pub struct FolderTree {
    root: PathBuf,
    paths: Vec<String>,
}

/// A repository of manifests is far below this; something far above is not one.
const MAX_FILES: usize = 200_000;
const MAX_DEPTH: usize = 64;
const MAX_FILE: u64 = 8 << 20;

impl FolderTree {
    pub fn open(folder: &Path) -> Result<Self> {
        let root = folder.canonicalize().with_context(|| format!("cannot open the folder {}", folder.display()))?;
        if !root.is_dir() {
            return Err(Error::usage(format!("{} is not a folder", folder.display())));
        }
        let mut tree = FolderTree { paths: Vec::new(), root };
        tree.list(&tree.root.clone(), "", 0)?;
        tree.paths.sort();
        Ok(tree)
    }

    fn list(&mut self, folder: &Path, prefix: &str, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(Error::failed(format!("{} nests folders more than {MAX_DEPTH} deep", self.root.display())));
        }
        for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let entry = entry?;
            // A name that is not UTF-8 cannot be named in a manifest, so nothing refers to it.
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name == ".git" {
                continue;
            }
            let path = format!("{prefix}{name}");
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.list(&entry.path(), &format!("{path}/"), depth + 1)?;
            } else if kind.is_file() || self.leads_to_file_inside(&entry.path()) {
                self.paths.push(path);
            }
            if self.paths.len() > MAX_FILES {
                return Err(Error::failed(format!("{} has more than {MAX_FILES} files", self.root.display()))
                    .hint("name the folder of the TRE repository itself: --repo PATH"));
            }
        }
        Ok(())
    }

    /// Links to folders are not followed: git does not either, and they can form circles.
    fn leads_to_file_inside(&self, link: &Path) -> bool {
        link.canonicalize().is_ok_and(|target| target.starts_with(&self.root) && target.is_file())
    }
}

impl Tree for FolderTree {
    fn paths(&self) -> &[String] {
        &self.paths
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        if !self.contains(path) {
            return Err(Error::not_found(format!("there is no file {path} in {}", self.root.display())));
        }
        let file = self.root.join(path);
        // Looked at again, because a link may have changed since the listing.
        let inside = file.canonicalize().is_ok_and(|target| target.starts_with(&self.root));
        if !inside {
            return Err(Error::failed(format!("{path} leads out of {}", self.root.display())));
        }
        let size = fs::metadata(&file).with_context(|| format!("cannot read {path}"))?.len();
        if size > MAX_FILE {
            return Err(Error::failed(format!("{path} has {size} bytes, more than {MAX_FILE}")));
        }
        fs::read(&file).with_context(|| format!("cannot read {path}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_replaces_and_adds() {
        let base = MemoryTree::new([("a/x", "1"), ("b", "1")]);
        let layer = MemoryTree::over(&base, [("b", "2"), ("a/y", "2")]);
        assert_eq!(layer.paths(), ["a/x", "a/y", "b"]);
        assert_eq!(layer.read("b").unwrap(), b"2");
        assert_eq!(layer.read("a/x").unwrap(), b"1");
        assert_eq!(layer.below("a"), ["a/x", "a/y"]);
        assert!(layer.read("c").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_out_of_the_folder_are_not_files_of_it() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "s").unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".git")).unwrap();
        fs::write(folder.path().join(".git/config"), "").unwrap();
        fs::write(folder.path().join("in"), "i").unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), folder.path().join("out")).unwrap();
        std::os::unix::fs::symlink("in", folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink("..", folder.path().join("loop")).unwrap();
        let tree = FolderTree::open(folder.path()).unwrap();
        assert_eq!(tree.paths(), ["in", "link"]);
        assert_eq!(tree.read("link").unwrap(), b"i");
        fs::remove_file(folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), folder.path().join("link")).unwrap();
        assert!(tree.read("link").is_err(), "a link that changed since the listing");
    }
}
