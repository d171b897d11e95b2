//! Private certificate authorities, as hospital networks have them: usable, and known to k8tre too.

use std::path::Path;

use async_trait::async_trait;

use super::{Check, Context, Finding};
use crate::error::Result;
use crate::ports::fetch::{Fetcher, SYSTEM};

pub struct Authorities;

#[async_trait]
impl Check for Authorities {
    fn name(&self) -> &'static str {
        "certificate authorities"
    }

    async fn run(&self, cx: &Context) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        if let Some(bundle) = &cx.ca_bundle
            && let Err(error) = Fetcher::authorities_in(bundle)
        {
            findings.push(
                Finding::of("ca-bundle", &error)
                    .why("nothing can be fetched with it")
                    .fix("name a PEM file: export K8TRE_CA_BUNDLE=FILE, or unset it"),
            );
        }
        for (name, file) in &cx.authorities {
            if let Err(error) = Fetcher::authorities_in(file) {
                let what = format!("{name}: {error}");
                let why = "git, curl and others that go by it reach nothing by https";
                findings.push(Finding::warning("ca-file", what).why(why).fix(format!("unset {name}")));
            }
        }
        // The system's say nothing about this network.
        let own = |file: &Path| !SYSTEM.iter().any(|system| file == Path::new(system));
        let usable = cx.authorities.iter().find(|(_, file)| own(file) && Fetcher::authorities_in(file).is_ok());
        if let (None, Some((name, file))) = (&cx.ca_bundle, usable) {
            let what = format!("{name} names certificates of your own, and k8tre fetches without them");
            findings.push(
                Finding::info("ca-bundle-unset", what)
                    .why("where a proxy looks into TLS, fetching fails with an unknown issuer")
                    .fix(format!("export K8TRE_CA_BUNDLE={}", file.display())),
            );
        }
        Ok(findings)
    }
}
