//! inotify: every node's systemd, kubelet and containerd watch files. When the limit for the user is
//! reached, nodes stop half-way with "too many open files", or never reach their first log line.

use async_trait::async_trait;

use super::{Check, Context, Finding, Remedy};
use crate::error::Result;
use crate::ports::machine::InotifyLimits;

const RECOMMENDED: InotifyLimits = InotifyLimits { instances: 512, watches: 524_288 };

/// What one node with Argo CD takes.
const NODE: InotifyLimits = InotifyLimits { instances: 40, watches: 400 };

pub struct Inotify;

#[async_trait]
impl Check for Inotify {
    fn name(&self) -> &'static str {
        "inotify limits"
    }

    async fn run(&self, cx: &Context) -> Result<Vec<Finding>> {
        // Docker Desktop's virtual machine has limits of its own, high enough.
        if !cx.engine_is_local() {
            return Ok(Vec::new());
        }
        let Some(limits) = cx.machine.inotify_limits() else { return Ok(Vec::new()) };
        let rootless = cx.engine().is_some_and(|engine| engine.rootless);
        let user = if rootless { rustix::process::getuid().as_raw() } else { 0 };
        let used = cx.machine.inotify_use(user).unwrap_or_default();
        let nodes = cx.nodes();
        let rows = [
            ("max_user_instances", limits.instances, used.instances, NODE.instances * nodes, RECOMMENDED.instances),
            ("max_user_watches", limits.watches, used.watches, NODE.watches * nodes, RECOMMENDED.watches),
        ];
        Ok(rows
            .into_iter()
            .filter_map(|(name, limit, used, need, recommended)| {
                let setting = format!("fs.inotify.{name}={recommended}");
                let fix = format!("sudo sysctl -w {setting}");
                let remedy = Remedy::Sysctl(setting);
                let free = limit.saturating_sub(used);
                if free < need {
                    let what = format!("fs.inotify.{name} is {limit}, and {used} are in use");
                    let why = format!(
                        "a cluster of {nodes} needs about {need}: its nodes would stop with \"too many open files\""
                    );
                    Some(Finding::blocker("inotify", what).why(why).fix(fix).remedy(remedy))
                } else if limit < recommended {
                    let what = format!("fs.inotify.{name} is {limit}");
                    let why =
                        format!("enough now, but a second environment may not start; {recommended} is recommended");
                    Some(Finding::warning("inotify", what).why(why).fix(fix).remedy(remedy))
                } else {
                    None
                }
            })
            .collect())
    }
}
