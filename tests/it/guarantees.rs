//! What `docs/guarantees.md` promises has its tests.

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_test_that_a_promise_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/guarantees.md")).unwrap();
    let mut named = BTreeSet::new();
    for line in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| promise")) {
        let tests: Vec<&str> =
            line.split('`').filter(|word| word.starts_with("tests/") && word.contains("::")).collect();
        assert!(!tests.is_empty(), "a promise without a test: {line}");
        named.extend(tests);
    }
    assert!(named.len() > 30, "{named:?}");
    for test in named {
        let (file, function) = test.split_once("::").unwrap();
        let code = std::fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{test}: {error}"));
        let attribute = code.split(&format!("fn {function}(")).next().filter(|before| before.len() < code.len());
        let attribute = attribute.unwrap_or_else(|| panic!("{test} is not there"));
        let tail: Vec<&str> = attribute.trim_end().lines().rev().take(2).collect();
        assert!(
            tail.iter().any(|line| line.contains("#[test]") || line.contains("#[tokio::test")),
            "{test} is no test"
        );
    }
}
