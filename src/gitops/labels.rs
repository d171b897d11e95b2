//! The rules for labels and names of Kubernetes objects.

/// Why a text cannot be the value of a label.
pub fn value_problem(value: &str) -> Option<String> {
    if value.len() > 63 {
        return Some(format!("it has {} characters, at most 63 are possible", value.len()));
    }
    if let Some(c) = value.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.')) {
        return Some(format!("it contains '{}'", c.escape_debug()));
    }
    let ends = |c: Option<char>| c.is_some_and(|c| !c.is_ascii_alphanumeric());
    if ends(value.chars().next()) || ends(value.chars().last()) {
        return Some("it must start and end with a letter or digit".into());
    }
    None
}

/// Why a text cannot be the key of a label.
pub fn key_problem(key: &str) -> Option<String> {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    if name.is_empty() || prefix == Some("") {
        return Some("a part of it is empty".into());
    }
    if let Some(prefix) = prefix {
        let bad = prefix.len() > 253 || prefix.split('.').any(|part| name_problem(part).is_some());
        if bad {
            return Some(format!("{prefix} is not a DNS name"));
        }
    }
    value_problem(name)
}

/// Why a text cannot be a DNS label, as names of Applications should be.
pub fn name_problem(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("it is empty".into());
    }
    if name.len() > 63 {
        return Some(format!("it has {} characters, at most 63 fit a label", name.len()));
    }
    if let Some(c) = name.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '-')) {
        return Some(format!("it contains '{}'", c.escape_debug()));
    }
    if name.starts_with('-') || name.ends_with('-') {
        return Some("it starts or ends with a dash".into());
    }
    None
}

/// Why the API server refuses a name of an Application.
pub fn object_name_problem(name: &str) -> Option<String> {
    if name.len() > 253 {
        return Some(format!("it has {} characters, at most 253 are possible", name.len()));
    }
    let allowed = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-' | '.');
    if let Some(c) = name.chars().find(|c| !allowed(*c)) {
        return Some(format!("it contains '{}'", c.escape_debug()));
    }
    let part = |part: &str| !part.is_empty() && !part.starts_with('-') && !part.ends_with('-');
    (!name.split('.').all(part)).then(|| "a part of it is empty, or starts or ends with a dash".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_keys_follow_kubernetes() {
        for good in ["", "dev-alice", "a_b.C", "karectl.internal", &"a".repeat(63)] {
            assert_eq!(value_problem(good), None, "{good}");
        }
        for bad in ["-a", "a.", "a b", "a/b", "é", &"a".repeat(64)] {
            assert!(value_problem(bad).is_some(), "{bad}");
        }
        for (name, good) in [("a.b-c", true), ("0", true), ("A", false), ("a_b", false), ("a-", false), ("a..b", false)]
        {
            assert_eq!(object_name_problem(name).is_none(), good, "{name}");
        }
        assert_eq!(key_problem("k8tre.io/skip-nginx"), None);
        for bad in ["", "/a", "a/", "K8/x", "a b"] {
            assert!(key_problem(bad).is_some(), "{bad}");
        }
    }
}
