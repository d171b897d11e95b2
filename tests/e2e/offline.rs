//! A machine without a network: nothing leads out but to Docker, and an environment comes up from one file.

use std::fs;
use std::path::PathBuf;

use crate::support::{LIMIT, Ran, Running, World, assert_same_world};

/// A network namespace that reaches this machine and nothing behind it: no default route. Docker's socket is a file,
/// and so is reached from there as well.
struct Island {
    name: String,
    /// This machine's address there.
    here: String,
}

impl Island {
    fn new(world: &World) -> Island {
        let name = format!("k8i{}", std::process::id() % 100_000);
        let island = Island { here: "10.213.77.1".into(), name };
        let (outside, inside) = (format!("{}a", island.name), format!("{}b", island.name));
        let ip = |args: &[&str]| world.program("ip", args).expect(0);
        ip(&["netns", "add", &island.name]);
        ip(&["link", "add", &outside, "type", "veth", "peer", "name", &inside, "netns", &island.name]);
        ip(&["address", "add", &format!("{}/30", island.here), "dev", &outside]);
        ip(&["link", "set", &outside, "up"]);
        let within = |args: &[&str]| ip(&[&["-n", &island.name][..], args].concat());
        within(&["address", "add", "10.213.77.2/30", "dev", &inside]);
        within(&["link", "set", &inside, "up"]);
        within(&["link", "set", "lo", "up"]);
        island
    }

    fn run(&self, world: &World, variables: &[(&str, &str)], program: &str, args: &[&str]) -> Ran {
        let mut command = vec!["netns", "exec", &self.name, "env"];
        let set: Vec<String> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        command.extend(set.iter().map(String::as_str));
        command.push(program);
        command.extend(args);
        let running: Running = world.start_program("ip", &command);
        running.wait(LIMIT)
    }
}

impl Drop for Island {
    fn drop(&mut self) {
        let _ = std::process::Command::new("ip").args(["netns", "delete", &self.name]).status();
    }
}

/// The lab's images under names of this test's own, which can be taken away; and a manifest of Argo CD that has them.
struct Renamed {
    images: Vec<(String, String)>,
    manifest: PathBuf,
}

impl Renamed {
    fn of(world: &World, stem: &str) -> Renamed {
        let manifest = std::env::var("K8TRE_LAB_ARGOCD_MANIFEST").expect("the lab's manifest of Argo CD");
        let mut text = fs::read_to_string(manifest).expect("the lab's manifest of Argo CD");
        let node = std::env::var("K8TRE_LAB_NODE_IMAGE").expect("the lab's node image");
        let mut originals = vec![node];
        for line in text.lines().filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("image: ")) {
            let image = line.trim_matches('"').to_owned();
            if !originals.contains(&image) && !image.contains("dex") {
                originals.push(image);
            }
        }
        let images: Vec<(String, String)> = originals
            .into_iter()
            .map(|original| {
                let tag = original.rsplit(':').next().unwrap_or("1").to_owned();
                let called = original.rsplit(':').nth(1).and_then(|name| name.rsplit('/').next()).unwrap_or("image");
                let name = format!("registry.invalid/{stem}/{called}:{tag}");
                (original, name)
            })
            .collect();
        for (original, name) in &images {
            text = text.replace(&format!("image: {original}\n"), &format!("image: {name}\n"));
        }
        let manifest = world.home.join("argocd.yaml");
        fs::write(&manifest, text).expect("a file in the home folder");
        let renamed = Renamed { images, manifest };
        renamed.tag(world);
        renamed
    }

    fn tag(&self, world: &World) {
        for (original, name) in &self.images {
            world.docker(&["tag", original, name]).expect(0);
        }
    }

    fn untag(&self, world: &World) {
        for (_, name) in &self.images {
            world.docker(&["rmi", name]);
        }
    }
}

impl Drop for Renamed {
    /// Also after a panic: they take the disk of whoever comes next.
    fn drop(&mut self) {
        let names: Vec<&String> = self.images.iter().map(|(_, name)| name).collect();
        let _ = std::process::Command::new("docker").arg("rmi").args(names).output();
    }
}

