//! Names that reach git's command line: refused when git could take them for something else.

use crate::error::{Error, Result};
use crate::text::one_line;

/// The full name of a branch's reference; refuses what git does not accept or could misread.
pub(super) fn branch_ref(branch: &str) -> Result<String> {
    let name = format!("refs/heads/{branch}");
    if branch.starts_with('-') || branch.chars().any(char::is_control) || !git2::Reference::is_valid_name(&name) {
        let shown = one_line(&branch.escape_debug().to_string(), 60);
        return Err(Error::usage(format!("\"{shown}\" cannot be the name of a git branch")));
    }
    Ok(name)
}

/// Refuses what is no plain name of a remote: options, addresses, paths.
pub(super) fn check_remote(remote: &str) -> Result<()> {
    let plain = |c: char| c.is_alphanumeric() || "-_.+/".contains(c);
    if remote.starts_with(['-', '/', '.']) || !remote.chars().all(plain) || !git2::Remote::is_valid_name(remote) {
        let shown = one_line(&remote.escape_debug().to_string(), 60);
        return Err(Error::usage(format!("\"{shown}\" cannot be the name of a git remote"))
            .hint("name one of the remotes that `git remote` lists"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_odd_characters_are_refused() {
        for branch in [
            "", "-d", "--force", "a b", "a\nb", "a..b", "a:b", "a~1", "a^{}", "@{-1}", "a.lock", "/a", "a//b", "a\u{7}",
        ] {
            assert!(branch_ref(branch).is_err(), "{branch:?}");
        }
        assert_eq!(branch_ref("dev/alice").unwrap(), "refs/heads/dev/alice");
        for remote in ["", "-o", "--upload-pack=x", "ext::sh -c id", "https://h/x", "/tmp/x", "../x", "git@h:x", "a b"]
        {
            assert!(check_remote(remote).is_err(), "{remote:?}");
        }
        assert!(check_remote("origin").is_ok() && check_remote("team/fork-2").is_ok());
    }
}
