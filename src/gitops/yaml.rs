//! YAML files as JSON values, with the line of every node.
//!
//! Patches change the values and not the lines: a node that a patch made has the line of its nearest ancestor.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

use crate::error::{Error, Result};

/// One document of a file.
#[derive(Debug, Clone)]
pub struct Document {
    pub value: Value,
    pub lines: Lines,
}

/// The line of a node and of those below it.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    line: u32,
    below: BTreeMap<Box<str>, Lines>,
}

impl Lines {
    /// Line of the node at this JSON pointer, or of its nearest ancestor.
    pub fn at(&self, pointer: &str) -> u32 {
        let mut lines = self;
        for token in pointer.split('/').skip(1) {
            match lines.below.get(token.replace("~1", "/").replace("~0", "~").as_str()) {
                Some(below) => lines = below,
                None => break,
            }
        }
        lines.line
    }

    /// The lines below a JSON pointer, to be asked with pointers from there.
    pub fn below(&self, pointer: &str) -> Lines {
        let mut lines = self;
        for token in pointer.split('/').skip(1) {
            match lines.below.get(token) {
                Some(below) => lines = below,
                None => return Lines { line: lines.line, below: BTreeMap::new() },
            }
        }
        lines.clone()
    }
}

/// A token of a JSON pointer.
pub fn token(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The documents of a file; empty ones are left out. Errors name file, line and column.
pub fn documents(file: &str, content: &[u8]) -> Result<Vec<Document>> {
    let options = serde_saphyr::options! {
        budget: budget(),
        // `y` and `on` are words here, as for kustomize.
        strict_booleans: true,
        with_snippet: false,
    };
    read::<false>(file, content, options)
}

/// Manifests are small and flat. What goes beyond this is an attack or an accident.
fn budget() -> Option<serde_saphyr::Budget> {
    serde_saphyr::budget! { max_depth: 100, max_nodes: 500_000, max_aliases: 5_000, max_documents: 2_000 }
}

fn read<const TYPED_KEYS: bool>(file: &str, content: &[u8], options: serde_saphyr::Options) -> Result<Vec<Document>> {
    let text = std::str::from_utf8(content).map_err(|_| {
        Error::failed(format!("{file} is not UTF-8 text")).hint(format!("convert it: iconv -t utf-8 {file}"))
    })?;
    let documents: Vec<Spanned<Node<TYPED_KEYS>>> = serde_saphyr::from_str_multiple_with_options(text, options)
        .map_err(|error| {
            let place = error.location().map(|l| format!(":{}:{}", l.line(), l.column())).unwrap_or_default();
            Error::failed(format!("{file}{place}: this is not valid YAML")).detail(error.to_string())
        })?;
    Ok(documents
        .into_iter()
        .map(|node| {
            let (value, lines) = split(node);
            Document { value, lines }
        })
        .collect())
}

/// The first document of a text that Argo CD decodes itself, as it decodes it: by the older rules of YAML 1.1, where
/// `yes` is true and 010 is 8; of a key that is there twice, the last counts. Null if there is none.
pub fn data(file: &str, content: &[u8]) -> Result<Value> {
    let options = serde_saphyr::options! {
        budget: budget(),
        strict_booleans: false,
        legacy_octal_numbers: true,
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        with_snippet: false,
    };
    Ok(read::<true>(file, content, options)?.into_iter().next().map_or(Value::Null, |document| document.value))
}

/// The only document of a file, or null if it is empty.
pub fn document(file: &str, content: &[u8]) -> Result<Document> {
    let mut documents = documents(file, content)?;
    if documents.len() > 1 {
        let line = documents[1].lines.at("");
        return Err(Error::failed(format!("{file}:{line}: a second document, where one is expected")));
    }
    Ok(documents.pop().unwrap_or_else(|| Document { value: Value::Null, lines: Lines::default() }))
}

/// With typed keys, a key is read as a value is, and then written as text: `yes` is the key "true".
enum Node<const TYPED_KEYS: bool> {
    Scalar(Value),
    List(Vec<Spanned<Self>>),
    Map(Vec<(String, Spanned<Self>)>),
}

fn split<const TYPED_KEYS: bool>(node: Spanned<Node<TYPED_KEYS>>) -> (Value, Lines) {
    let mut lines = Lines { line: u32::try_from(node.referenced.line()).unwrap_or(u32::MAX), below: BTreeMap::new() };
    let value = match node.value {
        Node::Scalar(value) => value,
        Node::List(items) => Value::Array(
            items
                .into_iter()
                .enumerate()
                .map(|(index, item)| {
                    let (value, below) = split(item);
                    lines.below.insert(index.to_string().into(), below);
                    value
                })
                .collect(),
        ),
        Node::Map(entries) => Value::Object(
            entries
                .into_iter()
                .map(|(key, item)| {
                    let (value, below) = split(item);
                    lines.below.insert(key.as_str().into(), below);
                    (key, value)
                })
                .collect::<Map<_, _>>(),
        ),
    };
    (value, lines)
}

impl<'de, const TYPED_KEYS: bool> Deserialize<'de> for Node<TYPED_KEYS> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor::<TYPED_KEYS>)
    }
}

