//! A hospital's network: an authority of its own, a proxy, a mirror of a registry. All that fetches goes by them.

use std::fs;

use crate::repository::bridge;
use crate::support::World;
use crate::support::private_git::PrivateGit;
use crate::support::proxy::Proxy;

#[test]
fn an_authority_a_proxy_and_a_mirror_reach_all_that_fetches() {
    let world = World::new();
    let name = world.name("net");
    let repo = world.own_repository();
    let served = world.home.join("served");
    fs::create_dir(&served).expect("a folder to serve");
    world.git(&served, &["init", "--quiet", "--bare", "tre.git"]).expect(0);
    world.git(&served.join("tre.git"), &["config", "http.receivepack", "true"]).expect(0);
    let host = PrivateGit::serve_to_all(served, bridge(&world));
    let proxy = Proxy::start(bridge(&world));
    let url = format!("https://{}/tre.git", host.address);
    world.git(&repo, &["remote", "add", "origin", &url]).expect(0);
    let authority = world.home.join("hospital.pem");
    fs::write(&authority, &host.certificate).expect("a file in the home folder");

    let (ca, mirror) = (authority.to_string_lossy(), format!("registry.invalid=https://{}", host.address));
    let flags = world.lab_flags();
    let mut args = vec!["dev", "up", &name, "--repo", repo.to_str().expect("a path"), "--source", "remote"];
    args.extend(["--ca-bundle", &ca, "--registry-mirror", &mirror]);
    args.extend(flags.iter().map(String::as_str));
    let proxies = format!("http://{}", proxy.address);
    let variables = [("HTTPS_PROXY", proxies.as_str())];
    world.k8tre_with(&variables, &args).expect(0);

    // The developer's git pushed, and the repository server cloned: by the authority, and through the proxy.
    let seen = host.seen();
    assert!(seen.iter().any(|path| path.ends_with("git-receive-pack")), "{seen:?}");
    assert!(seen.iter().any(|path| path.ends_with("git-upload-pack")), "{seen:?}");
    let node = format!("k8tre-{name}-control-plane");
    let address =
        world.docker(&["inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", &node]);
    let address = address.expect(0).stdout.trim().to_owned();
    let tunnels = proxy.seen();
    let target = host.address.to_string();
    let (nodes, ours): (Vec<&String>, Vec<&String>) = tunnels
        .iter()
        .filter(|seen| seen.ends_with(&target))
        .partition(|seen| seen.starts_with(&format!("{address} ")));
    assert!(!ours.is_empty(), "git of this machine: {tunnels:?}");
    assert!(!nodes.is_empty(), "the repository server, whose address is its node's: {tunnels:?}");
    let near = tunnels.iter().filter(|seen| !seen.ends_with(&target)).count();
    assert_eq!(near, 0, "nothing that is near goes through it: {tunnels:?}");

    // The node trusts it, and asks it in the registry's place.
    world.docker(&["exec", &node, "curl", "--silent", "--show-error", "--output", "/dev/null", &url]).expect(0);
    let pull = world.docker(&["exec", &node, "crictl", "pull", "registry.invalid/tre/portal:1"]);
    assert_ne!(pull.code, Some(0), "there is no such image: {pull}");
    let seen = host.seen();
    assert!(seen.iter().any(|path| path.starts_with("/v2/tre/portal/manifests/1")), "{seen:?}\n{pull}");

    // Without the variable what was settled stays, and nothing is to be done.
    let again = world.k8tre(&["dev", "up", &name]).expect(0);
    assert!(again.stderr.contains("nothing was to be done"), "{again}");
    world.down(&name);
}
