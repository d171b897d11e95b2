//! sprig's functions of text.

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine as _};
use gotmpl::Value;
use regex::{Regex, RegexBuilder};
use sha2::{Digest, Sha256, Sha512};

use super::{Registry, arity, fail, list, str, whole};
use crate::gitops::params;

/// No text that a template makes is longer.
const MAX_TEXT: usize = 1 << 20;

pub(super) fn register(functions: &mut Registry) {
    functions.text("lower", |[s]| Ok(s.to_lowercase().into()));
    functions.text("upper", |[s]| Ok(s.to_uppercase().into()));
    functions.text("title", |[s]| Ok(title(s).into()));
    functions.text("untitle", |[s]| Ok(first_letters(s, char::is_whitespace, |c| c.to_lowercase().collect()).into()));
    functions.text("trim", |[s]| Ok(s.trim().into()));
    for name in ["trimAll", "trimall"] {
        functions.text(name, |[cut, s]| Ok(s.trim_matches(|c| cut.contains(c)).into()));
    }
    functions.text("trimPrefix", |[prefix, s]| Ok(s.strip_prefix(prefix).unwrap_or(s).into()));
    functions.text("trimSuffix", |[suffix, s]| Ok(s.strip_suffix(suffix).unwrap_or(s).into()));
    functions.text("contains", |[part, s]| Ok(Value::Bool(s.contains(part))));
    functions.text("hasPrefix", |[prefix, s]| Ok(Value::Bool(s.starts_with(prefix))));
    functions.text("hasSuffix", |[suffix, s]| Ok(Value::Bool(s.ends_with(suffix))));
    functions.text("nospace", |[s]| Ok(s.split_whitespace().collect::<String>().into()));
    functions.text("b64enc", |[s]| Ok(STANDARD.encode(s).into()));
    functions.text("b64dec", |[s]| match STANDARD.decode(s).map(String::from_utf8) {
        Ok(Ok(text)) => Ok(text.into()),
        Ok(Err(_)) => Err(fail("the decoded bytes are not text")),
        // sprig gives Go's words as the result.
        Err(DecodeError::InvalidByte(at, _)) => Ok(format!("illegal base64 data at input byte {at}").into()),
        Err(error) => Err(fail(error.to_string())),
    });
    functions.text("sha256sum", |[s]| {
        Ok(Sha256::digest(s.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
    });
    functions.text("replace", |[old, new, s]| {
        if s.matches(old).count().saturating_mul(new.len()) > MAX_TEXT {
            return Err(fail("the result is too long"));
        }
        Ok(s.replace(old, new).into())
    });
    // A pattern that is none matches nothing.
    functions.text("regexMatch", |[pattern, s]| Ok(Value::Bool(regex(pattern).is_ok_and(|regex| regex.is_match(s)))));
    functions.text("mustRegexMatch", |[pattern, s]| Ok(Value::Bool(regex(pattern)?.is_match(s))));
    functions.text("regexFind", |[pattern, s]| Ok(regex(pattern)?.find(s).map_or("", |m| m.as_str()).into()));
    functions.text("regexQuoteMeta", |[s]| Ok(regex::escape(s).into()));
    for name in ["regexReplaceAll", "mustRegexReplaceAll"] {
        functions.text(name, |[pattern, s, new]| replace_all(pattern, s, new, false));
    }
    functions.text("regexReplaceAllLiteral", |[pattern, s, new]| replace_all(pattern, s, new, true));
    functions.add("regexFindAll", |arguments| {
        let [pattern, text, count] = arity(arguments)?;
        let count = usize::try_from(whole(count)?).unwrap_or(usize::MAX);
        let regex = regex(str(pattern)?)?;
        Ok(Value::from(regex.find_iter(str(text)?).take(count).map(|m| m.as_str().into()).collect::<Vec<Value>>()))
    });
    functions.add("regexSplit", |arguments| {
        let [pattern, text, count] = arity(arguments)?;
        let regex = regex(str(pattern)?)?;
        let text = str(text)?;
        let parts: Vec<Value> = match usize::try_from(whole(count)?) {
            Ok(count) => regex.splitn(text, count).map(Value::from).collect(),
            Err(_) => regex.split(text).map(Value::from).collect(),
        };
        Ok(Value::from(parts))
    });
    functions.text("snakecase", |[s]| Ok(separated(s, '_').into()));
    functions.text("kebabcase", |[s]| Ok(separated(s, '-').into()));
    functions.add("trunc", |arguments| {
        let [length, text] = arity(arguments)?;
        let (length, text) = (whole(length)?, str(text)?);
        let bytes = text.len();
        let kept = usize::try_from(length.unsigned_abs()).unwrap_or(usize::MAX);
        let text = text.as_bytes();
        Ok(cut(if length >= 0 { &text[..kept.min(bytes)] } else { &text[bytes.saturating_sub(kept)..] }).into())
    });
    functions.add("substr", |arguments| {
        let [start, end, text] = arity(arguments)?;
        let text = str(text)?;
        let start = usize::try_from(whole(start)?).unwrap_or(0);
        let end = usize::try_from(whole(end)?).unwrap_or(text.len()).min(text.len());
        text.as_bytes().get(start..end).map(|part| cut(part).into()).ok_or_else(|| fail("is out of range"))
    });
    functions.add("repeat", |arguments| {
        let [count, text] = arity(arguments)?;
        let count = usize::try_from(whole(count)?).map_err(|_| fail("cannot repeat less than no times"))?;
        match str(text)? {
            text if text.len().saturating_mul(count) <= MAX_TEXT => Ok(text.repeat(count).into()),
            _ => Err(fail("the result is too long")),
        }
    });
    functions.add("indent", |arguments| indent("", arguments));
    functions.add("nindent", |arguments| indent("\n", arguments));
    functions.add("quote", |arguments| {
        let shown = arguments.iter().filter(|v| !matches!(v, Value::Nil)).map(|v| format!("{:?}", params::text(v)));
        Ok(shown.collect::<Vec<_>>().join(" ").into())
    });
    functions.add("squote", |arguments| {
        let shown = arguments.iter().filter(|v| !matches!(v, Value::Nil)).map(|v| format!("'{}'", params::text(v)));
        Ok(shown.collect::<Vec<_>>().join(" ").into())
    });
    functions.add("cat", |arguments| {
        let shown = arguments.iter().filter(|v| !matches!(v, Value::Nil)).map(params::text);
        Ok(shown.collect::<Vec<_>>().join(" ").into())
    });
    functions.add("toString", |arguments| Ok(params::text(&arity::<1>(arguments)?[0]).into()));
    functions.add("join", |arguments| {
        let [separator, items] = arity(arguments)?;
        let items: Vec<String> = match items {
            Value::List(items) => items.iter().map(params::text).collect(),
            other => vec![params::text(other)],
        };
        let separator = str(separator)?;
        if separator.len().saturating_mul(items.len()) > MAX_TEXT {
            return Err(fail("the result is too long"));
        }
        Ok(items.join(separator).into())
    });
    functions
        .text("splitList", |[separator, s]| Ok(Value::from(split(separator, s).map(Value::from).collect::<Vec<_>>())));
    functions.text("split", |[separator, s]| {
        let parts = split(separator, s).enumerate().map(|(i, part)| (format!("_{i}").into(), Value::from(part)));
        Ok(Value::from(parts.collect::<params::Map>()))
    });
    functions.add("splitn", |arguments| {
        let [separator, count, text] = arity(arguments)?;
        let (separator, text) = (str(separator)?, str(text)?);
        let parts: Vec<&str> = match usize::try_from(whole(count)?) {
            Ok(count) => text.splitn(count, separator).collect(),
            Err(_) => split(separator, text).collect(),
        };
        let parts = parts.into_iter().enumerate().map(|(i, part)| (format!("_{i}").into(), Value::from(part)));
        Ok(Value::from(parts.collect::<params::Map>()))
    });
    functions.add("toStrings", |arguments| {
        let [items] = arity(arguments)?;
        Ok(Value::from(list(items)?.iter().map(|item| params::text(item).into()).collect::<Vec<Value>>()))
    });
    functions.add("plural", |arguments| {
        let [one, many, count] = arity(arguments)?;
        Ok(if whole(count)? == 1 { one.clone() } else { many.clone() })
    });
    functions.text("initials", |[s]| {
        Ok(s.split_whitespace().filter_map(|word| word.chars().next()).collect::<String>().into())
    });
    functions.text("swapcase", |[s]| Ok(swapped(s).into()));
    functions.text("camelcase", |[s]| Ok(camel(s).into()));
    functions.text("sha512sum", |[s]| {
        Ok(Sha512::digest(s.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
    });
    functions.add("sortAlpha", |arguments| {
        let mut texts: Vec<String> = match arity(arguments)? {
            [Value::List(items)] => items.iter().map(params::text).collect(),
            [other] => vec![params::text(other)],
        };
        texts.sort();
        Ok(Value::from(texts.into_iter().map(Value::from).collect::<Vec<_>>()))
    });
}

/// A part of a text by its bytes; each byte of a character that was cut in two shows as a replacement character.
fn cut(mut bytes: &[u8]) -> String {
    let mut text = String::new();
    loop {
        match std::str::from_utf8(bytes) {
            Ok(rest) => return text + rest,
            Err(error) => {
                let (good, bad) = bytes.split_at(error.valid_up_to());
                text.push_str(std::str::from_utf8(good).unwrap_or_default());
                text.push(char::REPLACEMENT_CHARACTER);
                bytes = &bad[1..];
            }
        }
    }
}

/// Lower case becomes upper case at the start of a word, and upper case lower.
fn swapped(text: &str) -> String {
    let mut start = true;
    let mut result = String::new();
    for c in text.chars() {
        match c {
            _ if c.is_uppercase() => result.extend(c.to_lowercase()),
            _ if c.is_lowercase() && start => result.extend(c.to_uppercase()),
            _ => result.push(c),
        }
        start = c.is_whitespace();
    }
    result
}

/// `a_b c` becomes `ABC`.
fn camel(text: &str) -> String {
    let words = text.split(['_', '-', '.', ' ']).filter(|word| !word.is_empty());
    words.map(|word| first_letters(&word.to_lowercase(), |_| false, |c| c.to_uppercase().collect())).collect()
}

fn split<'a>(separator: &'a str, text: &'a str) -> impl Iterator<Item = &'a str> {
    // An empty separator splits between the characters, as in Go, and Rust would add empty ends.
    let ends = separator.is_empty();
    text.split(separator).filter(move |part| !(ends && part.is_empty()))
}

fn indent(before: &str, arguments: &[Value]) -> gotmpl::Result<Value> {
    let [spaces, text] = arity(arguments)?;
    let text = str(text)?;
    let spaces = usize::try_from(whole(spaces)?).map_err(|_| fail("cannot indent by less than nothing"))?;
    if spaces.saturating_mul(text.lines().count() + 1) > MAX_TEXT {
        return Err(fail("the result is too long"));
    }
    let pad = " ".repeat(spaces);
    Ok(format!("{before}{pad}{}", text.replace('\n', &format!("\n{pad}"))).into())
}

fn regex(pattern: &str) -> gotmpl::Result<Regex> {
    RegexBuilder::new(pattern).size_limit(1 << 20).build().map_err(|error| fail(error.to_string()))
}

fn replace_all(pattern: &str, text: &str, new: &str, literal: bool) -> gotmpl::Result<Value> {
    let regex = regex(pattern)?;
    // A replacement may hold the whole match several times.
    let each = new.len() + if literal { 0 } else { text.len().saturating_mul(new.matches('$').count()) };
    if regex.find_iter(text).count().saturating_mul(each) > MAX_TEXT {
        return Err(fail("the result is too long"));
    }
    Ok(match literal {
        true => regex.replace_all(text, regex::NoExpand(new)).into_owned(),
        false => regex.replace_all(text, new).into_owned(),
    }
    .into())
}

/// A word starts after anything but a letter, a digit or '_'.
fn title(text: &str) -> String {
    first_letters(text, |c| !c.is_alphanumeric() && c != '_', |c| c.to_uppercase().collect())
}

fn first_letters(text: &str, between: impl Fn(char) -> bool, change: impl Fn(char) -> String) -> String {
    let mut inside = false;
    let mut result = String::new();
    for c in text.chars() {
        match inside || between(c) {
            true => result.push(c),
            false => result.push_str(&change(c)),
        }
        inside = !between(c);
    }
    result
}

/// `firstName` and `HTTPServer` in words.
fn separated(text: &str, separator: char) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut result = String::new();
    for (at, c) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let starts = match before {
            Some(before) if c.is_uppercase() => {
                let next_is_small = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
                before.is_lowercase() || before.is_ascii_digit() || (before.is_uppercase() && next_is_small)
            }
            _ => false,
        };
        if starts {
            result.push(separator);
        }
        match c {
            ' ' | '_' | '-' => result.push(separator),
            c => result.extend(c.to_lowercase()),
        }
    }
    result
}
