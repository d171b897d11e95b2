//! An Argo CD that others use too: that of another environment, which stands for a stable one.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use super::World;

/// What of a stable Application must stay as it is.
pub type Stable = BTreeMap<String, (Value, Value, Value)>;

pub struct Hub<'a> {
    world: &'a World,
    pub name: String,
    /// Value of `KUBECONFIG` by which a developer reaches it as the context `team`.
    pub kubeconfig: String,
}

impl<'a> Hub<'a> {
    pub fn new(world: &'a World) -> Hub<'a> {
        let name = world.name("hub");
        world.up_healthy(&name, &["--sample"]);
        let kubeconfig = fs::read_to_string(world.kubeconfig(&name)).expect("the hub's kubeconfig");
        let team = world.home.join(".kube/team");
        fs::write(&team, kubeconfig.replace(&format!("kind-k8tre-{name}"), "team"))
            .expect("a kubeconfig of the team's");
        let both = format!("{}:{}", world.kubeconfig_of_user().display(), team.display());
        Hub { world, name, kubeconfig: both }
    }

    /// The Applications that are the stable environment's.
    pub fn stable(&self) -> Stable {
        let all = self.world.objects(&self.name, "applications.argoproj.io", &["-n", "argocd"]);
        let ours = all.into_iter().filter(|(key, _)| key.ends_with(&format!("-{}", self.name)));
        let kept = ours.map(|(key, app)| {
            let (uid, spec) = (app["metadata"]["uid"].clone(), app["spec"].clone());
            (key, (uid, spec, app["status"]["sync"]["status"].clone()))
        });
        let kept: Stable = kept.collect();
        assert!(!kept.is_empty(), "the hub has no Applications");
        kept
    }

    /// Everything there that carries the name of an environment.
    pub fn remains(&self, name: &str) -> Vec<String> {
        let kinds =
            ["applications.argoproj.io", "applicationsets.argoproj.io", "appprojects.argoproj.io", "secrets", "pods"];
        let lists = kinds.map(|kind| self.world.objects(&self.name, kind, &["-n", "argocd"]));
        lists.into_iter().flat_map(BTreeMap::into_keys).filter(|key| key.contains(name)).collect()
    }

    /// The command that brings an environment up by its Argo CD.
    pub fn up(&self, name: &str, repo: &str, more: &[&str]) -> Vec<String> {
        let words = ["dev", "up", name, "--repo", repo, "--argocd", "team", "--yes"];
        let words = words.iter().chain(more).map(|word| (*word).to_owned());
        words.chain(self.world.lab_flags()).collect()
    }
}
