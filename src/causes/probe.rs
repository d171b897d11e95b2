//! Containers that run but fail their probes.

use super::view::{Pod, View};
use super::words::{group, pattern};
use super::{Cause, Family};

/// Before crashes: a container that its probe kills looks like one that crashes.
pub const KILLED: Family = Family { codes: &["liveness-probe"], explain: killed };
pub const NOT_READY: Family = Family { codes: &["readiness-probe"], explain: not_ready };

fn killed(view: &View) -> Option<Cause> {
    view.pods.iter().find_map(|pod| {
        let container = pod.containers().find(|container| {
            // SIGKILL or SIGTERM: what kubelet sends, and what a program of its own seldom ends with.
            container.ended().is_some_and(|ended| {
                matches!(ended["exitCode"].as_i64(), Some(137 | 143)) && ended["reason"] != "OOMKilled"
            })
        })?;
        let (probe, said) = failure(view, pod, &["Liveness", "Startup"])?;
        let cause = Cause::new("liveness-probe").because_all(pod.links());
        let cause =
            cause.because(format!("container {} is killed by its {} probe", container.name(), probe.to_lowercase()));
        Some(cause.because(said).hint(pod.describe()))
    })
}

fn not_ready(view: &View) -> Option<Cause> {
    view.pods.iter().find_map(|pod| {
        let container = pod
            .containers()
            .find(|c| c.status["ready"] == false && c.status["state"]["running"].is_object() && !c.init)?;
        let (probe, said) = failure(view, pod, &["Readiness", "Startup"])?;
        let cause = Cause::new("readiness-probe").because_all(pod.links());
        let cause = cause.because(format!("container {} fails its {} probe", container.name(), probe.to_lowercase()));
        let hint = format!("kubectl -n {} logs {} -c {}", pod.namespace, pod.name, container.name());
        Some(cause.because(said).hint(hint))
    })
}

/// The newest failure of one of these probes, as probe and reason.
fn failure<'a>(view: &View<'a>, pod: &Pod, probes: &[&str]) -> Option<(&'a str, String)> {
    let message = view.evidence.event_message("Pod", pod.namespace, pod.name, &["Unhealthy"])?;
    let (probe, said) = message.split_once(" probe failed: ").or_else(|| message.split_once(" probe errored: "))?;
    let probe = probes.iter().find(|known| **known == probe).map(|_| probe)?;
    let request = group(pattern!(r#"^(?:Get|Head) "([^"]+)""#), said);
    let said = match request {
        Some(url) => format!("{url}: {}", super::words::innermost(said)),
        None => said.to_owned(),
    };
    Some((probe, said))
}
