//! What leaves this machine in a report, without the secrets in it: by structure where there is one,
//! by names and shapes in text, and by the very values where they are known.

mod address;
mod words;

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::Regex;
use serde_json::{Map, Value, json};

pub use address::{redacted, without_user};
pub use words::hide;
use words::{Where, assigned, is_secret_name};

const HIDDEN: &str = "***";
/// Shorter values are words that occur everywhere.
const SHORTEST: usize = 8;

/// Takes secrets out of texts and objects.
#[derive(Default)]
pub struct Redactor {
    known: Option<AhoCorasick>,
}

impl Redactor {
    /// One that knows these values, and takes them out wherever they occur.
    pub fn knowing(values: impl IntoIterator<Item = String>) -> Redactor {
        let mut all: Vec<String> = Vec::new();
        for value in values {
            // Programs print keys line by line.
            all.extend(value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST).map(str::to_owned));
        }
        all.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
        all.dedup();
        let known = AhoCorasick::builder().match_kind(aho_corasick::MatchKind::LeftmostLongest).build(&all);
        Redactor { known: known.ok().filter(|_| !all.is_empty()) }
    }

    pub fn text(&self, text: &str) -> String {
        static KEY: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)")
                .expect("a constant")
        });
        static HEADER: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r#"(?i)((?:proxy-)?authorization["']?\s*[:=]\s*|set-cookie["']?\s*[:=]\s*|\bcookie["']?\s*[:=]\s*)[^\r\n]+"#)
                .expect("a constant")
        });
        static SHAPED: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(
                r"\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bAKIA[0-9A-Z]{16}\b|\bhvs\.[A-Za-z0-9_-]{20,}",
            )
            .expect("a constant")
        });
        let text = self.known(text);
        let text = KEY.replace_all(headless(&text), "*** private key ***");
        let text = HEADER.replace_all(&text, "${1}***");
        let text = SHAPED.replace_all(&text, HIDDEN);
        hide(&assigned(&text, Where::Anywhere))
    }

    fn known(&self, text: &str) -> String {
        let Some(known) = &self.known else { return text.to_owned() };
        let mut out = String::with_capacity(text.len());
        known.replace_all_with(text, &mut out, |_, _, out| {
            out.push_str(HIDDEN);
            true
        });
        out
    }

    /// An object, or a list of them, as it may be shown. Of Secrets and ConfigMaps only the keys.
    pub fn json(&self, value: &Value) -> Value {
        match value {
            Value::Object(object) => self.object(object),
            Value::Array(items) => Value::Array(self.array(items)),
            Value::String(text) => Value::String(self.string(text)),
            other => other.clone(),
        }
    }

    fn object(&self, object: &Map<String, Value>) -> Value {
        if matches!(object.get("kind").and_then(Value::as_str), Some("Secret" | "ConfigMap")) {
            return keys_only(object);
        }
        let names_secret =
            ["name", "key"].iter().any(|key| object.get(*key).and_then(Value::as_str).is_some_and(is_secret_name));
        let shown = object.iter().filter(|(key, _)| !matches!(key.as_str(), "managedFields" | LAST_APPLIED));
        let shown = shown.map(|(key, value)| {
            let secret = is_secret_name(key) || (names_secret && key == "value");
            let value = match (secret, value) {
                (true, Value::String(text)) if text.is_empty() => value.clone(),
                (true, Value::String(_)) => json!(HIDDEN),
                (true, Value::Array(items)) if items.iter().any(Value::is_string) => json!([HIDDEN]),
                _ => self.json(value),
            };
            (key.clone(), value)
        });
        Value::Object(shown.collect())
    }

    /// A list, which may be a command line: there the value follows its flag.
    fn array(&self, items: &[Value]) -> Vec<Value> {
        let mut after_flag = false;
        let shown = items.iter().map(|item| {
            let hidden = after_flag && item.is_string();
            after_flag = item.as_str().is_some_and(|text| {
                text.starts_with('-') && !text.contains('=') && is_secret_name(text.trim_start_matches('-'))
            });
            if hidden { json!(HIDDEN) } else { self.json(item) }
        });
        shown.collect()
    }

    /// A text, which may be a document.
    fn string(&self, text: &str) -> String {
        if text.starts_with(['{', '['])
            && let Ok(inner @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text)
        {
            return self.json(&inner).to_string();
        }
        self.text(text)
    }
}

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What a Secret is called and which keys it has: never what is in it.
fn keys_only(object: &Map<String, Value>) -> Value {
    let mut keys: Vec<&String> = Vec::new();
    for part in ["data", "stringData", "binaryData"] {
        keys.extend(object.get(part).and_then(Value::as_object).into_iter().flat_map(Map::keys));
    }
    let metadata = object.get("metadata").cloned().unwrap_or_default();
    json!({
        "kind": object.get("kind"),
        "type": object.get("type"),
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "keys": keys,
    })
}

