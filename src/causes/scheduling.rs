//! Pods that no node takes, or that a node threw out.

use serde_json::Value;

use super::evidence::items;
use super::view::View;
use super::words::{group, pattern};
use super::{Cause, Family};

pub const FAMILY: Family = Family { codes: &["unschedulable"], explain };
/// Asked last: an evicted pod stays in the list after another has taken its place.
pub const EVICTED: Family = Family { codes: &["evicted"], explain: evicted };

fn explain(view: &View) -> Option<Cause> {
    view.pods.iter().find_map(|pod| {
        let condition = items(&pod.object["status"]["conditions"])
            .find(|c| c["type"] == "PodScheduled" && c["status"] == "False" && c["reason"] == "Unschedulable")?;
        let message = condition["message"].as_str()?;
        let cause = Cause::new("unschedulable").because_all(pod.links());
        let cause = match lacking(message).as_slice() {
            [] => cause.because(reasons(message)),
            short => cause.because(format!("no node has enough {}", short.join(" and "))).because_all(asked(
                pod.object,
                &view.evidence.nodes,
                short,
            )),
        };
        let hint = match message {
            m if m.contains("taint") => {
                "kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints".to_owned()
            }
            m if m.contains("affinity") || m.contains("selector") => "kubectl get nodes --show-labels".to_owned(),
            m if m.contains("Insufficient") => "kubectl describe nodes | grep -A8 'Allocated resources'".to_owned(),
            _ => pod.describe(),
        };
        Some(cause.hint(hint))
    })
}

fn lacking(message: &str) -> Vec<&str> {
    pattern!(r"Insufficient ([^\s,.]+(?:\.[^\s,.]+)*)")
        .captures_iter(message)
        .filter_map(|found| Some(found.get(1)?.as_str()))
        .collect()
}

/// What the scheduler says against each node, without what it tried to make room.
fn reasons(message: &str) -> String {
    let said = message.split(" preemption:").next().unwrap_or(message).replace("no new claims to deallocate,", "");
    let said = said.trim().trim_end_matches(['.', ',']);
    match group(pattern!(r"^\d+/\d+ nodes are available: (.+)$"), said) {
        Some(reasons) => reasons.to_owned(),
        None => said.to_owned(),
    }
}

/// `asks for cpu 100, the largest node has 2`.
fn asked(pod: &Value, nodes: &[Value], lacking: &[&str]) -> Option<String> {
    let resource = *lacking.first()?;
    let asked: Vec<&str> = items(&pod["spec"]["containers"])
        .filter_map(|container| container["resources"]["requests"][resource].as_str())
        .collect();
    let nodes: Vec<&str> = nodes.iter().filter_map(|node| node["status"]["allocatable"][resource].as_str()).collect();
    let asked = (!asked.is_empty()).then(|| format!("asks for {resource} {}", asked.join(" + ")))?;
    Some(if nodes.is_empty() { asked } else { format!("{asked}; nodes have {}", nodes.join(", ")) })
}

fn evicted(view: &View) -> Option<Cause> {
    view.pods.iter().find_map(|pod| {
        let status = &pod.object["status"];
        let message = status["message"].as_str().filter(|_| status["reason"] == "Evicted")?;
        Some(
            Cause::new("evicted")
                .because(format!("Pod {} Evicted", pod.name))
                .because(message)
                .hint("kubectl describe nodes | grep -A8 Conditions"),
        )
    })
}
