//! What is not here and may not be fetched: told before anything is made.

use super::{Image, Needed, files};
use crate::bundle::Bundle;
use crate::context::Context;
use crate::error::Result;
use crate::preflight::Finding;

/// What an environment lacks that may fetch nothing: neither this machine has it, nor the bundle that was given.
pub async fn findings(cx: &Context, bundle: Option<&Bundle>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let fetcher = cx.fetcher();
    for file in files(&cx.spec).await? {
        let wanted = &file.wanted;
        let there = file.given.is_some() || file.optional || bundle.is_some_and(|bundle| bundle.has_file(&wanted.name));
        if !there && fetcher.kept(wanted).await?.is_none() {
            findings.push(
                Finding::blocker("offline-file", format!("{} ({}) is not here", wanted.name, file.use_of_it))
                    .why("--offline forbids fetching it")
                    .fix(format!("put {} at {}{}", wanted.url, fetcher.path(wanted).display(), file.or_flag())),
            );
        }
    }
    if !findings.is_empty() {
        // Without these files it cannot be told which images there are.
        return Ok(findings);
    }
    if !cx.provider().loads_images() {
        return Ok(findings);
    }
    // The preflight says what is the matter with Docker.
    if cx.docker().await.is_err() {
        return Ok(findings);
    }
    let Needed { images, .. } = super::of(cx).await?;
    let mut lacking = Vec::new();
    for image in &images {
        let bundled = bundle.is_some_and(|bundle| bundle.has_image(&image.reference));
        if !bundled && cx.held(&image.reference).await?.is_none() {
            lacking.push(image);
        }
    }
    let (required, others): (Vec<&Image>, Vec<&Image>) = lacking.into_iter().partition(|image| image.required);
    let save = "where there is a network: k8tre images save FILE; then: k8tre dev up --offline --bundle FILE";
    let place = if bundle.is_some() { "in the bundle, nor in this Docker" } else { "in this Docker" };
    if !required.is_empty() {
        let what = format!("{} not {place}", listed(&required));
        let why = "nothing comes up without them, and --offline forbids pulling them";
        findings.push(Finding::blocker("offline-image", what).why(why).fix(save));
    }
    if !others.is_empty() {
        let what = format!("{} not {place}", listed(&others));
        let why = "their Applications will not become healthy without a registry";
        findings.push(Finding::warning("offline-app-image", what).why(why).fix(save));
    }
    let always: Vec<&Image> = images.iter().filter(|image| image.always_pulled).collect();
    if !always.is_empty() {
        let what = format!("{} pulled at every start, though the nodes have them", listed(&always));
        let why = "without a registry their pods do not start";
        let fix = "give the image a version as its tag, or say imagePullPolicy: IfNotPresent";
        findings.push(Finding::warning("offline-always-pulled", what).why(why).fix(fix));
    }
    Ok(findings)
}

fn listed(images: &[&Image]) -> String {
    let verb = if images.len() == 1 { "is" } else { "are" };
    let references: Vec<&str> = images.iter().map(|image| image.reference.as_str()).collect();
    format!("{} {verb}", references.join(", "))
}
