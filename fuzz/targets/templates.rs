//! Templates of ApplicationSets, in both languages, with parameters from a repository.
#![no_main]

use k8tre::gitops::params;
use k8tre::gitops::template::Engine;

#[derive(arbitrary::Arbitrary, Debug)]
struct Rendering<'a> {
    go: bool,
    strict: bool,
    text: &'a str,
    parameters: &'a str,
}

libfuzzer_sys::fuzz_target!(|case: Rendering| {
    let options = if case.go && case.strict { vec!["missingkey=error".to_owned()] } else { Vec::new() };
    let engine = Engine::new(case.go, &options).expect("known options");
    let json = serde_json::from_str(case.parameters).unwrap_or_else(|_| {
        serde_json::json!({"name": "c", "path": {"basename": "dev", "segments": ["x", "dev"]}, "n": 3, "t": case.parameters})
    });
    let _ = engine.render(case.text, &params::value(&json));
});
