//! An Argo CD that others use too, on a desk: the co-located one of the environment `hub`.

use serde_json::{Value, json};

use super::desk::Desk;
use super::tools;
use crate::cli_repository::give_remote;
use crate::cli_whole::sample_in;

pub const HUB: &str = "k8tre-hub";

/// An environment that this Argo CD deploys.
pub const UP: [&str; 11] = [
    "dev",
    "up",
    "alice",
    "--repo",
    "../tre",
    "--repo-url",
    "https://git.invalid/tre.git",
    "--argocd",
    "team",
    "--yes",
    "-v",
];

/// A desk with that Argo CD as the context `team`, and a repository with a remote that it can read.
pub async fn desk() -> Desk {
    let desk = Desk::new().await;
    sample_in(&desk, "tre").await;
    give_remote(&desk);
    desk.run(&["dev", "up", "hub", "--sample"]).await.code(0);
    let text = std::fs::read_to_string(desk.path("data/environments/hub/kubeconfig")).unwrap();
    let config: Value = serde_json::from_str(&text).unwrap();
    let server = config["clusters"][0]["cluster"]["server"].as_str().unwrap();
    let add = |text: String, list: &str, entry: &str| {
        text.replace(&format!("{list}:\n"), &format!("{list}:\n- {{name: team, {entry}}}\n"))
    };
    let text = add(tools::KUBECONFIG.to_owned(), "clusters", &format!("cluster: {{server: \"{server}\"}}"));
    let text = add(text, "contexts", "context: {cluster: team, user: me}");
    desk.write("home/.kube/config", &text);
    // As kind publishes an API server's port.
    let port: u16 = server.split([':', '/']).nth(4).unwrap().parse().unwrap();
    let path = desk.docker.containers().join(format!("{HUB}-control-plane.json"));
    let mut node: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    node["ports"] = json!([{"public": port, "private": 6443}]);
    std::fs::write(&path, node.to_string()).unwrap();
    desk
}

/// What is on the shared side of an environment, by path.
pub fn remains(desk: &Desk, name: &str) -> Vec<String> {
    desk.clusters.versions(HUB).into_keys().filter(|key| key.contains(name)).collect()
}
