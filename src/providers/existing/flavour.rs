//! What kind of cluster it is that somebody else made, by what its nodes say of themselves. Pure.

use serde_json::Value;

/// What a cluster is called, and the vendor labels that fit it, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flavour {
    pub name: &'static str,
    pub vendors: &'static [&'static str],
}

const KIND: Flavour = Flavour { name: "kind", vendors: &["kind"] };
const K3S: Flavour = Flavour { name: "k3s", vendors: &["k3s"] };
const K3D: Flavour = Flavour { name: "k3d", vendors: &["k3s"] };
const MINIKUBE: Flavour = Flavour { name: "minikube", vendors: &[] };
const EKS: Flavour = Flavour { name: "EKS", vendors: &["aws", "eks"] };
const AKS: Flavour = Flavour { name: "AKS", vendors: &["azure", "aks"] };
const GKE: Flavour = Flavour { name: "GKE", vendors: &["gcp", "gke"] };
const DOCKER_DESKTOP: Flavour = Flavour { name: "Docker Desktop", vendors: &["kind"] };
const OTHER: Flavour = Flavour { name: "Kubernetes", vendors: &[] };

/// Recognised by the first node that says so; a managed cluster before what its nodes may run.
pub fn of(nodes: &[Value]) -> Flavour {
    nodes.iter().find_map(of_node).unwrap_or(OTHER)
}

fn of_node(node: &Value) -> Option<Flavour> {
    let text = |pointer: &str| node.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let labels = &node["metadata"]["labels"];
    let labelled =
        |prefix: &str| labels.as_object().is_some_and(|labels| labels.keys().any(|key| key.starts_with(prefix)));
    let (id, version) = (text("/spec/providerID"), text("/status/nodeInfo/kubeletVersion"));
    let (name, image) = (text("/metadata/name"), text("/status/nodeInfo/osImage"));
    if labelled("eks.amazonaws.com/") || version.contains("-eks-") {
        return Some(EKS);
    }
    if labelled("kubernetes.azure.com/") || id.starts_with("azure://") {
        return Some(AKS);
    }
    if labelled("cloud.google.com/gke-") || version.contains("-gke.") {
        return Some(GKE);
    }
    if labelled("minikube.k8s.io/") {
        return Some(MINIKUBE);
    }
    // Docker Desktop makes its cluster with kind or by itself, and calls the node after itself in both.
    if name.starts_with("docker-desktop") || name.starts_with("desktop-") || image.contains("Docker Desktop") {
        return Some(DOCKER_DESKTOP);
    }
    if id.starts_with("kind://") {
        return Some(KIND);
    }
    if version.contains("+k3s") || id.starts_with("k3s://") || labels["node.kubernetes.io/instance-type"] == "k3s" {
        return Some(if name.starts_with("k3d-") { K3D } else { K3S });
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_of_cluster_is_known_by_its_nodes() {
        let node = |name: &str, label: &str, id: &str, version: &str| {
            json!({
                "metadata": {"name": name, "labels": {label: "x"}}, "spec": {"providerID": id},
                "status": {"nodeInfo": {"kubeletVersion": version}}
            })
        };
        for (node, name, vendor) in [
            (node("a", "b", "k3s://a", "v1.32.4+k3s1"), "k3s", Some("k3s")),
            (node("k3d-a-server-0", "b", "k3s://k3d-a-server-0", "v1.32.4+k3s1"), "k3d", Some("k3s")),
            (node("a-control-plane", "b", "kind://docker/a/a-control-plane", "v1.34.1"), "kind", Some("kind")),
            (node("minikube", "minikube.k8s.io/name", "", "v1.34.1"), "minikube", None),
            (node("ip-1", "eks.amazonaws.com/nodegroup", "aws:///eu/i-1", "v1.31.2-eks-1"), "EKS", Some("aws")),
            (node("aks-1", "kubernetes.azure.com/cluster", "azure:///x", "v1.31.2"), "AKS", Some("azure")),
            (node("gke-1", "cloud.google.com/gke-nodepool", "gce://x", "v1.31.2-gke.1"), "GKE", Some("gcp")),
            (node("docker-desktop", "b", "", "v1.34.1"), "Docker Desktop", Some("kind")),
            (node("node-1", "b", "", "v1.34.1"), "Kubernetes", None),
        ] {
            let found = of(&[json!({}), node]);
            assert_eq!((found.name, found.vendors.first().copied()), (name, vendor));
        }
    }
}
