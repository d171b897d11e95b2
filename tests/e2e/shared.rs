//! An environment that is deployed by an Argo CD which others use too: that of another environment, which is the stable
//! one here.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::repository::daemon;
use crate::support::World;

/// What of a stable Application must stay as it is.
type Stable = BTreeMap<String, (Value, Value, Value)>;

struct Shared<'a> {
    world: &'a World,
    hub: String,
}

impl Shared<'_> {
    /// The hub's Applications that are the stable environment's.
    fn stable(&self) -> Stable {
        let all = self.world.objects(&self.hub, "applications.argoproj.io", &["-n", "argocd"]);
        let ours = all.into_iter().filter(|(key, _)| key.ends_with(&format!("-{}", self.hub)));
        let kept = ours.map(|(key, app)| {
            let (uid, spec) = (app["metadata"]["uid"].clone(), app["spec"].clone());
            (key, (uid, spec, app["status"]["sync"]["status"].clone()))
        });
        kept.collect()
    }

    /// Everything there that carries the name of an environment.
    fn remains(&self, name: &str) -> Vec<String> {
        let kinds =
            ["applications.argoproj.io", "applicationsets.argoproj.io", "appprojects.argoproj.io", "secrets", "pods"];
        let lists = kinds.map(|kind| self.world.objects(&self.hub, kind, &["-n", "argocd"]));
        lists.into_iter().flat_map(BTreeMap::into_keys).filter(|key| key.contains(name)).collect()
    }
}

#[test]
fn it_comes_up_from_there_and_is_taken_back_whole_or_broken() {
    let world = World::new();
    let (hub, name) = (world.name("hub"), world.name("dora"));
    world.up_healthy(&hub, &["--sample"]);
    let shared = Shared { world: &world, hub: hub.clone() };
    let kubeconfig = fs::read_to_string(world.kubeconfig(&hub)).expect("the hub's kubeconfig");
    let own = fs::read_to_string(world.kubeconfig_of_user()).expect("the user's kubeconfig");
    let team = world.home.join(".kube/team");
    fs::write(&team, kubeconfig.replace(&format!("kind-k8tre-{hub}"), "team")).expect("a kubeconfig of the team's");
    let both = format!("{}:{}", world.kubeconfig_of_user().display(), team.display());
    let variables = [("KUBECONFIG", both.as_str())];

    let repo = world.own_repository();
    let (daemon, url) = daemon(&world);
    world.git(&repo, &["remote", "add", "origin", &url]).expect(0);
    let flags = world.lab_flags();
    let path = repo.to_string_lossy().into_owned();
    let up: Vec<&str> = ["dev", "up", &name, "--repo", &path, "--argocd", "team", "--yes"]
        .into_iter()
        .chain(flags.iter().map(String::as_str))
        .collect();
    let (stable, before) = (shared.stable(), shared.remains(&name));
    assert!(!stable.is_empty() && before.is_empty(), "{stable:?} {before:?}");

    world.k8tre_with(&variables, &up).expect(0);
    // What is recorded is enough from now on.
    world.k8tre(&["dev", "status", &name]).expect(0);
    let apps = world.objects(&hub, "applications.argoproj.io", &["-n", "argocd"]);
    let to = format!("https://k8tre-{name}-control-plane:6443");
    assert!(apps.values().any(|app| app["spec"]["destination"]["server"] == to.as_str()), "{:?}", apps.keys());
    assert!(world.objects(&name, "deployments", &["-n", "argocd"]).is_empty(), "no second Argo CD");
    rights(&world, &name);
    assert_eq!(shared.stable(), stable, "the stable environment's Applications after up");
    world.k8tre(&["dev", "down", &name]).expect(0);
    assert_eq!(shared.remains(&name), before);

    // The same with a cluster that somebody deleted.
    world.k8tre_with(&variables, &up).expect(0);
    world.docker(&["rm", "-f", "-v", &format!("k8tre-{name}-control-plane")]).expect(0);
    let down = world.k8tre(&["dev", "down", &name]).expect(0);
    assert!(down.took <= Duration::from_secs(60), "down took {:?}", down.took);
    assert_eq!(shared.remains(&name), before);
    assert_eq!(shared.stable(), stable, "the stable environment's Applications after down");
    assert_eq!(fs::read_to_string(world.kubeconfig_of_user()).expect("the user's kubeconfig"), own);
    drop(daemon);
    world.down(&hub);
}

/// What Argo CD's account may and may not do, as the API server itself says.
fn rights(world: &World, name: &str) {
    let account = "--as=system:serviceaccount:k8tre-system:k8tre-argocd";
    let may = |verb: &str, resource: &str| {
        let asked = world.kubectl(name, &["auth", "can-i", verb, resource, account, "--all-namespaces"]);
        asked.stdout.trim() == "yes"
    };
    for (verb, resource) in [
        ("list", "secrets"),
        ("watch", "pods"),
        ("create", "deployments.apps"),
        ("patch", "namespaces"),
        ("delete", "clusterroles.rbac.authorization.k8s.io"),
    ] {
        assert!(may(verb, resource), "{verb} {resource}");
    }
    for (verb, resource) in [
        ("impersonate", "users"),
        ("create", "serviceaccounts/token"),
        ("create", "pods/exec"),
        ("get", "nodes/proxy"),
        ("escalate", "clusterroles.rbac.authorization.k8s.io"),
        ("bind", "clusterroles.rbac.authorization.k8s.io"),
        ("delete", "nodes"),
    ] {
        assert!(!may(verb, resource), "{verb} {resource}");
    }
}
