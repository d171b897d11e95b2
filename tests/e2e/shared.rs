//! An environment that is deployed by an Argo CD which others use too: that of another environment, which is the stable
//! one here.

use std::fs;
use std::time::Duration;

use serde_json::json;

use crate::repository::{bridge, daemon};
use crate::support::World;
use crate::support::hub::Hub;
use crate::support::private_git::{PrivateGit, USER};

#[test]
fn it_comes_up_from_there_and_is_taken_back_whole_or_broken() {
    let world = World::new();
    let (hub, name) = (Hub::new(&world), world.name("dora"));
    let own = fs::read_to_string(world.kubeconfig_of_user()).expect("the user's kubeconfig");
    let variables = [("KUBECONFIG", hub.kubeconfig.as_str())];

    let repo = world.own_repository();
    let (daemon, url) = daemon(&world);
    world.git(&repo, &["remote", "add", "origin", &url]).expect(0);
    let up = hub.up(&name, &repo.to_string_lossy(), &[]);
    let up: Vec<&str> = up.iter().map(String::as_str).collect();
    let (stable, before) = (hub.stable(), hub.remains(&name));
    assert!(before.is_empty(), "{before:?}");

    world.k8tre_with(&variables, &up).expect(0);
    // What is recorded is enough from now on.
    world.k8tre(&["dev", "status", &name]).expect(0);
    let apps = world.objects(&hub.name, "applications.argoproj.io", &["-n", "argocd"]);
    let to = format!("https://k8tre-{name}-control-plane:6443");
    assert!(apps.values().any(|app| app["spec"]["destination"]["server"] == to.as_str()), "{:?}", apps.keys());
    assert!(world.objects(&name, "deployments", &["-n", "argocd"]).is_empty(), "no second Argo CD");
    rights(&world, &name);
    assert_eq!(hub.stable(), stable, "the stable environment's Applications after up");
    world.k8tre(&["dev", "down", &name]).expect(0);
    assert_eq!(hub.remains(&name), before);

    // The same with a cluster that somebody deleted.
    world.k8tre_with(&variables, &up).expect(0);
    world.docker(&["rm", "-f", "-v", &format!("k8tre-{name}-control-plane")]).expect(0);
    let down = world.k8tre(&["dev", "down", &name]).expect(0);
    assert!(down.took <= Duration::from_secs(60), "down took {:?}", down.took);
    assert_eq!(hub.remains(&name), before);
    assert_eq!(hub.stable(), stable, "the stable environment's Applications after down");
    assert_eq!(fs::read_to_string(world.kubeconfig_of_user()).expect("the user's kubeconfig"), own);
    drop(daemon);
    world.down(&hub.name);
}

