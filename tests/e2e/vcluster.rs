//! Environments that are vClusters on a cluster which others use too: that of another environment here, with its Argo CD.
//!
//! vCluster's images cannot be fetched where no registry is reached. `tests/lab/vcluster` builds them from its source; without
//! them these tests say that they did not run.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::repository::daemon;
use crate::support::World;

const IMAGES: [&str; 3] =
    ["ghcr.io/loft-sh/vcluster-oss:0.36.1", "ghcr.io/loft-sh/kubernetes:v1.34.4", "docker.io/coredns/coredns:1.12.1"];
/// Kinds that say what a host is like; what its controllers write all the time is not among them.
const KINDS: &str = "namespaces,persistentvolumes,clusterroles,clusterrolebindings,storageclasses,\
    customresourcedefinitions,deployments,statefulsets,services,secrets,configmaps,serviceaccounts,networkpolicies,\
    resourcequotas,roles,rolebindings,applications.argoproj.io,applicationsets.argoproj.io,appprojects.argoproj.io";

/// The chart, if the lab has what a vCluster needs; a test that goes without says so past the test harness.
fn chart(test: &str) -> Option<String> {
    let chart = std::env::var("K8TRE_LAB_VCLUSTER_CHART").ok();
    if chart.is_none() {
        let text = format!("\nNOT RUN: {test} needs K8TRE_LAB_VCLUSTER_CHART; build it: tests/lab/vcluster\n");
        std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes()).expect("stderr is open in tests");
    }
    chart
}

struct Host<'a> {
    world: &'a World,
    hub: String,
    variables: [(String, String); 2],
}

