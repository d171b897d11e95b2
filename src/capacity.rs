//! What a cluster or a machine has left, and what is asked of it. Pure.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{AddAssign, Mul};

use serde_json::Value;

/// Processor in thousandths, memory in bytes, and pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    pub millicores: u64,
    pub memory: u64,
    pub pods: u64,
}

impl Amount {
    /// What is missing of `needed`, each by itself; none if all of it is there.
    pub fn lacking(self, needed: Amount) -> Option<Amount> {
        let missing = Amount {
            millicores: needed.millicores.saturating_sub(self.millicores),
            memory: needed.memory.saturating_sub(self.memory),
            pods: needed.pods.saturating_sub(self.pods),
        };
        (missing != Amount::default()).then_some(missing)
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Amount) {
        self.millicores += other.millicores;
        self.memory += other.memory;
        self.pods += other.pods;
    }
}

impl Mul<u64> for Amount {
    type Output = Amount;

    fn mul(self, times: u64) -> Amount {
        Amount {
            millicores: self.millicores.saturating_mul(times),
            memory: self.memory.saturating_mul(times),
            pods: self.pods.saturating_mul(times),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.millicores > 0).then(|| format!("{}m CPU", self.millicores)),
            (self.memory > 0).then(|| format!("{} MiB of memory", self.memory.div_ceil(1 << 20))),
            (self.pods > 0).then(|| format!("{} pods", self.pods)),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// What a pod asks for: its containers together, or the largest of those that run before them.
pub fn requested(pod: &Value) -> Amount {
    let of = |list: &str| -> Vec<Amount> {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        containers.map(|container| amount(&container["resources"]["requests"])).collect()
    };
    let mut sum = Amount { pods: 1, ..Amount::default() };
    of("containers").into_iter().for_each(|one| sum += one);
    for before in of("initContainers") {
        sum.millicores = sum.millicores.max(before.millicores);
        sum.memory = sum.memory.max(before.memory);
    }
    sum
}

/// What all pods together ask for that have not ended.
pub fn requested_by<'a>(pods: impl IntoIterator<Item = &'a Value>) -> Amount {
    let mut sum = Amount::default();
    let ended = |pod: &&Value| matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    pods.into_iter().filter(|pod| !ended(pod)).for_each(|pod| sum += requested(pod));
    sum
}

/// What the nodes have left together, those that take pods.
pub fn left(nodes: &[Value], pods: &[Value]) -> Amount {
    let mut by_node: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for pod in pods {
        by_node.entry(pod["spec"]["nodeName"].as_str().unwrap_or_default()).or_default().push(pod);
    }
    let mut sum = Amount::default();
    for node in nodes.iter().filter(|node| takes_pods(node)) {
        let name = node["metadata"]["name"].as_str().unwrap_or_default();
        let has = amount(&node["status"]["allocatable"]);
        let used = requested_by(by_node.get(name).into_iter().flatten().copied());
        sum += Amount {
            millicores: has.millicores.saturating_sub(used.millicores),
            memory: has.memory.saturating_sub(used.memory),
            pods: has.pods.saturating_sub(used.pods),
        };
    }
    sum
}

fn takes_pods(node: &Value) -> bool {
    let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
    node["spec"]["unschedulable"] != true
        && !taints.any(|taint| matches!(taint["effect"].as_str(), Some("NoSchedule" | "NoExecute")))
}

pub fn amount(resources: &Value) -> Amount {
    let text = |key: &str| match &resources[key] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Amount {
        millicores: quantity(&text("cpu")).map_or(0, |cores| whole(cores * 1000.0)),
        memory: quantity(&text("memory")).map_or(0, whole),
        pods: quantity(&text("pods")).map_or(0, whole),
    }
}

/// Storage that a claim asks for, in bytes.
pub fn claimed(claim: &Value) -> u64 {
    claim["spec"]["resources"]["requests"]["storage"].as_str().and_then(quantity).map_or(0, whole)
}

/// A quantity as Kubernetes writes it.
fn quantity(text: &str) -> Option<f64> {
    const SUFFIXES: [(&str, f64); 13] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("n", 1e-9),
        ("u", 1e-6),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
    ];
    let suffixed = SUFFIXES.iter().find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, factor)));
    let (number, factor) = suffixed.unwrap_or((text, &1.0));
    number.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0).map(|number| number * factor)
}

/// Never negative, as `quantity` gives none; beyond what fits, the largest there is.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(number: f64) -> u64 {
    number.ceil() as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MI: u64 = 1 << 20;

    #[test]
    fn quantities_are_read_as_kubernetes_writes_them() {
        for (text, value) in [("2", 2.0), ("250m", 0.25), ("1Gi", 1_073_741_824.0), ("1e3", 1000.0), ("0.5", 0.5)] {
            assert_eq!(quantity(text), Some(value), "{text}");
        }
        for text in ["", "null", "many", "-1", "NaN"] {
            assert_eq!(quantity(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_left_is_what_nodes_that_take_pods_have_over_what_runs_there() {
        let node = |name: &str, more: Value| {
            let mut node = json!({"metadata": {"name": name}, "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "110"}}});
            node["spec"] = more;
            node
        };
        let nodes = [
            node("one", json!({})),
            node("cordoned", json!({"unschedulable": true})),
            node("tainted", json!({"taints": [{"key": "k", "effect": "NoSchedule"}]})),
        ];
        let pod = |phase: &str| {
            json!({"spec": {"nodeName": "one",
                "containers": [{"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}, {}],
                "initContainers": [{"resources": {"requests": {"cpu": "1", "memory": "1Mi"}}}]},
                "status": {"phase": phase}})
        };
        let left = left(&nodes, &[pod("Running"), pod("Succeeded")]);
        assert_eq!(left, Amount { millicores: 1000, memory: 3 * 1024 * MI, pods: 109 });
        assert_eq!(left.lacking(Amount { millicores: 900, memory: MI, pods: 1 }), None);
        let missing = left.lacking(Amount { millicores: 1200, memory: MI, pods: 1 }).unwrap();
        assert_eq!(missing.to_string(), "200m CPU");
    }
}
