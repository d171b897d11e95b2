//! Two developers' branches and main's own ApplicationSets with a stable environment, on one Argo CD: whoever comes or
//! goes, nothing of the others changes.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use k8tre::gitops::predict::{Cluster, predict};
use k8tre::gitops::repository::Repository;
use k8tre::gitops::tree::FolderTree;
use serde_json::Value;

use crate::made::Predicted;
use crate::support::branches::Branch;
use crate::support::controller::{Controller, copy_of};
use crate::support::{World, fixture};

type Applications = BTreeMap<String, [Value; 3]>;

#[test]
fn nobody_changes_what_is_anothers() {
    let world = World::new();
    let controller = Controller::new(&world, "neighbours");
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-tre");
    neighbours(&world, &controller, "sample", &sample, "https://example.invalid/tre.git");
    if let Some(source) = fixture("nobody_changes_what_is_anothers") {
        neighbours(&world, &controller, "k8tre", &source, "https://github.com/k8tre/k8tre\\(.git\\)\\?");
    }
}

fn neighbours(world: &World, controller: &Controller, what: &str, source: &Path, own_address: &str) {
    let repo = copy_of(world, source, what, own_address, "main");
    let people = ["alice", "bob"].map(|name| {
        let branch =
            Branch::new(world, &repo, &format!("{name}-{what}"), &["--vendor=k3s", "--label=secret-store=kubernetes"]);
        controller.push(&branch.folder, &format!("dev/{name}-{what}"));
        (format!("{name}-{what}"), branch)
    });
    controller.push(&repo, "main");
    let stable = Cluster {
        name: "stable".into(),
        server: "https://127.0.0.1:10".into(),
        labels: [
            ("environment", "dev"),
            ("vendor", "k3s"),
            ("secret-store", "kubernetes"),
            ("external-domain", "x.example"),
            ("external-dns", "k3s"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into(),
        annotations: BTreeMap::new(),
    };
    controller.register(&stable);
    controller.apply(&repo.join("appsets"));
    let tree = FolderTree::open(&repo).expect("the copy is there");
    let repository = Repository::read(&tree).expect("a TRE repository");
    let names = repository.application_sets.iter().map(|set| set.name.as_str());
    let predicted = Predicted::new(names, &predict(&repository, &tree, &[stable]));
    controller.assert_makes(&format!("main of {what}"), &predicted);
    let of_main = controller.applications();
    assert!(of_main.len() > 3, "a stable environment without Applications shows nothing: {of_main:?}");

    let mut there = of_main.clone();
    for (number, (name, branch)) in people.iter().enumerate() {
        controller.register(&Cluster {
            name: name.clone(),
            server: format!("https://127.0.0.1:2{number}"),
            labels: branch.labels.clone(),
            annotations: BTreeMap::new(),
        });
        controller.apply(&branch.overlay);
        let expected: Vec<&str> = branch.prediction.applications.iter().map(|app| &*app.name).collect();
        there = await_change(controller, &there, &expected, &[]);
    }
    // Each goes as `down` lets an environment of a shared Argo CD go: its cluster first, upon which the controller lets
    // go of its Applications, then its ApplicationSets.
    for (name, branch) in &people {
        let going: Vec<&str> = branch.prediction.applications.iter().map(|app| &*app.name).collect();
        controller.unregister(name);
        there = await_change(controller, &there, &[], &going);
        controller.kubectl(&["delete", "-k", &branch.overlay.to_string_lossy()]);
        there = await_change(controller, &there, &[], &[]);
    }
    assert_eq!(there, of_main, "{what}: what is left is what was there before anybody came");
    controller.clear();
    controller.unregister("stable");
}

/// Waits until exactly these Applications came and those went; everything else is as it was, to the last field.
#[track_caller]
fn await_change(controller: &Controller, before: &Applications, coming: &[&str], going: &[&str]) -> Applications {
    let mut names: Vec<&str> = before.keys().map(String::as_str).filter(|name| !going.contains(name)).collect();
    names.extend(coming);
    names.sort_unstable();
    assert!(coming.iter().all(|name| !before.contains_key(*name)), "a name is taken already: {coming:?}");
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut calm = 0;
    loop {
        let now = controller.applications();
        for (name, facts) in before.iter().filter(|(name, _)| !going.contains(&name.as_str())) {
            assert_eq!(now.get(name), Some(facts), "{name} is another's and has changed");
        }
        calm = if now.keys().eq(names.iter()) { calm + 1 } else { 0 };
        if calm == 6 {
            return now;
        }
        assert!(Instant::now() < deadline, "there are {:?}\nand should be {names:?}", now.keys());
        std::thread::sleep(Duration::from_millis(500));
    }
}
