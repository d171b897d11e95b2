//! Names of environments: any text has a slug, the slug is a name, and names hold nothing that a shell, git or DNS reads.
#![no_main]

use k8tre::names::{EnvName, slug};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let made = slug(text);
    assert_eq!(made.as_str().parse::<EnvName>().as_ref(), Ok(&made));
    if let Ok(name) = text.parse::<EnvName>() {
        assert_eq!(name.as_str(), text);
        let label = name.cluster();
        assert!(label.len() <= 63 && !label.starts_with('-') && !label.ends_with('-'), "{label}");
        assert!(label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'), "{label}");
    }
    let _ = k8tre::cli::life(text);
    let _ = k8tre::cli::size(text);
});
