//! The list of secrets that are made before the Applications start: `ci/ci-secrets.yaml` of K8TRE's layout.
//!
//! A value is text, or says how to make it: `{{ generate_password(32) }}`. The forms are those that the
//! repository's own script knows.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use rand::distr::{Alphanumeric, SampleString};
use rand::seq::IndexedRandom;
use regex::Regex;
use serde_json::Value;

use super::finding::Finding;
use super::yaml::{self, Document};

/// Where K8TRE's layout has the list.
pub const FILE: &str = "ci/ci-secrets.yaml";
const NAMESPACE: &str = "secret-store";
/// Longer than any password, shorter than what a Secret can hold.
const LONGEST: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CiSecrets {
    pub namespace: String,
    pub secrets: Vec<CiSecret>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CiSecret {
    pub name: String,
    pub data: Vec<(String, Origin)>,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It is in the file.
    Text(String),
    /// So many letters and digits.
    Password(usize),
    /// So many bytes in hexadecimal: twice as many characters.
    HexKey(usize),
    S3AccessKey,
    /// The variable of this name, where `up` runs.
    Variable(String),
}

impl Origin {
    /// A new value; `None` for a variable, which the caller reads.
    pub fn make(&self) -> Option<String> {
        let mut random = rand::rng();
        match self {
            Origin::Text(text) => Some(text.clone()),
            Origin::Password(length) => Some(Alphanumeric.sample_string(&mut random, *length)),
            Origin::HexKey(bytes) => Some((0..*bytes).map(|_| format!("{:02x}", rand::random::<u8>())).collect()),
            Origin::S3AccessKey => {
                let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
                let letters = (0..16).filter_map(|_| alphabet.choose(&mut random));
                Some(format!("AKIA{}", letters.map(|letter| char::from(*letter)).collect::<String>()))
            }
            Origin::Variable(_) => None,
        }
    }
}

/// Reads the list; what is wrong with it has its line.
pub fn read(file: &str, content: &[u8]) -> Result<CiSecrets, Box<Finding>> {
    let document = yaml::document(file, content)
        .map_err(|error| Box::new(Finding::error("yaml", file, 0).message(error.to_string()).fix("mend the YAML")))?;
    Reader { file, document: &document }.list()
}

struct Reader<'a> {
    file: &'a str,
    document: &'a Document,
}

type Read<T> = Result<T, Box<Finding>>;

impl Reader<'_> {
    fn wrong(&self, pointer: &str, message: String, fix: &str) -> Box<Finding> {
        let line = self.document.lines.at(pointer);
        Box::new(Finding::error("ci-secrets", self.file, line).message(message).fix(fix))
    }

    fn list(&self) -> Read<CiSecrets> {
        let root = &self.document.value;
        let namespace = match root.get("namespace") {
            None => NAMESPACE.to_owned(),
            Some(Value::String(name)) if is_name(name) => name.clone(),
            Some(_) => {
                return Err(self.wrong(
                    "/namespace",
                    "this is no name of a namespace".into(),
                    "namespace: secret-store",
                ));
            }
        };
        let entries = match root.get("secrets") {
            None | Some(Value::Null) => &[][..],
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err(self.wrong("/secrets", "`secrets` is no list".into(), "write a list of secrets")),
        };
        let mut names = BTreeSet::new();
        let mut secrets = Vec::new();
        for (i, entry) in entries.iter().enumerate() {
            let secret = self.secret(&format!("/secrets/{i}"), entry)?;
            if !names.insert(secret.name.clone()) {
                let message = format!("the secret {} is listed twice", secret.name);
                return Err(self.wrong(&format!("/secrets/{i}"), message, "put all its keys into one entry"));
            }
            secrets.push(secret);
        }
        Ok(CiSecrets { namespace, secrets })
    }

    fn secret(&self, at: &str, entry: &Value) -> Read<CiSecret> {
        let Some(name) = entry.get("name").and_then(Value::as_str).filter(|name| is_name(name)) else {
            return Err(self.wrong(
                at,
                "this entry has no usable name".into(),
                "name: lower-case letters, digits, '-' and '.'",
            ));
        };
        match entry.get("type").and_then(Value::as_str) {
            None | Some("generic" | "Opaque") => {}
            Some(other) => {
                let message = format!("the secret {name} is of the type \"{other}\"; only `generic` can be made");
                return Err(self.wrong(
                    &format!("{at}/type"),
                    message,
                    "let cert-manager or an ExternalSecret make it",
                ));
            }
        }
        let items = entry.get("data").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let mut data: Vec<(String, Origin)> = Vec::new();
        for (i, item) in items.iter().enumerate() {
            let at = format!("{at}/data/{i}");
            let key = item.get("key").and_then(Value::as_str).filter(|key| is_key(key));
            let Some(key) = key.filter(|key| data.iter().all(|(known, _)| known != key)) else {
                let message = format!("a key of the secret {name} is missing, unusable or there twice");
                return Err(self.wrong(&at, message, "key: letters, digits, '-', '_' and '.'"));
            };
            data.push((key.to_owned(), self.origin(name, key, &format!("{at}/value"), item.get("value"))?));
        }
        Ok(CiSecret { name: name.to_owned(), data })
    }

    fn origin(&self, secret: &str, key: &str, at: &str, value: Option<&Value>) -> Read<Origin> {
        match value {
            Some(Value::Number(number)) => Ok(Origin::Text(number.to_string())),
            Some(Value::String(text)) => origin(text).ok_or_else(|| {
                let message = format!("{secret}/{key}: this is no way to make a value");
                let known = "generate_password(LENGTH), generate_hex_key(BYTES), generate_s3_access_key(), lookup_env(VARIABLE)";
                self.wrong(at, message, &format!("one of {known}, each within {{{{ }}}}, with at most {LONGEST}"))
            }),
            _ => Err(self.wrong(at, format!("{secret}/{key} has no text as its value"), "put the value in quotes")),
        }
    }
}

