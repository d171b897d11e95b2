//! What the Applications of an environment ask of what carries it. Pure.
//!
//! It is what can be read without kustomize's program and without Helm, so the truth may be more, never less.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::Serialize;
use serde_json::Value;

use crate::capacity::{Amount, claimed, requested};
use crate::gitops::planned::Planned;

/// Processor in thousandths; memory and disk in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Asked {
    pub millicores: u64,
    pub memory: u64,
    pub disk: u64,
}

impl AddAssign for Asked {
    fn add_assign(&mut self, other: Asked) {
        self.millicores += other.millicores;
        self.memory += other.memory;
        self.disk += other.disk;
    }
}

/// By app, as `--skip` names it.
pub type ByApp = BTreeMap<String, Asked>;

pub fn by_app(planned: &[Planned]) -> ByApp {
    let mut apps = ByApp::new();
    for one in planned {
        *apps.entry(one.app.clone()).or_default() += asked(&one.object);
    }
    apps
}

pub fn sum(apps: &ByApp) -> Asked {
    apps.values().fold(Asked::default(), |mut sum, one| {
        sum += *one;
        sum
    })
}

/// The apps to leave out so that the rest fits, the largest first; none if all of it does.
pub fn too_much(apps: &ByApp, room: Asked) -> Vec<String> {
    let over = |sum: Asked| [sum.millicores > room.millicores, sum.memory > room.memory, sum.disk > room.disk];
    let mut left: Vec<(&String, &Asked)> = apps.iter().collect();
    let mut out = Vec::new();
    loop {
        let mut sum = Asked::default();
        left.iter().for_each(|(_, one)| sum += **one);
        let share = |asked: &Asked| match over(sum) {
            [_, true, _] => asked.memory,
            [true, ..] => asked.millicores,
            [_, _, true] => asked.disk,
            _ => 0,
        };
        let largest = left.iter().enumerate().max_by_key(|(_, (_, asked))| share(asked));
        match largest {
            Some((at, (_, asked))) if share(asked) > 0 => out.push(left.remove(at).0.clone()),
            _ => return out,
        }
    }
}

fn asked(object: &Value) -> Asked {
    let spec = &object["spec"];
    let replicas = spec["replicas"].as_u64().unwrap_or(1);
    let pods = match object["kind"].as_str() {
        Some("Pod") => requested(object),
        Some("Deployment" | "StatefulSet" | "ReplicaSet") => requested(&spec["template"]) * replicas,
        // On each node; that of the laptop is one.
        Some("DaemonSet") => requested(&spec["template"]),
        Some("Job") => requested(&spec["template"]) * spec["parallelism"].as_u64().unwrap_or(1),
        _ => Amount::default(),
    };
    let claims: u64 = spec["volumeClaimTemplates"].as_array().into_iter().flatten().map(claimed).sum();
    let disk = match object["kind"].as_str() {
        Some("PersistentVolumeClaim") => claimed(object),
        Some("StatefulSet") => claims.saturating_mul(replicas),
        _ => 0,
    };
    Asked { millicores: pods.millicores, memory: pods.memory, disk }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MI: u64 = 1 << 20;

    fn planned(app: &str, object: Value) -> Planned {
        Planned { application: format!("{app}-alice"), app: app.into(), object }
    }

    #[test]
    fn replicas_and_claims_count_and_the_largest_go_first() {
        let template =
            json!({"spec": {"containers": [{"resources": {"requests": {"cpu": "500m", "memory": "100Mi"}}}]}});
        let claim = json!({"spec": {"resources": {"requests": {"storage": "1Gi"}}}});
        let apps = by_app(&[
            planned("hub", json!({"kind": "Deployment", "spec": {"replicas": 3, "template": template}})),
            planned(
                "db",
                json!({"kind": "StatefulSet", "spec": {"replicas": 2, "template": template, "volumeClaimTemplates": [claim]}}),
            ),
            planned("db", json!({"kind": "ConfigMap"})),
        ]);
        assert_eq!(apps["hub"], Asked { millicores: 1500, memory: 300 * MI, disk: 0 });
        assert_eq!(apps["db"], Asked { millicores: 1000, memory: 200 * MI, disk: 2 << 30 });
        let room = |memory| Asked { millicores: 9000, memory: memory * MI, disk: 9 << 30 };
        assert_eq!(too_much(&apps, room(500)), Vec::<String>::new());
        assert_eq!(too_much(&apps, room(200)), ["hub"]);
        assert_eq!(too_much(&apps, room(10)), ["hub", "db"]);
        assert_eq!(too_much(&apps, Asked { disk: 1 << 30, ..room(900) }), ["db"]);
    }
}
