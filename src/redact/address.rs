//! Passwords and tokens inside addresses.

use std::sync::LazyLock;

use regex::Regex;

/// The text without the credentials that addresses in it carry, and fit for a terminal.
pub fn redacted(text: &str) -> String {
    static HTTP: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#"(?i)\b(https?|ftps?)://[^/\s'"<>]*@"#).expect("a constant"));
    static OTHER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#"(?i)\b([a-z][a-z0-9+.-]*://[^/\s'"<>:@]*):[^/\s'"<>]*@"#).expect("a constant"));
    static QUERY: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"(?i)([?&][a-z_-]*(?:token|password|secret|key|auth)=)[^&\s'"<>]+"#).expect("a constant")
    });
    let text = crate::text::printable(text);
    // With http, a token often takes the place of the user name; elsewhere the user name is no secret.
    let text = HTTP.replace_all(&text, "$1://***@");
    let text = OTHER.replace_all(&text, "$1:***@");
    QUERY.replace_all(&text, "$1***").into_owned()
}

/// A setting that is one address, as it may be shown: whatever stands before its last `@` is taken out, also where
/// the address is not written well.
pub fn without_user(address: &str) -> String {
    match (address.find("://"), address.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => format!("{}://***{}", &address[..scheme], &address[at..]),
        (None, Some(at)) => format!("***{}", &address[at..]),
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_credential_of_an_address_is_shown() {
        for (text, shown) in [
            (
                "fatal: unable to access 'https://al:s3cret@h.org/a.git/'",
                "fatal: unable to access 'https://***@h.org/a.git/'",
            ),
            ("To HTTPS://ghp_abc@github.com/a/b", "To HTTPS://***@github.com/a/b"),
            ("http://a:p@ss@h/x", "http://***@h/x"),
            ("ssh://git:pw@h/x and ssh://git@h/x", "ssh://git:***@h/x and ssh://git@h/x"),
            ("https://h/x?private_token=abc&a=1", "https://h/x?private_token=***&a=1"),
            ("mail me@h.org about https://h/x", "mail me@h.org about https://h/x"),
        ] {
            assert_eq!(redacted(text), shown);
        }
    }

    #[test]
    fn a_setting_loses_all_before_its_host() {
        for (address, shown) in [
            ("http://al:p/w@proxy:3128", "http://***@proxy:3128"),
            ("al:pw@proxy:3128", "***@proxy:3128"),
            ("http://proxy:3128", "http://proxy:3128"),
        ] {
            assert_eq!(without_user(address), shown);
        }
    }
}
