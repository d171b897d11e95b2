//! Memory, processor and disk: for a node and Argo CD, and for what the Applications ask for.

use std::path::Path;

use async_trait::async_trait;

use super::{Check, Context, Fact, Finding};
use crate::error::Result;
use crate::requests::{Asked, sum, too_much};

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
        findings.extend(self.applications(cx));
        Ok(findings)
    }

    async fn facts(&self, cx: &Context) -> Vec<Fact> {
        let Some(engine) = cx.engine() else { return Vec::new() };
        let has = self.has(cx);
        let mut parts: Vec<String> = engine.cpus.iter().map(|cpus| format!("{cpus} CPUs")).collect();
        for (what, there) in [("memory", has.memory), ("disk", has.disk)] {
            if there < u64::MAX {
                parts.push(format!("{} of {what} free", gib(there)));
            }
        }
        let mut facts = vec![Fact::new("this machine", parts.join(", "))];
        if let Some(meant) = &cx.meant {
            let asked = sum(&meant.requests);
            let what = match asked == Asked::default() {
                true => "not known: nothing outside of Helm charts asks for anything".to_owned(),
                false => format!(
                    "at least {}m CPU, {} of memory, {} of disk",
                    asked.millicores,
                    gib(asked.memory),
                    gib(asked.disk)
                ),
            };
            facts.push(Fact::new("Applications ask", what));
        }
        facts
    }
}

impl Resources {
    /// What there is for the pods of Applications, beside a node and Argo CD.
    pub fn room(&self, cx: &Context) -> Asked {
        let has = self.has(cx);
        Asked {
            // What the node itself and Argo CD ask for.
            millicores: has.millicores.saturating_sub(1000),
            memory: has.memory.saturating_sub(self.memory.need + self.per_further_node * (cx.nodes() - 1)),
            disk: has.disk.saturating_sub(self.disk.need),
        }
    }

    /// All that nodes on this machine could have; the most there is where it is not known.
    fn has(&self, cx: &Context) -> Asked {
        let engine = cx.engine();
        let local = cx.engine_is_local();
        let memory = cx.machine.memory_available().filter(|_| local);
        let root = engine.filter(|_| local).map(|engine| Path::new(&engine.root_dir));
        Asked {
            // Each node takes the whole machine for its own.
            millicores: engine.and_then(|engine| engine.cpus).map_or(u64::MAX, |cpus| cpus * 1000 * cx.nodes()),
            memory: memory.or(engine.and_then(|engine| engine.memory)).unwrap_or(u64::MAX),
            disk: root.and_then(|root| cx.machine.disk_free(root)).unwrap_or(u64::MAX),
        }
    }

    /// The Applications against the machine: pods that find no room stay Pending.
    fn applications(&self, cx: &Context) -> Option<Finding> {
        let apps = &cx.meant.as_ref()?.requests;
        let room = self.room(cx);
        let out = too_much(apps, room);
        if out.is_empty() {
            return None;
        }
        let asked = sum(apps);
        let mut over = Vec::new();
        if asked.millicores > room.millicores {
            over.push(format!("{}m CPU of {}m", asked.millicores, room.millicores));
        }
        for (what, asked, room) in [("memory", asked.memory, room.memory), ("disk", asked.disk, room.disk)] {
            if asked > room {
                over.push(format!("{} of {what}, with {} left", gib(asked), gib(room)));
            }
        }
        let what = format!("the Applications ask for more than this machine has: {}", over.join("; "));
        Some(
            Finding::warning("requests", what)
                .why("beside a node and Argo CD; pods that find no room stay Pending, and the environment unhealthy")
                .fix(format!("k8tre dev up --skip {}", out.join(","))),
        )
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
    if bytes < GIB / 10 {
        return format!("{} MiB", bytes >> 20);
    }
    format!("{:.1} GiB", bytes as f64 / GIB as f64)
}
