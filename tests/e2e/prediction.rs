//! The prediction against the real controller: which Applications Argo CD makes of a repository.

use std::path::Path;

use k8tre::gitops::predict::{Cluster, predict};
use k8tre::gitops::repository::Repository;
use k8tre::gitops::tree::FolderTree;
use k8tre::gitops::world::IN_CLUSTER;
use serde_json::{Value, json};

use crate::made::{All, Predicted};
use crate::support::branches::Branch;
use crate::support::controller::{Controller, copy_of};
use crate::support::{World, fixture};

/// With these, the study of the repository saw 21 ApplicationSets and these Applications on a real Argo CD.
const ALICE: &[&str] = &[
    "--vendor=k3s",
    "--domain=alice.example",
    "--label=secret-store=kubernetes",
    "--label=skip-nginx=true",
    "--with=kare-dns",
];
const OF_ALICE: [&str; 16] = [
    "ad-alice",
    "backend-alice",
    "cert-manager-alice",
    "cnpg-alice",
    "cr8tor-alice",
    "external-secrets-alice",
    "gateway-alice",
    "gitea-alice",
    "guacamole-alice",
    "jupyterhub-alice",
    "kare-dns-alice",
    "keycloak-alice",
    "loadbalancer-alice",
    "object-storage-k3s-dev-alice",
    "secret-store-alice",
    "storage-k3s-dev-alice",
];

/// Another vendor, another base environment, and choices of the developer's; and how many Applications come of it.
const OTHERS: [(&str, &[&str], usize); 3] = [
    (
        "bob",
        &[
            "--vendor=aws",
            "--domain=bob.example",
            "--label=secret-store=aws",
            "--label=external-dns=aws",
            "--label=cluster-name=bob-eks",
            "--with=cluster-autoscaler,default-network-policy,externaldns",
        ],
        16,
    ),
    (
        "carol",
        &[
            "--vendor=azure",
            "--base-environment=prd",
            "--label=external-dns=k3s",
            "--label=skip-cr8tor=true",
            "--with=nginx,externaldns",
        ],
        16,
    ),
    ("dave", &["--vendor=none", "--only=keycloak,backend,ad,nginx", "--label=skip-external-secrets=true"], 3),
];

#[test]
fn the_controller_makes_what_was_predicted() {
    let world = World::new();
    let controller = Controller::new(&world, "prediction");
    generators(&world, &controller);
    if let Some(source) = fixture("the_controller_makes_what_was_predicted") {
        let repo = copy_of(&world, &source, "tre", "https://github.com/k8tre/k8tre\\(.git\\)\\?", "main");
        let alice = label_set(&world, &controller, &repo, "alice", ALICE);
        assert_eq!(alice, OF_ALICE);
        for (name, args, count) in OTHERS {
            let made = label_set(&world, &controller, &repo, name, args);
            assert_eq!(made.len(), count, "{name}: {made:?}");
        }
    }
}

/// Every kind of generator and template, in a repository of its own; what the controller makes of it is on record.
fn generators(world: &World, controller: &Controller) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/generators");
    let read = |file: &str| std::fs::read(fixtures.join(file)).expect("the fixture is complete");
    let clusters: Vec<Cluster> = serde_json::from_slice(&read("clusters.json")).expect("clusters");
    let folder = copy_of(world, &fixtures.join("repository"), "generators", "no address", "main");
    controller.push(&folder, "generators");
    clusters.iter().for_each(|cluster| controller.register(cluster));
    controller.apply(&folder.join("appsets"));

    let tree = FolderTree::open(&folder).expect("the copy is there");
    let repository = Repository::read(&tree).expect("the fixture is a TRE repository");
    let names = repository.application_sets.iter().map(|set| set.name.as_str());
    let predicted = Predicted::new(names, &predict(&repository, &tree, &clusters));
    let real = controller.assert_makes("generators", &predicted);
    if std::env::var_os("K8TRE_RECORD").is_some() {
        let text = serde_json::to_string_pretty(&real).expect("plain data");
        std::fs::write(fixtures.join("expected.json"), text + "\n").expect("the fixture can be written");
    }
    let recorded: All = serde_json::from_slice(&read("expected.json")).expect("what was made");
    assert_eq!(predicted.differences(&recorded), Vec::<String>::new(), "set K8TRE_RECORD=1 to record it anew");
    controller.clear();
    clusters.iter().for_each(|cluster| controller.unregister(&cluster.name.to_lowercase().replace('_', "-")));
}

/// The overlay that k8tre writes for a developer, on the real controller; the names of the Applications made.
fn label_set(world: &World, controller: &Controller, repo: &Path, name: &str, args: &[&str]) -> Vec<String> {
    let branch = Branch::new(world, repo, name, args);
    assert_eq!(branch.preview["labels"], json!(branch.labels), "{name}");
    assert_eq!(branch.preview["applications"], json!(branch.prediction.applications), "{name}");
    controller.push(&branch.folder, &format!("dev/{name}"));
    controller.register(&Cluster {
        name: name.into(),
        server: IN_CLUSTER.into(),
        labels: branch.labels.clone(),
        annotations: [("k8tre.dev/environment-id".into(), "0".into())].into(),
    });
    controller.apply(&branch.overlay);
    let tree = FolderTree::open(&branch.folder).expect("the branch is there");
    let sets = Repository::read(&tree).expect("the branch is a TRE repository").application_sets;
    assert_eq!(sets.len(), 21, "{name}");
    let names: Vec<String> = sets.iter().map(|set| format!("{}-{name}", set.name)).collect();
    let predicted = Predicted::new(names.iter().map(String::as_str), &branch.prediction);
    assert!(predicted.open.is_empty() && predicted.clashing.is_empty(), "{name}: {:?}", predicted.open);
    let real = controller.assert_makes(name, &predicted);
    let made: Vec<String> = real.values().flat_map(|made| made.applications.keys().cloned()).collect();
    controller.clear();
    controller.unregister(name);
    let plugins = |value: &Value| {
        value["applications"].as_array().map_or(0, |apps| apps.iter().filter(|app| !app["plugin"].is_null()).count())
    };
    assert!(plugins(&branch.preview) > 0, "the comparison covers the plugin: {}", branch.preview);
    let mut made = made;
    made.sort();
    made
}
