//! Names of environments: one rule for what a person types, and one for what is derived from it.
//!
//! A name becomes a DNS label, a label value, a git branch and part of Application names, so the
//! strictest of these decides. Nothing is altered silently: an unusable name is refused with a
//! proposal, and only text that nobody typed as a name (a git identity) is slugged.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// Long enough for `first-last-feature`, short enough that `root-app-of-apps-<name>` and
/// `<app>-dev-<name>` stay below Kubernetes' 63 characters.
pub const MAX_NAME: usize = 30;

/// Name of an environment: lower-case letters, digits and inner dashes, first a letter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EnvName(String);

impl EnvName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The branch that carries the environment's overlay.
    pub fn branch(&self) -> String {
        format!("dev/{}", self.0)
    }

    /// Value of the `environment` label, and name of the env folders.
    pub fn environment(&self) -> String {
        format!("dev-{}", self.0)
    }

    /// Name of the kind cluster. The prefix keeps it apart from clusters that people make by hand.
    pub fn cluster(&self) -> String {
        format!("k8tre-{}", self.0)
    }

    pub fn root_application(&self) -> String {
        format!("root-app-of-apps-{}", self.0)
    }

    pub fn project(&self) -> String {
        format!("dev-{}", self.0)
    }
}

impl fmt::Display for EnvName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for EnvName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match problem(text) {
            None => Ok(EnvName(text.to_owned())),
            Some(problem) => {
                let shown: String = text.chars().take(40).flat_map(char::escape_debug).collect();
                let error = Error::usage(format!("\"{shown}\" cannot be the name of an environment: {problem}"))
                    .hint("names are lower-case letters, digits and dashes, and start with a letter: alice, alice-gpu");
                Err(match text.trim().is_empty() {
                    true => error,
                    false => error.hint(format!("for example: {}", slug(text))),
                })
            }
        }
    }
}

impl TryFrom<String> for EnvName {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<EnvName> for String {
    fn from(name: EnvName) -> String {
        name.0
    }
}

fn problem(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("it is empty".into());
    }
    if text.chars().count() > MAX_NAME {
        return Some(format!("it has {} characters, at most {MAX_NAME} are possible", text.chars().count()));
    }
    if let Some(c) = text.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '-')) {
        return Some(format!("it contains '{}'", c.escape_debug()));
    }
    if !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Some("it does not start with a letter".into());
    }
    if text.ends_with('-') {
        return Some("it ends with a dash".into());
    }
    None
}

/// A usable name for any text. Text that is a usable name is kept; everything else gets a hash of
/// the original, so that two different texts never end up with the same name. Text that already
/// looks like the result is hashed again for the same reason.
pub fn slug(text: &str) -> EnvName {
    let hashed =
        text.rsplit_once('-').is_some_and(|(_, end)| end.len() == 8 && end.bytes().all(|b| b.is_ascii_hexdigit()));
    if problem(text).is_none() && !hashed {
        return EnvName(text.to_owned());
    }
    let mut words = String::new();
    for c in text.chars().map(|c| c.to_ascii_lowercase()) {
        match c {
            'a'..='z' | '0'..='9' => words.push(c),
            _ if !words.is_empty() && !words.ends_with('-') => words.push('-'),
            _ => {}
        }
    }
    let words = words.trim_start_matches(|c: char| !c.is_ascii_lowercase()).trim_end_matches('-');
    let hash = Sha256::digest(text.as_bytes());
    let hash: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let stem: String = words.chars().take(MAX_NAME - hash.len() - 1).collect();
    let stem = stem.trim_end_matches('-');
    EnvName(format!("{}-{hash}", if stem.is_empty() { "env" } else { stem }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn unusable_names_say_what_is_wrong_and_what_would_do() {
        for (name, said) in [
            ("", "it is empty"),
            ("a/b", "contains '/'"),
            ("a.b", "contains '.'"),
            ("Alice", "contains 'A'"),
            ("🦀", "contains '🦀'"),
            ("-a", "does not start with a letter"),
            ("a-", "ends with a dash"),
            ("1a", "does not start with a letter"),
            ("a\n", "contains '\\n'"),
        ] {
            let error = name.parse::<EnvName>().unwrap_err();
            assert!(error.to_string().contains(said), "{name}: {error}");
            assert_eq!(error.exit_code(), 2);
        }
        let long = "a".repeat(80).parse::<EnvName>().unwrap_err();
        assert!(long.to_string().contains("80 characters"), "{long}");
    }

    proptest! {
        #[test]
        fn every_slug_is_a_usable_name(text in ".*") {
            let name = slug(&text);
            prop_assert!(name.as_str().parse::<EnvName>().is_ok(), "{text:?} gave {name}");
        }

        #[test]
        fn different_texts_get_different_names(a in ".{0,80}", b in ".{0,80}") {
            prop_assume!(a != b);
            prop_assert_ne!(slug(&a), slug(&b));
            prop_assert_ne!(slug(slug(&a).as_str()), slug(&b));
        }
    }
}
