//! Values in texts that are secrets by the name before them, or by their shape.

use std::sync::LazyLock;

use regex::Regex;

use super::redacted;

/// What a text may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Where {
    Anywhere,
    /// What programs say of objects, as `cannot read secret: no such thing`: there the word alone, with a colon, is
    /// no name of a value.
    Prose,
}

/// What a program says, with the values of what looks like a credential taken out.
pub fn hide(text: &str) -> String {
    static BARE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?i)\b(bearer|basic)\s+[a-z0-9+/._~=-]{8,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9._-]+")
            .expect("a constant")
    });
    let text = redacted(text);
    assigned(&BARE.replace_all(&text, super::HIDDEN), Where::Prose)
}

/// The text without the values that follow a secret's name, as in `NAME=value`, `"name": "value"` and
/// `--name value`. Only such values are stepped over: any other may hold a name itself.
pub fn assigned(text: &str, place: Where) -> String {
    static NAME: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"(?i)([a-z0-9_.-]{2,80})(?:\\?["']?(?:\s*=\s*|:[ \t]*))|(--[a-z0-9_-]{2,80})[ \t]+"#)
            .expect("a constant")
    });
    static VALUE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"^(?:"(?:[^"\\]|\\.)*"|'[^']*'|\\"(?:[^"\\])*\\"|[^\s,;&}"']+)"#).expect("a constant")
    });
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(found) = NAME.captures(rest) {
        let (whole, name) = (found.get(0), found.get(1).or_else(|| found.get(2)));
        let (Some(whole), Some(name)) = (whole, name) else { break };
        out.push_str(&rest[..whole.end()]);
        rest = &rest[whole.end()..];
        let names_an_object =
            place == Where::Prose && name.as_str().eq_ignore_ascii_case("secret") && whole.as_str().contains(':');
        if is_secret_name(name.as_str())
            && !names_an_object
            && let Some(value) = VALUE.find(rest)
        {
            out.push_str(super::HIDDEN);
            rest = &rest[value.end()..];
        }
    }
    out.push_str(rest);
    out
}

/// Whether a value under this name is a secret, rather than the name of one, or a number about one.
pub fn is_secret_name(name: &str) -> bool {
    const SECRET: [&str; 16] = [
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "secret",
        "token",
        "apikey",
        "accesskey",
        "privatekey",
        "credential",
        "keydata",
        "authorization",
        "cookie",
        "htpasswd",
        "dockerconfigjson",
        "signingkey",
    ];
    // What comes after the word says that it is not the thing itself.
    const ABOUT: [&str; 21] = [
        "name",
        "names",
        "ref",
        "path",
        "file",
        "dir",
        "seconds",
        "namespace",
        "type",
        "count",
        "class",
        "store",
        "stores",
        "key",
        "keys",
        "id",
        "mtime",
        "expiration",
        "enabled",
        "secrets",
        "mount",
    ];
    let plain: String = name.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    let about = |plain: &str| ABOUT.iter().any(|end| plain.ends_with(end));
    let keyed = ["apikey", "accesskey", "privatekey", "signingkey", "secretkey"].iter().any(|end| plain.ends_with(end));
    SECRET.iter().any(|word| plain.contains(word)) && (keyed || !about(&plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_hidden_and_names_of_secrets_are_not() {
        for (text, shown) in [
            ("db password=hunter2 wrong", "db password=*** wrong"),
            (r#"{"password": "a b", "user": "x"}"#, r#"{"password": ***, "user": "x"}"#),
            ("API_KEY: abc123", "API_KEY: ***"),
            ("--client-secret=abc", "--client-secret=***"),
            ("Authorization: Bearer abcdefghijk", "Authorization: ***"),
            ("postgres://app:pw@db/x refused", "postgres://app:***@db/x refused"),
            ("cannot read secret: no such thing", "cannot read secret: no such thing"),
            ("SECRET=abc", "SECRET=***"),
            (r#"secret "oidc" not found"#, r#"secret "oidc" not found"#),
            ("couldn't find key password in Secret a/b", "couldn't find key password in Secret a/b"),
        ] {
            assert_eq!(hide(text), shown);
        }
    }

    #[test]
    fn names_of_secrets_are_no_secrets() {
        for name in [
            "password",
            "DB_PASSWORD",
            "client-secret",
            "GITHUB_TOKEN",
            "apiKey",
            "AWS_SECRET_ACCESS_KEY",
            "client-key-data",
            "SECRET_KEY",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "secretName",
            "tokenExpirationSeconds",
            "TOKEN_FILE",
            "secretKeyRef",
            "imagePullSecrets",
            "name",
            "key",
            "secret-store",
            "admin.passwordMtime",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
