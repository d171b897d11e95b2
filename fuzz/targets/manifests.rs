//! Argo CD's manifest as a file of the user's: made fit, or refused.
#![no_main]

use k8tre::argocd::manifest::{Settings, prepare};
use k8tre::spec::{ArgoCdAt, ArgoCdSpec};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let spec = ArgoCdSpec {
        at: ArgoCdAt::default(),
        version: "v3.6.1".into(),
        manifest: None,
        anonymous: true,
        dex: false,
        notifications: false,
    };
    if let Ok(install) = prepare(text, &spec, &Settings::default()) {
        let _ = (install.crds(), install.images(), install.argocd_image());
    }
});
