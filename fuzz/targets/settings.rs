//! `k8tre.toml`: read, or refused with words.
#![no_main]

use k8tre::settings::FileSettings;

libfuzzer_sys::fuzz_target!(|content: &[u8]| {
    let file = tempfile::NamedTempFile::new_in("/dev/shm").expect("a file in memory");
    std::fs::write(file.path(), content).expect("a file in memory");
    if let Err(error) = FileSettings::read(file.path()) {
        assert!(!error.message().is_empty());
    }
});
