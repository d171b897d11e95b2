//! Environment variables: the one place that reads them.

use std::ffi::OsString;

/// The variable's value, if set and not empty.
#[allow(clippy::disallowed_methods)] // this is the adapter that everybody else goes through
pub fn var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[allow(clippy::disallowed_methods)]
pub fn var_os(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
