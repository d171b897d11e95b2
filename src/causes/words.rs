//! Words of a cluster, made short and safe to show.

use regex::Regex;

use crate::redact::hide;
use crate::text::one_line;

/// Longest link of a chain: three of them still fit a wide terminal's two lines.
const LINK: usize = 160;

/// One link of a chain: one line, nothing that steers a terminal, no password.
pub fn link(text: &str) -> String {
    one_line(&hide(text), LINK)
}

/// A command to paste: whole, on one line, and as harmless to show as a link.
pub fn command(text: &str) -> String {
    hide(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A word for a shell's command line: what comes from a repository or a cluster must not run anything.
pub fn quoted(word: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_./:@=,+%".contains(c);
    match !word.is_empty() && word.chars().all(safe) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The first group of a pattern in a text.
pub fn group<'a>(pattern: &Regex, text: &'a str) -> Option<&'a str> {
    pattern.captures(text).and_then(|found| found.get(1)).map(|found| found.as_str())
}

/// A constant pattern, compiled once.
macro_rules! pattern {
    ($text:expr) => {{
        static PATTERN: std::sync::LazyLock<regex::Regex> =
            std::sync::LazyLock::new(|| regex::Regex::new($text).expect("a constant"));
        &*PATTERN
    }};
}
pub(crate) use pattern;

/// What comes after the last `: ` that stands outside quotes, where programs written in Go put the
/// reason; the whole text if there is none.
pub fn innermost(text: &str) -> &str {
    // Some reasons end with the place for one that is empty.
    let text = text.trim().trim_end_matches([':', '.', ' ']);
    let (mut quoted, mut start, mut before) = (false, 0, ' ');
    for (at, c) in text.char_indices() {
        match c {
            '"' | '`' => quoted = !quoted,
            ' ' if before == ':' && !quoted => start = at + 1,
            _ => {}
        }
        before = c;
    }
    &text[start..]
}

/// What could not be read: a repository that a kustomization names, or else the Application's own.
pub fn unreadable(app: &serde_json::Value, message: &str) -> String {
    let base = group(pattern!(r"failed to run '\S*git fetch [^']*?([a-z+]+://[^\s']+)"), message);
    match base {
        Some(base) => {
            let path = app["spec"]["source"]["path"].as_str().unwrap_or(".");
            format!("{base}, which a kustomization of {path} names, cannot be read")
        }
        None => format!("{} cannot be read", app["spec"]["source"]["repoURL"].as_str().unwrap_or("the repository")),
    }
}

/// The name that a text says cannot be resolved.
pub fn unresolved(text: &str) -> Option<&str> {
    group(
        pattern!(r"lookup ([^\s:]+)(?: on \S+)?: (?:no such host|server misbehaving|Temporary failure|(?:read|dial) udp .*(?:i/o timeout|refused|unreachable))"),
        text,
    )
    .or_else(|| group(pattern!(r"(?i)could not resolve host(?:name)?:? '?([^\s;']+)"), text))
    .or_else(|| group(pattern!(r"(?i)unable to look ?up (\S+)"), text))
    .or_else(|| group(pattern!(r#"(?i)could not translate host name "([^"]+)""#), text))
    .or_else(|| group(pattern!(r"getaddrinfo (?:ENOTFOUND|EAI_AGAIN) (\S+)"), text))
    .or_else(|| group(pattern!(r"(?i)(name or service not known|temporary failure in name resolution)"), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pasted_words_run_nothing() {
        assert_eq!(quoted("apps/hub:1"), "apps/hub:1");
        assert_eq!(quoted("a;rm -rf $HOME"), "'a;rm -rf $HOME'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }

    #[test]
    fn the_reason_is_what_comes_last() {
        assert_eq!(innermost("a: b: dial tcp 1.2.3.4:1: connection refused"), "connection refused");
        assert_eq!(innermost(r#"a: "x: y""#), r#""x: y""#);
        assert_eq!(innermost("failed to list refs: authentication required: "), "authentication required");
        assert_eq!(innermost("alone"), "alone");
    }

    #[test]
    fn the_name_that_does_not_resolve_is_found() {
        for (text, name) in [
            ("dial tcp: lookup db.x on 10.96.0.10:53: no such host", "db.x"),
            ("lookup db on 10.96.0.10:53: read udp 10.244.0.5:40->10.96.0.10:53: i/o timeout", "db"),
            ("fatal: unable to access: Could not resolve host: git.nowhere.invalid", "git.nowhere.invalid"),
            (r#"could not translate host name "pg" to address"#, "pg"),
            ("Error: getaddrinfo ENOTFOUND redis", "redis"),
        ] {
            assert_eq!(unresolved(text), Some(name));
        }
        assert_eq!(unresolved("lookup of the table failed"), None);
    }
}
