//! Git repositories: read as objects, changed without touching the checkout, published with the user's git.
//!
//! libgit2 reads objects and writes blobs and trees. Everything in which the user's settings have a
//! say (identity, signing, agents, credential helpers, host keys, hooks) is done by the `git` program,
//! so that it comes out as `git commit` and `git push` would do it there.

mod branch;
mod checkout;
mod clone;
mod commit;
mod create;
mod credentials;
mod delete;
mod folder;
mod merge;
mod names;
mod network;
mod publish;
mod rebase;
mod remote;
mod run;
mod snapshot;
mod tree;
mod watched;

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

pub use crate::redact::redacted;
pub use branch::{BaseMoved, BranchTip, Change, Overlay};
pub use checkout::{AheadBehind, Checkout, DirtySummary, Identity};
pub use clone::{clone_repository, user};
pub use commit::Owner;
pub use create::{CreatedAs, create_repository};
pub use credentials::Login;
pub use delete::Removal;
pub use folder::Part;
pub use merge::{TreeId, kept_ref};
pub use publish::{Lease, Pushed, Remains};
pub use rebase::Rebased;
pub use remote::{PushTarget, Readable};
pub use run::check_version;
pub use snapshot::Snapshot;
pub use tree::CommitTree;
pub use watched::Busy;

/// The name of a commit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(git2::Oid);

impl CommitId {
    /// As short as people write it.
    pub fn short(&self) -> String {
        self.to_string()[..10].to_owned()
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for CommitId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        // libgit2 pads a shortened name with zeros, which would be another commit.
        match git2::Oid::from_str(text) {
            Ok(id) if text.len() == 40 => Ok(CommitId(id)),
            _ => Err(Error::failed(format!("\"{}\" is not the name of a commit", crate::text::one_line(text, 60)))),
        }
    }
}

/// libgit2's error in its own words, without the numbers of its classes.
fn said(error: git2::Error) -> Error {
    Error::failed(redacted(error.message()))
}
