//! Which folders and files a git generator means: the patterns of Go's `path.Match` for folders, of `git ls-files`
//! for files.

use std::iter::Peekable;
use std::str::Chars;

/// Whether a folder pattern means this folder. `*` and `?` stay within one segment of the path, and so does `**`:
/// Argo CD's folder patterns know no more. `None` if the pattern is malformed; Argo CD then leaves it out.
pub fn folder(pattern: &str, path: &str) -> Option<bool> {
    let segments: Vec<&str> = pattern.split('/').collect();
    let mut matches = segments.len() == path.split('/').count();
    for (index, segment) in segments.iter().enumerate() {
        let parts = parse(segment, false)?;
        matches = matches && path.split('/').nth(index).is_some_and(|text| glob(&parts, &chars(text)));
    }
    Some(matches)
}

/// Whether a file pattern means this file: a folder means all below it, and `*` crosses `/`, as in git's pathspecs.
pub fn file(pattern: &str, path: &str) -> Option<bool> {
    let pattern = file_pattern(pattern);
    if pattern.is_empty() {
        return Some(true);
    }
    if path == pattern || path.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('/')) {
        return Some(true);
    }
    Some(glob(&parse(pattern, true)?, &chars(path)))
}

/// A file pattern as it begins what it means; empty if that is everything.
pub fn file_pattern(pattern: &str) -> &str {
    let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
    if pattern == "." { "" } else { pattern }
}

/// The part of a pattern before its first special character: what a sorted list can be narrowed to.
pub fn literal_prefix(pattern: &str) -> &str {
    &pattern[..pattern.find(['*', '?', '[', '\\']).unwrap_or(pattern.len())]
}

fn chars(text: &str) -> Vec<char> {
    text.chars().collect()
}

enum Part {
    Any,
    One,
    Literal(char),
    Class { negated: bool, ranges: Vec<(char, char)> },
}

fn parse(pattern: &str, bang: bool) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        parts.push(match c {
            '*' => Part::Any,
            '?' => Part::One,
            '\\' => Part::Literal(chars.next()?),
            '[' => class(&mut chars, bang)?,
            c => Part::Literal(c),
        });
    }
    Some(parts)
}

fn class(chars: &mut Peekable<Chars>, bang: bool) -> Option<Part> {
    let negated = chars.next_if(|c| *c == '^' || (bang && *c == '!')).is_some();
    let mut ranges = Vec::new();
    loop {
        if !ranges.is_empty() && chars.next_if_eq(&']').is_some() {
            return Some(Part::Class { negated, ranges });
        }
        let low = class_char(chars)?;
        let high = if chars.next_if_eq(&'-').is_some() { class_char(chars)? } else { low };
        ranges.push((low, high));
    }
}

fn class_char(chars: &mut Peekable<Chars>) -> Option<char> {
    match chars.next()? {
        '-' | ']' => None,
        '\\' => chars.next(),
        c => Some(c),
    }
}

/// Backtracks to the last `*` only, so the time is bounded by pattern times text.
fn glob(parts: &[Part], text: &[char]) -> bool {
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        let step = match parts.get(p) {
            Some(Part::Any) => {
                star = Some((p, t));
                p += 1;
                continue;
            }
            Some(Part::One) => true,
            Some(Part::Literal(c)) => *c == text[t],
            Some(Part::Class { negated, ranges }) => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&text[t])) != *negated
            }
            None => false,
        };
        match (step, star) {
            (true, _) => (p, t) = (p + 1, t + 1),
            (false, Some((at, from))) => {
                star = Some((at, from + 1));
                (p, t) = (at + 1, from + 1);
            }
            (false, None) => return false,
        }
    }
    parts[p..].iter().all(|part| matches!(part, Part::Any))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_patterns_are_those_of_go() {
        for (pattern, path, expected) in [
            ("apps/*/envs/*", "apps/a/envs/dev", Some(true)),
            ("apps/*/envs/*", "apps/a/b/envs/dev", Some(false)),
            ("apps/*", "apps/a/b", Some(false)),
            ("apps/**", "apps/a/b", Some(false)),
            ("apps/**", "apps/a", Some(true)),
            ("*", "apps", Some(true)),
            ("apps/[a-c]?", "apps/bx", Some(true)),
            ("apps/[^a-c]", "apps/b", Some(false)),
            ("apps/[!a]", "apps/!", Some(true)),
            ("apps/\\*", "apps/*", Some(true)),
            ("apps/a*b*c", "apps/aXbYbZc", Some(true)),
            ("apps/[a", "apps/a", None),
            ("apps/[]a]", "apps/a", None),
            ("apps/a\\", "apps/a", None),
        ] {
            assert_eq!(folder(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn file_patterns_are_those_of_git() {
        for (pattern, path, expected) in [
            ("config/*.json", "config/a/b.json", true),
            ("config/**/c.json", "config/a/b/c.json", true),
            ("config", "config/a.json", true),
            ("config/a.json", "config/a.json", true),
            ("*.yaml", "deep/x.yaml", true),
            ("config/*.json", "config/a.yaml", false),
        ] {
            assert_eq!(file(pattern, path), Some(expected), "{pattern} {path}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        assert_eq!(folder(&"*a".repeat(5_000), &"a".repeat(20_000)), Some(true));
        assert_eq!(folder(&format!("{}b", "*a".repeat(50)), &"a".repeat(20_000)), Some(false));
    }

    proptest::proptest! {
        /// What a sorted list is narrowed to loses nothing.
        #[test]
        fn what_a_pattern_means_begins_as_the_pattern_does(
            pattern in "(\\./)?[ab/*?\\\\.]{0,7}(\\[ab\\])?[ab/]{0,3}", path in "[ab]{1,2}(/[ab.]{1,2}){0,3}",
        ) {
            if file(&pattern, &path) == Some(true) {
                proptest::prop_assert!(path.starts_with(literal_prefix(file_pattern(&pattern))), "{pattern} {path}");
            }
            if folder(&pattern, &path) == Some(true) {
                proptest::prop_assert!(path.starts_with(literal_prefix(&pattern)), "{pattern} {path}");
            }
        }
    }
}