#[test]
fn an_environment_comes_up_from_one_file_where_nothing_leads_out() {
    let world = World::new();
    let name = world.name("net");
    let renamed = Renamed::of(&world, &name);
    let island = Island::new(&world);
    let before = world.snapshot(&[]);

    // A way out is there for this machine, and none for the island.
    let away = "https://proxy.golang.org/";
    let fetch = ["--silent", "--show-error", "--max-time", "10", "--output", "/dev/null", away];
    let here = world.program("curl", &fetch);
    let there = island.run(&world, &[], "curl", &fetch);
    assert_ne!(there.code, Some(0), "nothing leads out: {there}");
    assert_eq!(here.code, Some(0), "what is cut off there works here: {here}");

    let node_image = renamed.images[0].1.as_str();
    let manifest = renamed.manifest.to_str().expect("a path");
    let bundle = world.home.join("tre.tar");
    let bundle = bundle.to_str().expect("a path");
    let choice = ["--sample", "--node-image", node_image, "--argocd-manifest", manifest, "--no-prepare"];
    // From an address that answers nothing: kind is on PATH, and need not be in it.
    let no_kind = [("K8TRE_KIND_URL", "http://127.0.0.1:1")];
    let save = world.k8tre_with(&no_kind, &[&["images", "save", bundle, &name][..], &choice].concat()).expect(0);
    assert!(save.stderr.contains("images and"), "{save}");
    renamed.untag(&world);

    // The API server's port is published where the island reaches it; the nodes' network has no way out.
    let network = format!("k8tre-{name}");
    let no_way_out = "com.docker.network.bridge.enable_ip_masquerade=false";
    world.docker(&["network", "create", &network, "--opt", no_way_out]).expect(0);
    let config = world.home.join("kind.yaml");
    // kind itself would look for a free one, and cannot from the island.
    let free = std::net::TcpListener::bind((island.here.as_str(), 0)).and_then(|probe| probe.local_addr());
    let port = free.expect("a free port").port();
    let text = format!(
        "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: {{apiServerAddress: \"{}\", apiServerPort: {port}}}\n",
        island.here
    );
    fs::write(&config, text).expect("a file in the home folder");
    let config = config.to_str().expect("a path");
    let variables = [("KIND_EXPERIMENTAL_DOCKER_NETWORK", network.as_str())];
    let up = |more: &[&str]| {
        let args = [&["dev", "up", &name, "--offline", "--kind-config", config][..], &choice, more].concat();
        island.run(&world, &variables, env!("CARGO_BIN_EXE_k8tre"), &args)
    };
    let refused = up(&[]).expect(5);
    assert!(refused.stderr.contains(node_image) && refused.stderr.contains("k8tre images save"), "{refused}");
    let healthy = up(&["--bundle", bundle]).expect(0);
    assert!(healthy.stderr.contains("is healthy"), "{healthy}");

    let node = format!("k8tre-{name}-control-plane");
    let out = world.docker(&["exec", &node, "curl", "--silent", "--max-time", "10", "--output", "/dev/null", away]);
    assert_ne!(out.code, Some(0), "nor does anything lead out of the node: {out}");
    let images = world.docker(&["exec", &node, "crictl", "images"]).expect(0).stdout;
    for (_, image) in &renamed.images[1..] {
        let repository = image.rsplit_once(':').expect("a tag").0;
        assert!(images.contains(repository), "{image} is in the node: {images}");
    }
    let again = up(&["--bundle", bundle]).expect(0);
    assert!(again.stderr.contains("nothing was to be done"), "{again}");

    let down = island.run(&world, &variables, env!("CARGO_BIN_EXE_k8tre"), &["dev", "down", &name]).expect(0);
    assert!(down.stderr.contains("nothing left"), "{down}");
    world.docker(&["network", "rm", &network]).expect(0);
    drop(renamed);
    drop(island);
    assert_same_world(
        &before.without("file").without("docker image"),
        &world.snapshot(&[]).without("file").without("docker image"),
    );
}
