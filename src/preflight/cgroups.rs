//! cgroups: the old kind of them is at its end, and rootless Docker cannot do with it.

use async_trait::async_trait;

use super::{Check, Context, Finding};
use crate::error::Result;

/// From this minor version on, the kubelet refuses to start on cgroup v1.
const CGROUP2_ONLY: u32 = 35;

pub struct Cgroups;

#[async_trait]
impl Check for Cgroups {
    fn name(&self) -> &'static str {
        "cgroups"
    }

    async fn run(&self, cx: &Context) -> Result<Vec<Finding>> {
        let Some(engine) = cx.engine().filter(|engine| engine.cgroup_version == Some(1)) else { return Ok(Vec::new()) };
        let fix = "boot with systemd.unified_cgroup_hierarchy=1";
        if engine.rootless {
            let what = "rootless Docker on cgroup v1";
            return Ok(vec![Finding::blocker("cgroup-rootless", what).why("kind refuses it").fix(fix)]);
        }
        let image = cx.plan.as_ref().map(|plan| plan.node_image.as_str()).unwrap_or_default();
        Ok(vec![match minor(image) {
            Some(minor) if minor >= CGROUP2_ONLY => {
                Finding::blocker("cgroup-v1", format!("this machine has cgroup v1, and {image} needs v2"))
                    .why(format!("the kubelet of Kubernetes 1.{CGROUP2_ONLY} and later does not start on cgroup v1"))
                    .fix(format!("--node-image kindest/node:v1.34.x, or {fix}"))
            }
            _ => Finding::info("cgroup-v1", "this machine has cgroup v1")
                .why(format!("Kubernetes up to 1.{} runs on it, later ones do not", CGROUP2_ONLY - 1))
                .fix(fix),
        }])
    }
}

/// The minor version in a node image's tag: `kindest/node:v1.34.4@sha256:…` is 34.
fn minor(image: &str) -> Option<u32> {
    let tag = image.split('@').next()?.rsplit_once(':')?.1;
    tag.strip_prefix("v1.")?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubernetes_version_is_read_from_the_tag() {
        assert_eq!(minor("kindest/node:v1.34.4@sha256:0123"), Some(34));
        assert_eq!(minor("localhost:5000/node:v1.35.0"), Some(35));
        assert_eq!(minor("mine"), None);
    }
}
