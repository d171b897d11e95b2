//! Memory and disk for a node, Argo CD and the sample's workloads.

use std::path::Path;

use async_trait::async_trait;

use super::{Check, Context, Finding};
use crate::error::Result;

const GIB: u64 = 1 << 30;

/// Below the first it cannot work, below the second it may become slow or stop half-way.
struct Threshold {
    need: u64,
    recommended: u64,
}

pub struct Resources {
    memory: Threshold,
    per_further_node: u64,
    disk: Threshold,
}

impl Default for Resources {
    fn default() -> Self {
        Resources {
            // Measured: a node with Argo CD takes about 1.5 GiB, 2 GiB while it starts.
            memory: Threshold { need: 3 * GIB / 2, recommended: 4 * GIB },
            per_further_node: GIB / 2,
            // A node image unpacked, Argo CD's images in Docker and once more in the node.
            disk: Threshold { need: 3 * GIB, recommended: 10 * GIB },
        }
    }
}

#[async_trait]
impl Check for Resources {
    fn name(&self) -> &'static str {
        "memory and disk"
    }

    async fn run(&self, cx: &Context) -> Result<Vec<Finding>> {
        let Some(engine) = cx.engine() else { return Ok(Vec::new()) };
        let available = if cx.engine_is_local() { cx.machine.memory_available() } else { None };
        let mut findings = Vec::new();
        if let Some(memory) = available.or(engine.memory) {
            let further = self.per_further_node * (cx.nodes() - 1);
            let of = if available.is_some() { "free" } else { "given to Docker" };
            findings.extend(judged(
                ("memory", format!("{} of memory {of}", gib(memory))),
                memory,
                &Threshold { need: self.memory.need + further, recommended: self.memory.recommended + further },
                if available.is_some() {
                    "close programs, or: k8tre dev pause NAME"
                } else {
                    "give Docker's virtual machine more memory"
                },
            ));
        }
        if cx.engine_is_local()
            && let Some(disk) = cx.machine.disk_free(Path::new(&engine.root_dir))
        {
            let what = format!("{} of disk free in {}", gib(disk), engine.root_dir);
            findings.extend(judged(("disk", what), disk, &self.disk, "docker system prune"));
        }
        Ok(findings)
    }
}

fn judged((code, what): (&'static str, String), have: u64, threshold: &Threshold, fix: &str) -> Option<Finding> {
    if have < threshold.need {
        let why = format!("an environment needs {} at least", gib(threshold.need));
        Some(Finding::blocker(code, format!("only {what}")).why(why).fix(fix))
    } else if have < threshold.recommended {
        let why = format!("below {} an environment comes up slowly or not at all", gib(threshold.recommended));
        Some(Finding::warning(code, format!("only {what}")).why(why).fix(fix))
    } else {
        None
    }
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / GIB as f64)
}
