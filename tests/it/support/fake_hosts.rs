//! Clusters that carry vClusters, and clusters that are silent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::fake_cluster::FakeClusters;
use super::vcluster::{Charts, HOST};

#[derive(Clone, Default)]
pub struct Hosts {
    /// Control planes that run in one of the clusters, by name; and the charts that put them there.
    inner: Arc<Mutex<BTreeMap<String, String>>>,
    charts: Arc<Mutex<Option<Charts>>>,
    silent: Arc<Mutex<BTreeSet<String>>>,
}

impl Hosts {
    /// The birth of the vCluster of that name, if its control plane runs.
    pub fn control_plane(&self, name: &str) -> Option<String> {
        self.inner.lock().unwrap().get(name).cloned()
    }

    pub fn is_silent(&self, cluster: &str) -> bool {
        self.silent.lock().unwrap().contains(cluster)
    }
}

impl FakeClusters {
    /// A cluster that takes connections and says nothing to them, or speaks again.
    pub fn silence(&self, cluster: &str, silent: bool) {
        let mut all = self.hosts.silent.lock().unwrap();
        if silent {
            all.insert(cluster.to_owned())
        } else {
            all.remove(cluster)
        };
    }

    /// A pod that asks for so much of a cluster's processors.
    pub fn fill(&self, cluster: &str, cpu: &str) {
        let containers = json!([{"name": "full", "resources": {"requests": {"cpu": cpu}}}]);
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "full", "namespace": "default"},
            "spec": {"nodeName": "control-plane", "containers": containers}, "status": {"phase": "Running"}});
        self.plant(cluster, "pods", &pod);
    }

    /// Releases of a fake helm from now on end up in the cluster of the user's that carries vClusters.
    pub fn install(&self, charts: Charts) {
        *self.hosts.charts.lock().unwrap() = Some(charts);
    }

    /// Puts into the cluster what was released since the last look, and looks which vClusters run.
    pub fn settle(&self) {
        if let Some(charts) = &*self.hosts.charts.lock().unwrap() {
            for (namespace, objects) in charts.fresh() {
                // In a namespace that is gone nothing can be made.
                if self.object(HOST, "namespaces", &namespace).is_some() {
                    objects.iter().for_each(|(plural, object)| self.plant(HOST, plural, object));
                }
            }
        }
        let world = self.world.lock().unwrap();
        let running = |object: &&Value| {
            object["metadata"]["labels"]["app"] == "vcluster" && object["spec"]["replicas"].as_u64() != Some(0)
        };
        let planes =
            world.clusters.values().flat_map(|cluster| cluster.store.of_plural("statefulsets")).filter(running);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        *self.hosts.inner.lock().unwrap() =
            planes.map(|one| (text(&one["metadata"]["name"]), text(&one["metadata"]["uid"]))).collect();
    }
}