struct NodeVisitor<const TYPED_KEYS: bool>;

impl<'de, const TYPED_KEYS: bool> Visitor<'de> for NodeVisitor<TYPED_KEYS> {
    type Value = Node<TYPED_KEYS>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Node::Scalar(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Node::Scalar(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Self::Value, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        Node::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = access.next_key_seed(Key::<TYPED_KEYS>)? {
            entries.push((key, access.next_value()?));
        }
        Ok(Node::Map(entries))
    }
}

struct Key<const TYPED: bool>;

impl<'de, const TYPED: bool> DeserializeSeed<'de> for Key<TYPED> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        if !TYPED {
            return String::deserialize(deserializer);
        }
        match Node::<TYPED>::deserialize(deserializer)? {
            Node::Scalar(Value::String(key)) => Ok(key),
            Node::Scalar(key) => Ok(key.to_string()),
            Node::List(_) | Node::Map(_) => Err(serde::de::Error::custom("a key is not a scalar")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn every_node_knows_its_line() {
        let text = "# head\na: 1\nb:\n  - x: y\n    e: [p, q]\n  - {c/d: 2}\n---\n---\nz: ~\n";
        let documents = documents("f.yaml", text.as_bytes()).unwrap();
        assert_eq!(documents.len(), 2);
        assert_eq!(documents[0].value, json!({"a": 1, "b": [{"x": "y", "e": ["p", "q"]}, {"c/d": 2}]}));
        let lines = &documents[0].lines;
        let found = ["", "/a", "/b/0/x", "/b/0/e/1", "/b/1/c~1d", "/b/1/new/deeper"].map(|p| lines.at(p));
        assert_eq!(found, [2, 2, 4, 5, 6, 6]);
        assert_eq!(documents[1].lines.at("/z"), 9);
    }

    #[test]
    fn broken_files_name_file_and_line() {
        for (text, place) in [
            ("a: 1\nb: [1, 2\nc: 3\n", "appsets/x.yaml:"),
            ("a:\n  b: 1\n c: 2\n", "appsets/x.yaml:3:"),
            ("a: 1\na: 2\n", "appsets/x.yaml:2:"),
        ] {
            let error = documents("appsets/x.yaml", text.as_bytes()).unwrap_err();
            assert!(error.to_string().starts_with(place), "{error:?}");
        }
        assert!(documents("f", &[0xff, 0xfe]).unwrap_err().to_string().contains("not UTF-8"));
    }

    #[test]
    fn data_follow_the_older_rules() {
        let text = "yes: no\n\"y\": 010\nn: 1\na: 1\na: on\n1: x\n---\nsecond: 1\n";
        let expected = json!({"true": false, "y": 8, "false": 1, "a": true, "1": "x"});
        assert_eq!(data("f.yaml", text.as_bytes()).unwrap(), expected);
        assert_eq!(data("f.yaml", b"# nothing\n").unwrap(), Value::Null);
    }

    #[test]
    fn alias_bombs_and_deep_nesting_are_refused() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let below = format!("*a{}", level - 1);
            bomb.push_str(&format!("a{level}: &a{level} [{}]\n", vec![below; 10].join(", ")));
        }
        assert!(documents("f", bomb.as_bytes()).is_err());
        assert!(documents("f", "[".repeat(100_000).as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn no_input_panics(text in "[-a:{}\\[\\]&*!|>'\"#%@,? \n\t0-9~]{0,200}") {
            let _ = documents("f", text.as_bytes());
        }
    }
}
