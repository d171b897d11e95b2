//! Several developers on one Argo CD, each on a machine of their own; and what one of them forgets.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::repository::daemon;
use crate::support::hub::Hub;
use crate::support::{LIMIT, Ran, Running, World};

/// What a developer's k8tre keeps, apart from that of the others, and what it is told.
struct Machine<'a> {
    world: &'a World,
    variables: Vec<(&'static str, String)>,
}

impl<'a> Machine<'a> {
    fn new(hub: &Hub, world: &'a World, folder: &str) -> Machine<'a> {
        let data = world.home.join(folder).to_string_lossy().into_owned();
        Machine { world, variables: vec![("KUBECONFIG", hub.kubeconfig.clone()), ("K8TRE_DATA_DIR", data)] }
    }

    fn start(&self, args: &[&str]) -> Running {
        let variables: Vec<(&str, &str)> = self.variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.world.start_with(&variables, args)
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.start(args).wait(LIMIT)
    }

    fn up(&self, hub: &Hub, name: &str, more: &[&str]) -> Running {
        let repo = self.world.home.join("tre").to_string_lossy().into_owned();
        let up = hub.up(name, &repo, more);
        self.start(&up.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

fn row<'v>(list: &'v Value, name: &str) -> &'v Value {
    let rows = list["environments"].as_array().expect("a list of environments");
    rows.iter().find(|row| row["developer"] == name).unwrap_or_else(|| panic!("no {name}: {list:#}"))
}

#[test]
fn two_developers_come_and_go_at_once_and_what_one_forgets_is_collected_elsewhere() {
    let world = World::new();
    let hub = Hub::new(&world);
    let (dora, edda) = (world.name("dora"), world.name("edda"));
    let repo = world.own_repository();
    let (daemon, url) = daemon(&world);
    world.git(&repo, &["remote", "add", "origin", &url]).expect(0);
    let stable = hub.stable();
    let machines = ["doras", "eddas", "somebodys"].map(|folder| Machine::new(&hub, &world, folder));
    let [doras, eddas, somebodys] = &machines;

    let started = Instant::now();
    let life = Duration::from_secs(180);
    let ups = [doras.up(&hub, &dora, &["--ttl", "180s"]), eddas.up(&hub, &edda, &[])];
    for up in ups {
        up.wait(LIMIT).expect(0);
    }
    assert_eq!(hub.stable(), stable, "the stable environment's Applications after both");
    for (machine, name) in [(doras, &dora), (eddas, &edda)] {
        machine.run(&["dev", "status", name]).expect(0);
    }
    let list = somebodys.run(&["shared", "list", "--argocd", "team", "-o", "json"]).expect(0).json();
    for name in [&dora, &edda] {
        let row = row(&list, name);
        assert_eq!((&row["reachable"], &row["healthy"]), (&json!(true), &row["applications"]), "{row:#}");
    }
    assert!(row(&list, &dora)["expires"].is_string() && row(&list, &edda)["expires"].is_null(), "{list:#}");

    // Nobody is in the way before the time, and after it whoever comes.
    let look = ["dev", "gc", "--argocd", "team", "--dry-run", "-o", "json"];
    let found = || somebodys.run(&look).expect(0).json()["found"].as_array().cloned().expect("a list");
    let of = |name: &str, found: &[Value]| found.iter().filter(|one| one["name"] == name).cloned().collect::<Vec<_>>();
    if started.elapsed() < life - Duration::from_secs(30) {
        assert!(of(&dora, &found()).is_empty());
    }
    std::thread::sleep((life + Duration::from_secs(2)).saturating_sub(started.elapsed()));
    let ended = found();
    let places: Vec<&str> =
        ended.iter().filter(|one| one["name"] == *dora).filter_map(|one| one["kind"].as_str()).collect();
    assert_eq!(places, ["registration", "cluster"], "{ended:#?}");
    assert!(of(&edda, &ended).is_empty(), "{ended:#?}");
    assert!(!hub.remains(&dora).is_empty(), "a dry run removes nothing");

    // One goes by itself while the other is collected.
    let collecting = somebodys.start(&["dev", "gc", "--argocd", "team", "--yes"]);
    let leaving = eddas.start(&["dev", "down", &edda]);
    collecting.wait(LIMIT).expect(0);
    leaving.wait(LIMIT).expect(0);
    for name in [&dora, &edda] {
        assert_eq!(hub.remains(name), [""; 0], "{name}");
        let node = format!("name=k8tre-{name}");
        assert_eq!(world.docker(&["ps", "--all", "--quiet", "--filter", &node]).expect(0).stdout, "");
    }
    assert_eq!(hub.stable(), stable, "the stable environment's Applications after both have gone");

    // Whoever forgot it hears what became of it, and has nothing left either.
    assert_eq!(doras.run(&["dev", "status", &dora]).code, Some(3));
    doras.run(&["dev", "down", &dora]).expect(0);
    assert_eq!(world.git(&repo, &["ls-remote", "--heads", "origin", "dev/*"]).expect(0).stdout, "");
    drop(daemon);
    world.down(&hub.name);
}