impl<'a> Host<'a> {
    /// A hub whose nodes hold the images, as the context `team` of the user's.
    fn new(world: &'a World, chart: &str) -> Host<'a> {
        let hub = world.name("hub");
        world.up_healthy(&hub, &["--sample"]);
        let kubeconfig = fs::read_to_string(world.kubeconfig(&hub)).expect("the hub's kubeconfig");
        let team = world.home.join(".kube/team");
        fs::write(&team, kubeconfig.replace(&format!("kind-k8tre-{hub}"), "team")).expect("a kubeconfig of the team's");
        let load = ["load", "docker-image", "--name", &format!("k8tre-{hub}")];
        let loaded = Command::new("kind").args(load).args(IMAGES).output().expect("kind");
        assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
        let both = format!("{}:{}", world.kubeconfig_of_user().display(), team.display());
        let variables = [("KUBECONFIG".to_owned(), both), ("K8TRE_VCLUSTER_CHART".to_owned(), chart.to_owned())];
        Host { world, hub, variables }
    }

    /// A volume that the host can give and take back: the node makes no volumes by itself.
    fn give_volume(&self, name: &str) {
        let volume = format!(
            "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: {name}}}\nspec:\n  capacity: {{storage: 10Gi}}\n  \
             accessModes: [ReadWriteOnce]\n  storageClassName: standard\n  persistentVolumeReclaimPolicy: Delete\n  \
             hostPath: {{path: /tmp/{name}, type: DirectoryOrCreate}}\n"
        );
        let file = self.world.home.join("volume.yaml");
        fs::write(&file, volume).expect("a file");
        self.world.kubectl(&self.hub, &["apply", "-f", &file.to_string_lossy()]).expect(0);
    }

    fn k8tre(&self, args: &[&str]) -> crate::support::Ran {
        let variables = self.variables.each_ref().map(|(name, value)| (name.as_str(), value.as_str()));
        let flags = self.world.lab_flags();
        let flags = if args[1] == "up" { flags } else { Vec::new() };
        let all: Vec<&str> = args.iter().copied().chain(flags.iter().map(String::as_str)).collect();
        self.world.k8tre_with(&variables, &all)
    }

    /// Everything in it: what it is, and which one.
    fn contents(&self) -> BTreeMap<String, Value> {
        let all = self.world.objects(&self.hub, KINDS, &["--all-namespaces"]);
        all.into_iter()
            .map(|(key, object)| {
                let kept = serde_json::json!([object["metadata"]["uid"], object["spec"], object["data"]]);
                (key, kept)
            })
            .collect()
    }
}

fn assert_same(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) {
    let new: Vec<_> = after.keys().filter(|key| !before.contains_key(*key)).collect();
    let gone: Vec<_> = before.keys().filter(|key| !after.contains_key(*key)).collect();
    let changed: Vec<_> =
        before.iter().filter(|(key, value)| after.get(*key).is_some_and(|now| now != *value)).collect();
    assert!(
        new.is_empty() && gone.is_empty() && changed.is_empty(),
        "new: {new:?}\ngone: {gone:?}\nchanged: {changed:?}"
    );
}

#[test]
fn with_an_argo_cd_of_its_own_it_comes_rests_and_goes_and_the_host_is_as_before() {
    let Some(chart) = chart("vcluster::with_an_argo_cd_of_its_own") else { return };
    let world = World::new();
    let host = Host::new(&world, &chart);
    let name = world.name("vera");
    let namespace = format!("k8tre-{name}");
    let repo = world.own_repository();
    let before = host.contents();

    // The lab's node has a class that makes no volumes: said before anything is made.
    let path = repo.to_string_lossy().into_owned();
    let mut up = vec!["dev", "up", &name, "--repo", &path, "--provider", "vcluster", "--host-context", "team", "--yes"];
    let refused = host.k8tre(&up).expect(5);
    assert!(
        refused.stderr.contains("makes no volumes by itself") && refused.stderr.contains("--vcluster-storage none")
    );
    assert_same(&before, &host.contents());

    host.give_volume(&format!("pv-{name}"));
    up.extend(["--vcluster-storage", "volume"]);
    host.k8tre(&up).expect(0);
    let mark = world.object(&host.hub, "namespace", "default", &namespace);
    assert_eq!(mark["metadata"]["labels"]["developer"], name.as_str());
    let again = host.k8tre(&["dev", "up", &name, "-o", "json"]).expect(0).json();
    assert_eq!(again["changed"], false, "{again}");
    let status = world.k8tre(&["dev", "status", &name, "-o", "json"]).expect(0).json();
    assert_eq!((&status["cluster"]["provider"], &status["healthy"]), (&"vcluster".into(), &true.into()));

    let file = repo.join("apps/workspaces/base/profiles.yaml");
    let text = fs::read_to_string(&file).expect("a file of the sample");
    fs::write(&file, text.replacen("a day", "two days", 1)).expect("the repository is ours");
    world.k8tre(&["dev", "sync", &name]).expect(0);
    fs::write(&file, text).expect("the repository is ours");

    world.k8tre(&["dev", "pause", &name]).expect(0);
    let pods = world.objects(&host.hub, "pods", &["-n", &namespace]);
    assert!(pods.is_empty(), "{:?}", pods.keys());
    world.k8tre(&["dev", "resume", &name]).expect(0);
    world.k8tre(&["dev", "status", &name]).expect(0);

    world.k8tre(&["dev", "down", &name]).expect(0);
    assert_same(&before, &host.contents());
    world.down(&host.hub);
}

#[test]
fn by_the_hosts_argo_cd_it_is_deployed_and_taken_back() {
    let Some(chart) = chart("vcluster::by_the_hosts_argo_cd") else { return };
    let world = World::new();
    let host = Host::new(&world, &chart);
    let name = world.name("vito");
    let repo = world.own_repository();
    let (daemon, url) = daemon(&world);
    world.git(&repo, &["remote", "add", "origin", &url]).expect(0);
    let before = host.contents();
    let path = repo.to_string_lossy().into_owned();
    host.k8tre(&[
        "dev",
        "up",
        &name,
        "--repo",
        &path,
        "--provider",
        "vcluster",
        "--host-context",
        "team",
        "--yes",
        "--argocd",
        "team",
        "--vcluster-storage",
        "none",
    ])
    .expect(0);
    let apps = world.objects(&host.hub, "applications.argoproj.io", &["-n", "argocd"]);
    let to = format!("https://k8tre-{name}.k8tre-{name}.svc:443");
    assert!(apps.values().any(|app| app["spec"]["destination"]["server"] == to.as_str()), "{:?}", apps.keys());
    assert!(world.objects(&name, "deployments", &["-n", "argocd"]).is_empty(), "no second Argo CD");
    world.k8tre(&["dev", "status", &name]).expect(0);
    let refused = world.k8tre(&["dev", "pause", &name]).expect(2);
    assert!(refused.stderr.contains("no volume"), "{refused}");
    world.k8tre(&["dev", "down", &name]).expect(0);
    assert_same(&before, &host.contents());
    drop(daemon);
    world.down(&host.hub);
}
