//! vCluster's Helm chart: a file, or fetched once and kept.

use std::path::PathBuf;

use crate::context::Context;
use crate::error::{Error, Result, ResultExt};
use crate::ports::environment;
use crate::ports::fetch::{Checksum, Wanted};
use crate::spec::VclusterSpec;

const PUBLISHER: &str = "https://charts.loft.sh/charts";
const SIZE_LIMIT: u64 = 16 << 20;

/// The chart. Its publisher has no checksums to compare with, so what came first is what is trusted from then on.
pub async fn get(cx: &Context, spec: &VclusterSpec) -> Result<PathBuf> {
    if let Some(chart) = &spec.chart {
        return match chart.exists() {
            true => Ok(chart.clone()),
            false => Err(Error::usage(format!("there is no chart {}", chart.display()))),
        };
    }
    cx.fetcher()
        .get(&wanted(spec))
        .await
        .context("cannot fetch vCluster's chart")
        .hint("give the chart as a file: --vcluster-chart FILE")
}

/// The chart as it is fetched. `K8TRE_VCLUSTER_CHARTS_URL` names a mirror.
pub fn wanted(spec: &VclusterSpec) -> Wanted {
    let base = environment::var("K8TRE_VCLUSTER_CHARTS_URL").unwrap_or_else(|| PUBLISHER.to_owned());
    let name = format!("vcluster-{}.tgz", spec.version);
    Wanted { url: format!("{base}/{name}"), sha256: Checksum::FirstUse, name, limit: SIZE_LIMIT, executable: false }
}
