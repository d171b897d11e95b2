//! Where Argo CD's manifest comes from: a file, the cache, or its publisher.

use std::fs;

use crate::context::Context;
use crate::error::{Result, ResultExt};
use crate::ports::environment;
use crate::ports::fetch::{Checksum, Wanted};
use crate::spec::ArgoCdSpec;

/// Checksums of the releases that k8tre is tested with.
const KNOWN: [(&str, &str); 1] = [("v3.6.1", "7be23ca7d9ca3d3074dee8332f1ca92a933b990cee7c9cf22cf3843ee8c2913e")];
const SIZE_LIMIT: u64 = 16 << 20;
const PUBLISHER: &str = "https://raw.githubusercontent.com/argoproj/argo-cd";

pub async fn manifest(cx: &Context) -> Result<String> {
    if let Some(file) = &cx.spec.argocd.manifest {
        return fs::read_to_string(file)
            .with_context(|| format!("cannot read Argo CD's manifest {}", file.display()))
            .hint("give the `install.yaml` of a release: --argocd-manifest FILE");
    }
    let wanted = wanted(&cx.spec.argocd);
    let path = cx.fetcher().get(&wanted).await.hint("give the manifest as a file: --argocd-manifest FILE")?;
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// The manifest as it is fetched. `K8TRE_ARGOCD_URL` names a mirror.
pub fn wanted(spec: &ArgoCdSpec) -> Wanted {
    let version = &spec.version;
    let base = environment::var("K8TRE_ARGOCD_URL").unwrap_or_else(|| PUBLISHER.to_owned());
    let url = format!("{base}/{version}/manifests/install.yaml");
    Wanted {
        sha256: match KNOWN.iter().find(|(known, _)| known == version) {
            Some((_, sha256)) => Checksum::Known((*sha256).to_owned()),
            // The publisher offers no checksum file for it: what comes first is what is trusted.
            None => Checksum::FirstUse,
        },
        url,
        name: format!("argocd-{version}-install.yaml"),
        limit: SIZE_LIMIT,
        executable: false,
    }
}
