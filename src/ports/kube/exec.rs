//! A short command in a container that is there already.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, AttachParams};
use tokio::io::AsyncReadExt;

use super::Kube;
use crate::error::{Error, Result, ResultExt};

/// As much as anybody reads of its answer.
const ANSWER: u64 = 16 * 1024;

impl Kube {
    /// What a command writes to stdout, whatever its exit code is.
    pub async fn exec(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        argv: &[&str],
        limit: Duration,
    ) -> Result<String> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let run = async {
            let params =
                AttachParams { container: Some(container.to_owned()), stderr: false, ..AttachParams::default() };
            let mut process = pods.exec(pod, argv.iter().copied(), &params).await.map_err(|e| self.explain(e))?;
            let stdout = process.stdout().ok_or_else(|| Error::failed("the cluster opened no stream"))?;
            let mut bytes = Vec::new();
            // The stream ends once the status has been taken; a connection that breaks ends with the limit.
            let _status = process.take_status();
            stdout.take(ANSWER).read_to_end(&mut bytes).await?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let ended = tokio::time::timeout(limit, run).await;
        ended
            .unwrap_or_else(|_| Err(Error::failed(format!("no answer within {} s", limit.as_secs()))))
            .with_context(|| format!("cannot run a command in the pod {pod}"))
    }
}
