//! The journal: damaged it is refused, and what is read is written as it was.
#![no_main]

use k8tre::journal::Journal;

libfuzzer_sys::fuzz_target!(|content: &[u8]| {
    let Ok(journal) = serde_json::from_slice::<Journal>(content) else { return };
    let written = serde_json::to_vec(&journal).expect("what was read can be written");
    assert_eq!(serde_json::from_slice::<Journal>(&written).expect("what was written can be read"), journal);
});
