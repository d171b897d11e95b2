//! What a cluster says of an Application: judged and explained, in words that steer no terminal.
#![no_main]

use k8tre::argocd::application::{Expected, judge};
use k8tre::causes::{Evidence, explain};
use serde_json::Value;

libfuzzer_sys::fuzz_target!(|content: &[u8]| {
    let Ok(application) = serde_json::from_slice::<Value>(content) else { return };
    let verdict = judge(&application, &Expected::default(), jiff::Timestamp::UNIX_EPOCH);
    assert!(verdict.is_healthy() || !verdict.reason().is_empty());
    let _ = explain(&application, &Evidence::default());
});
