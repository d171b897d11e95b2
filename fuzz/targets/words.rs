//! Words of clusters and programs: nothing of them steers a terminal, and no password in an address is left.
#![no_main]

use k8tre::redact::{Redactor, redacted};
use k8tre::text;

libfuzzer_sys::fuzz_target!(|words: &str| {
    let shown = text::printable(words);
    let steers = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!shown.contains(steers), "{shown:?}");
    assert_eq!(text::printable(&shown), shown);
    assert!(text::one_line(words, 40).chars().count() <= 40);
    let hidden = Redactor::knowing(["s3cr3t-of-alice".to_owned()]).text(&format!("{words} s3cr3t-of-alice"));
    assert!(!hidden.contains("s3cr3t-of-alice"), "{hidden}");
    let _ = redacted(words);
    let _ = k8tre::gitops::url::public(words);
});
