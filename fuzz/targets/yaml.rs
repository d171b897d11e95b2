//! YAML of repositories and manifests: bombs and deep nests end early, both readers alike.
#![no_main]

use k8tre::gitops::yaml;

libfuzzer_sys::fuzz_target!(|content: &[u8]| {
    for document in yaml::documents("fuzzed.yaml", content).unwrap_or_default() {
        document.lines.at("/metadata/name");
    }
    let _ = yaml::data("fuzzed.yaml", content);
    let _ = k8tre::gitops::ci_secrets::read("fuzzed.yaml", content);
});
