//! A cluster that is there already, on a desk: `lab`, which nobody's k8tre made, as the context `lab` of the user's.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::desk::Desk;
use super::tools;

pub const LAB: &str = "lab";

/// What puts an environment into it.
pub const UP: [&str; 12] =
    ["dev", "up", "alice", "-v", "--provider", "existing", "--context", LAB, "--repo", "../tre", "--ttl", "8h"];

/// A desk with that cluster, and something of somebody's in it.
pub async fn desk() -> Desk {
    let desk = Desk::new().await;
    add(&desk);
    desk
}

/// Adds the cluster and its context.
pub fn add(desk: &Desk) {
    let labels = json!({"io.x-k8s.kind.cluster": LAB, "io.x-k8s.kind.role": "control-plane"});
    let name = format!("{LAB}-control-plane");
    desk.docker.add(json!({"name": name, "birth": "lab-1", "labels": labels, "state": "running", "files": []}));
    let server = std::fs::read_to_string(desk.kind.folder().join("server")).unwrap();
    let add = |text: String, list: &str, entry: &str| {
        text.replace(&format!("{list}:\n"), &format!("{list}:\n- {{name: {LAB}, {entry}}}\n"))
    };
    let text = add(tools::KUBECONFIG.to_owned(), "clusters", &format!("cluster: {{server: \"{server}/{LAB}\"}}"));
    let text = add(text, "contexts", "context: {cluster: lab, user: me}");
    desk.write("home/.kube/config", &text);
    let theirs =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": "default"}});
    desk.clusters.plant(LAB, "configmaps", &theirs);
}

/// An Argo CD of somebody's, with an Application.
pub fn give_argocd(desk: &Desk) {
    let metadata = |name: &str| json!({"name": name, "namespace": "argocd"});
    for (name, plural, kind) in [
        ("argocd-repo-server", "deployments", "Deployment"),
        ("argocd-applicationset-controller", "deployments", "Deployment"),
        ("argocd-application-controller", "statefulsets", "StatefulSet"),
    ] {
        let labels = json!({"app.kubernetes.io/name": name});
        let containers = json!([{"name": name, "image": "example.org/argocd:v3.6.1"}]);
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
        let spec = json!({"replicas": 1, "template": template});
        let object = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata(name), "spec": spec});
        desk.clusters.plant(LAB, plural, &object);
    }
    for (kind, plural) in
        [("Application", "applications"), ("ApplicationSet", "applicationsets"), ("AppProject", "appprojects")]
    {
        let spec = json!({"group": "argoproj.io", "names": {"kind": kind, "plural": plural}, "scope": "Namespaced"});
        let name = json!({"name": format!("{plural}.argoproj.io")});
        let kind = "CustomResourceDefinition";
        let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": kind, "metadata": name, "spec": spec});
        desk.clusters.plant(LAB, "customresourcedefinitions", &crd);
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}});
    desk.clusters.plant(LAB, "namespaces", &namespace);
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("argocd-cm")});
    desk.clusters.plant(LAB, "configmaps", &config);
    let spec = json!({"project": "default", "destination": {"server": "https://kubernetes.default.svc"}});
    let app = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata("theirs"), "spec": spec
    });
    desk.clusters.plant(LAB, "applications", &app);
}

/// Everything on the desk, and in the cluster. Of Argo CD's settings what they are: they may be changed and put back.
pub fn snapshot(desk: &Desk) -> BTreeMap<String, String> {
    let mut all = desk.snapshot();
    let objects = desk.clusters.versions(LAB).into_iter();
    all.extend(objects.map(|(path, version)| match path.ends_with("/argocd-cm") {
        true => (format!("{LAB} {path}"), settings(desk).to_string()),
        false => (format!("{LAB} {path}"), version),
    }));
    all
}

/// The settings of Argo CD.
pub fn settings(desk: &Desk) -> Value {
    let config = desk.clusters.object(LAB, "configmaps", "argocd-cm").unwrap_or_default();
    let data = config["data"].as_object().filter(|data| !data.is_empty());
    data.map_or(Value::Null, |data| json!(data))
}
