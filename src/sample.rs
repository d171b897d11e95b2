//! provisional
use crate::ports::dirs::Dirs;
use std::path::{Path, PathBuf};
pub fn default_folder(dirs: &Dirs) -> PathBuf {
    dirs.data.join("sample-tre")
}
pub fn is_sample(_p: &Path) -> bool {
    false
}