/// What Argo CD's account may and may not do, as the API server itself says.
fn rights(world: &World, name: &str) {
    let may = |verb: &str, resource: &str| may(world, name, verb, resource, "--all-namespaces");
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

fn may(world: &World, name: &str, verb: &str, resource: &str, scope: &str) -> bool {
    // What follows a slash would be taken for an object's name.
    let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
    let (part, account) = (format!("--subresource={part}"), "--as=system:serviceaccount:k8tre-system:k8tre-argocd");
    world.kubectl(name, &["auth", "can-i", verb, resource, &part, account, scope]).stdout.trim() == "yes"
}

#[test]
fn a_private_repository_is_read_by_a_lent_login_and_given_namespaces_are_all_that_is_touched() {
    const HELD: &str = "identity,metrics,portal,workspaces";
    let world = World::new();
    let (hub, name) = (Hub::new(&world), world.name("fern"));
    let (stable, variables) = (hub.stable(), [("KUBECONFIG", hub.kubeconfig.as_str())]);
    let repo = world.own_repository();
    let served = world.home.join("served");
    fs::create_dir(&served).expect("a folder to serve");
    world.git(&served, &["init", "--quiet", "--bare", "tre.git"]).expect(0);
    let password = "s3cret-of-the-private-repository";
    let git = PrivateGit::serve(served, bridge(&world), password);
    let url = format!("https://{}/tre.git", git.address);
    world.git(&repo, &["remote", "add", "origin", &url]).expect(0);

    // The developer's git knows the authority and the login; of Argo CD's two, its administrator sets the authority.
    let (authority, store) = (world.home.join("git.pem"), world.home.join(".git-credentials"));
    fs::write(&authority, &git.certificate).expect("a file in the home folder");
    fs::write(&store, format!("https://{USER}:{password}@{}\n", git.address)).expect("a file in the home folder");
    world.git(&repo, &["config", "--global", "http.sslCAInfo", &authority.to_string_lossy()]).expect(0);
    world.git(&repo, &["config", "--global", "credential.helper", "store"]).expect(0);
    let known = json!({"data": {git.address.ip().to_string(): git.certificate}}).to_string();
    let patch = ["-n", "argocd", "patch", "configmap", "argocd-tls-certs-cm", "--type=merge", "-p", &known];
    world.kubectl(&hub.name, &patch).expect(0);
    let server = "deployment/argocd-repo-server";
    world.kubectl(&hub.name, &["-n", "argocd", "rollout", "restart", server]).expect(0);
    world.kubectl(&hub.name, &["-n", "argocd", "rollout", "status", server, "--timeout=60s"]).expect(0);

    let up = |more: &[&str]| {
        let skip = ["--namespaced", HELD, "--skip", "guardrails,storage-class", "-vvv"];
        let up = hub.up(&name, &repo.to_string_lossy(), &[&skip[..], more].concat());
        world.k8tre_with(&variables, &up.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let refused = up(&[]).expect(1);
    assert!(
        refused.stderr.contains("cannot read https://") && refused.stderr.contains("--repo-credentials"),
        "{refused}"
    );
    assert!(refused.took <= Duration::from_secs(120), "it is not waited for: {:?}", refused.took);
    let healthy = up(&["--repo-credentials", "git"]).expect(0);
    let status = world.k8tre(&["dev", "status", &name, "-vvv"]).expect(0);
    assert!(status.stdout.contains("held to identity, metrics, portal, workspaces"), "{status}");

    // Each namespace is Argo CD's, and nothing beside them: the API server says so.
    for namespace in HELD.split(',') {
        let here = format!("--namespace={namespace}");
        assert!(may(&world, &name, "create", "deployments.apps", &here) && may(&world, &name, "list", "pods", &here));
        assert!(!may(&world, &name, "create", "pods/exec", &here));
    }
    for (verb, resource) in [("list", "pods"), ("create", "configmaps"), ("get", "secrets")] {
        assert!(!may(&world, &name, verb, resource, "--namespace=kube-system"), "{verb} {resource}");
    }
    for (verb, resource) in [("list", "nodes"), ("create", "namespaces"), ("create", "storageclasses.storage.k8s.io")] {
        assert!(!may(&world, &name, verb, resource, "--all-namespaces"), "{verb} {resource}");
    }
    let secret = world.object(&hub.name, "secret", "argocd", &format!("k8tre-cluster-{name}"));
    assert_eq!(secret["data"]["clusterResources"], "ZmFsc2U=", "false");
    assert_eq!(hub.stable(), stable, "the stable environment's Applications after up");

    let down = world.k8tre(&["dev", "down", &name, "-vvv"]).expect(0);
    assert_eq!(hub.remains(&name), [""; 0]);
    assert_eq!(world.git(&repo, &["ls-remote", "--heads", "origin", "dev/*"]).expect(0).stdout, "");
    let told = format!("{refused}{healthy}{status}{down}");
    assert!(!told.contains(password), "the login is told");
    let kept = world.program("grep", &["-rl", password, &world.data.to_string_lossy(), &world.cache.to_string_lossy()]);
    assert_eq!(kept.stdout, "", "the login is kept");
    assert_eq!(hub.stable(), stable, "the stable environment's Applications after down");
    world.down(&hub.name);
}