/// `None` for a template that nobody can fill in.
fn origin(text: &str) -> Option<Origin> {
    static CALL: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^\{\{\s*([a-z0-9_]+)\s*(?:\(\s*([A-Za-z0-9_]*)\s*\))?\s*\}\}$")
            .expect("a constant that the tests use")
    });
    let Some(call) = CALL.captures(text) else {
        return (!text.contains("{{")).then(|| Origin::Text(text.to_owned()));
    };
    let argument = call.get(2).map_or("", |argument| argument.as_str());
    let number = |default: usize| match argument {
        "" => Some(default),
        digits => digits.parse().ok().filter(|number| (1..=LONGEST).contains(number)),
    };
    match &call[1] {
        "generate_password" => number(16).map(Origin::Password),
        "generate_hex_key" => number(32).map(Origin::HexKey),
        "generate_s3_access_key" => argument.is_empty().then_some(Origin::S3AccessKey),
        "lookup_env" => (!argument.is_empty()).then(|| Origin::Variable(argument.to_owned())),
        _ => None,
    }
}

/// A DNS subdomain, as names of Secrets are.
fn is_name(name: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(part)
}

fn is_key(key: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=253).contains(&key.len()) && key.bytes().all(allowed) && !matches!(key, "." | "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        let finding = read(FILE, text.as_bytes()).unwrap_err();
        format!("{}:{} {}", finding.file, finding.line, finding.message)
    }

    #[test]
    fn every_form_of_a_value_is_read_and_made() {
        let text = "namespace: store\nsecrets:\n- name: db\n  type: generic\n  data:\n  - {key: a, value: admin}\n  \
                    - {key: b, value: '{{ generate_password }}'}\n  - {key: c, value: '{{ generate_password(32) }}'}\n  \
                    - {key: d, value: '{{generate_hex_key(8)}}'}\n  - {key: e, value: '{{ generate_s3_access_key() }}'}\n  \
                    - {key: f, value: '{{ lookup_env(TOKEN) }}'}\n  - {key: g, value: 7}\n  - {key: h, value: ''}\n";
        let list = read(FILE, text.as_bytes()).unwrap();
        assert_eq!(list.namespace, "store");
        let made: Vec<_> = list.secrets[0].data.iter().map(|(_, origin)| origin.make()).collect();
        let lengths: Vec<_> = made.iter().map(|value| value.as_ref().map(String::len)).collect();
        assert_eq!(lengths, [Some(5), Some(16), Some(32), Some(16), Some(20), None, Some(1), Some(0)]);
        assert_eq!(list.secrets[0].data[5].1, Origin::Variable("TOKEN".into()));
        assert!(made[3].as_ref().unwrap().bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_ne!(list.secrets[0].data[2].1.make(), made[2], "each is a new one");
    }

    #[test]
    fn what_cannot_be_made_is_named_with_its_line() {
        let entry = |more: &str| format!("secrets:\n- name: db\n{more}");
        assert_eq!(wrong("secrets: 7\n"), "ci/ci-secrets.yaml:1 `secrets` is no list");
        assert_eq!(
            wrong(&entry("  data:\n  - key: a\n    value: '{{ generate_passwort }}'\n")),
            "ci/ci-secrets.yaml:5 db/a: this is no way to make a value"
        );
        for value in ["'{{ generate_password(0) }}'", "'{{ generate_password(1000000) }}'", "'x{{ lookup_env(A) }}'"] {
            assert!(wrong(&entry(&format!("  data: [{{key: a, value: {value}}}]\n"))).contains("no way to make"));
        }
        assert!(wrong(&entry("  data: [{key: a, value: true}]\n")).contains("no text"));
        assert!(wrong(&entry("  data: [{key: ../a, value: x}]\n")).contains("unusable"));
        assert!(wrong(&entry("  data: [{key: a, value: x}, {key: a, value: y}]\n")).contains("twice"));
        assert!(wrong(&entry("  type: tls\n")).contains("only `generic`"));
        assert!(wrong("secrets:\n- name: db\n- name: db\n").contains("listed twice"));
        assert!(wrong("secrets:\n- name: A_b\n").contains("no usable name"));
    }

    #[test]
    fn the_real_repositorys_list_is_read() {
        let Some(tree) = crate::gitops::testing::fixture("the_real_repositorys_list_is_read") else { return };
        use crate::gitops::tree::Tree;
        let list = read(FILE, &tree.read(FILE).unwrap()).unwrap();
        assert_eq!((list.namespace.as_str(), list.secrets.len()), ("secret-store", 15));
    }
}
