//! The user's kubeconfig, and what is read of it.
#![no_main]

use k8tre::ports::kubeconfig;

libfuzzer_sys::fuzz_target!(|content: &[u8]| {
    let file = tempfile::NamedTempFile::new_in("/dev/shm").expect("a file in memory");
    std::fs::write(file.path(), content).expect("a file in memory");
    let _ = kubeconfig::server(file.path(), None);
    let _ = kubeconfig::server(file.path(), Some("kind-k8tre-alice"));
    let _ = kubeconfig::authority(file.path());
});
