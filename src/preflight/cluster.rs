//! A cluster that has the name already and is not ours.

use async_trait::async_trait;

use super::{Check, Context, Finding};
use crate::error::Result;
use crate::providers::ClusterState;
use crate::providers::kind::Kind;

pub struct Cluster;

#[async_trait]
impl Check for Cluster {
    fn name(&self) -> &'static str {
        "the cluster's name"
    }

    async fn run(&self, cx: &Context) -> Result<Vec<Finding>> {
        let (Some(docker), Some(plan)) = (cx.docker(), &cx.plan) else { return Ok(Vec::new()) };
        let kind = Kind::new(docker.clone(), None);
        let ClusterState::Foreign(why) = kind.observe(&plan.cluster, &plan.owner).await? else {
            return Ok(Vec::new());
        };
        Ok(vec![
            Finding::blocker(
                "cluster-foreign",
                format!("there is a cluster {} already, and it is not ours", plan.cluster),
            )
            .why(format!("{why}; k8tre never changes what it did not make"))
            .fix(format!("k8tre dev up ANOTHER-NAME, or: kind delete cluster --name {}", plan.cluster)),
        ])
    }
}
