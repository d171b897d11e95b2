//! Two developers on one machine, at the same time, on the same repository.

use std::collections::BTreeSet;

use crate::support::{LIMIT, Up, World};

#[test]
fn two_environments_come_up_at_once_and_do_not_know_of_each_other() {
    let world = World::new();
    let names = [world.name("alice"), world.name("bob")];
    let before = world.snapshot(&[]);
    let running = names.each_ref().map(|name| world.start_up(name, &["--sample", "-o", "json"]));
    let ups = running.map(|running| Up::of(&running.wait(LIMIT).expect(0)));
    let sample = world.sample();
    for (name, up) in names.iter().zip(&ups) {
        world.assert_deployed(name, &sample, up);
        world.assert_status_healthy(name);
        let secrets = world.objects(name, "secrets", &["-n", "argocd", "-l", "argocd.argoproj.io/secret-type=cluster"]);
        let labels = |key: &str| -> Vec<String> {
            secrets
                .values()
                .filter_map(|secret| secret["metadata"]["labels"][key].as_str().map(str::to_owned))
                .collect()
        };
        assert_eq!(labels("developer"), std::slice::from_ref(name), "one cluster Secret, with its developer");
        assert_eq!(labels("environment"), [format!("dev-{name}")]);
        let sets = world.objects(name, "applicationsets.argoproj.io", &["-n", "argocd"]);
        assert!(!sets.is_empty() && sets.keys().all(|set| set.ends_with(name)), "{:?}", sets.keys());
    }
    let shared: BTreeSet<_> = ups[0].applications.intersection(&ups[1].applications).collect();
    assert!(shared.is_empty(), "an Application of both: {shared:?}");

    let [alice, bob] = &names;
    let bobs_tip = world.tip(&sample, &format!("dev/{bob}"));
    world.down(alice);
    let containers = world.docker(&["ps", "--all", "--format", "{{.Names}}"]).expect(0).stdout;
    assert!(!containers.contains(alice.as_str()) && containers.contains(bob.as_str()), "{containers}");
    assert_eq!(world.tip(&sample, &format!("dev/{alice}")), None, "the branch goes with its environment");
    assert_eq!(world.tip(&sample, &format!("dev/{bob}")), bobs_tip, "and the other's stays");
    world.assert_status_healthy(bob);
    world.assert_deployed(bob, &sample, &ups[1]);

    // Not --all: on a machine that is shared it would take other people's environments, too.
    world.down(bob);
    world.assert_nothing_left(&before, &[]);
}