/// A log may begin in the middle of a key: then that goes, with all before it.
fn headless(text: &str) -> &str {
    static END: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"-----(BEGIN|END) [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----").expect("a constant"));
    match END.captures(text) {
        Some(found) if &found[1] == "END" => &text[found.get(0).map_or(0, |whole| whole.end())..],
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_lose_their_secrets_and_keep_the_rest() {
        let redactor = Redactor::knowing(["known-value-1".to_owned(), "short".to_owned()]);
        for (text, shown) in [
            ("GET / Authorization: token abc def\nnext", "GET / Authorization: ***\nnext"),
            ("cloning https://u:hunter22@h/x.git", "cloning https://***@h/x.git"),
            ("SESSION_SECRET=hunter22 PORT=80", "SESSION_SECRET=*** PORT=80"),
            ("12:00:00 env:SESSION_SECRET=hunter22", "12:00:00 env:SESSION_SECRET=***"),
            (r#"msg="{\"secret_key\":\"hunter22\"}""#, r#"msg="{\"secret_key\":***}""#),
            ("run --db-password hunter22 --port 80", "run --db-password *** --port 80"),
            (r#"{"client_secret":"hunter\"22","a":1}"#, r#"{"client_secret":***,"a":1}"#),
            ("it said known-value-1, in short", "it said ***, in short"),
            ("ghp_0123456789abcdefABCDEF", "***"),
            (r#"secret "oidc" not found"#, r#"secret "oidc" not found"#),
            ("secretName: oidc", "secretName: oidc"),
            ("a\n-----BEGIN RSA PRIVATE KEY-----\nMIIx\n-----END RSA PRIVATE KEY-----\nb", "a\n*** private key ***\nb"),
            ("-----BEGIN PRIVATE KEY-----\ncut off", "*** private key ***"),
            ("MIIx\n-----END PRIVATE KEY-----\nb", "\nb"),
        ] {
            assert_eq!(redactor.text(text), shown);
        }
    }

    #[test]
    fn objects_lose_their_secrets_by_structure() {
        let redactor = Redactor::default();
        let shown = redactor.json(&json!({
            "kind": "Pod",
            "metadata": {"annotations": {LAST_APPLIED: "{\"x\":\"hunter22\"}"}, "managedFields": []},
            "spec": {"containers": [{
                "args": ["--password", "hunter22", "--port", "80"],
                "env": [{"name": "DB_PASSWORD", "value": "hunter22"}, {"name": "PORT", "value": "80"},
                        {"name": "X", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}},
                        {"name": "CONFIG", "value": "{\"token\":\"hunter22\"}"}],
            }], "imagePullSecrets": [{"name": "pull"}]},
        }));
        let text = shown.to_string();
        assert!(!text.contains("hunter22"), "{text}");
        assert!(
            text.contains(r#""imagePullSecrets":[{"name":"pull"}]"#)
                && text.contains(r#"{"key":"password","name":"db"}"#),
            "{text}"
        );
        let list = redactor
            .json(&json!({"items": [{"kind": "Secret", "data": {"a": "aHVudGVyMjI="}, "metadata": {"name": "s"}}]}));
        assert_eq!(
            list["items"][0],
            json!({"kind": "Secret", "type": null, "metadata": {"name": "s", "namespace": null}, "keys": ["a"]})
        );
    }
}
