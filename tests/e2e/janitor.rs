//! `gc` as a CronJob of the cluster itself: what has expired goes, what has not stays, and its account may do no more.

use std::fs;
use std::process::Command;

use crate::support::World;

const IMAGE: &str = "k8tre.test/gc:e2e";
const ACCOUNT: &str = "--as=system:serviceaccount:k8tre-gc:k8tre-gc";

/// An image of this k8tre, over one that the lab has: built and loaded without a registry.
fn image(world: &World, cluster: &str) {
    let folder = world.home.join("image");
    fs::create_dir_all(&folder).expect("a folder");
    let stripped = folder.join("k8tre");
    // Without its symbols it is a tenth as large.
    let strip = Command::new("strip").arg("-o").arg(&stripped).arg(env!("CARGO_BIN_EXE_k8tre")).status();
    assert!(strip.expect("strip").success());
    fs::write(
        folder.join("Dockerfile"),
        "FROM quay.io/argoproj/argocd:v3.6.1\nCOPY k8tre /k8tre\nENTRYPOINT [\"/k8tre\"]\n",
    )
    .expect("a file");
    world.docker(&["build", "--quiet", "--tag", IMAGE, &folder.to_string_lossy()]).expect(0);
    world.program("kind", &["load", "docker-image", "--name", cluster, IMAGE]).expect(0);
}

fn namespace(name: &str, expires: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: k8tre-{name}\n  labels: {{app.kubernetes.io/managed-by: k8tre, developer: {name}}}\n  \
         annotations: {{k8tre.dev/environment-id: id-of-{name}, k8tre.dev/expires: '{expires}'}}\n---\n"
    )
}

#[test]
fn what_has_expired_is_removed_by_a_job_in_the_cluster_that_may_do_nothing_else() {
    let world = World::new();
    let hub = world.name("hub");
    world.up_healthy(&hub, &["--sample"]);
    image(&world, &format!("k8tre-{hub}"));
    let apply = |text: &str| {
        let file = world.home.join("objects.yaml");
        fs::write(&file, text).expect("a file");
        world.kubectl(&hub, &["apply", "-f", &file.to_string_lossy()]).expect(0);
    };
    let manifest = world.k8tre(&["shared", "gc-manifest", "--image", IMAGE, "--argocd", "argocd"]).expect(0).stdout;
    apply(&manifest);
    apply(&(namespace("over", "2020-01-01T00:00:00Z") + &namespace("lives", "2999-01-01T00:00:00Z")));
    let run = |job: &str| {
        world.kubectl(&hub, &["-n", "k8tre-gc", "create", "job", "--from=cronjob/k8tre-gc", job]).expect(0);
        let wait = ["-n", "k8tre-gc", "wait", "--for=condition=complete", "--timeout=90s", &format!("job/{job}")];
        let done = world.kubectl(&hub, &wait);
        let log = world.kubectl(&hub, &["-n", "k8tre-gc", "logs", &format!("job/{job}")]);
        assert_eq!(done.code, Some(0), "{log}");
        log.stdout + &log.stderr
    };
    let log = run("first");
    assert!(log.contains("vcluster over is gone"), "{log}");
    let left = world.objects(&hub, "namespaces", &[]);
    let has = |name: &str| left.values().any(|one| one["metadata"]["name"] == name);
    assert!(!has("k8tre-over") && has("k8tre-lives") && has("argocd"), "{:?}", left.keys());
    assert!(run("second").contains("nothing has expired"));

    for (allowed, words) in [
        ("yes", "list namespaces"),
        ("yes", "delete namespaces"),
        ("no", "create namespaces"),
        ("no", "get secrets -n default"),
        ("no", "list pods -A"),
        ("yes", "list secrets -n argocd"),
        ("yes", "delete applications.argoproj.io -n argocd"),
        ("no", "create secrets -n argocd"),
        ("no", "create applications.argoproj.io -n argocd"),
        ("no", "patch appprojects.argoproj.io -n argocd"),
        ("no", "create pods/exec -n argocd"),
        ("no", "create pods -n k8tre-gc"),
    ] {
        let words: Vec<&str> = ["auth", "can-i"].into_iter().chain(words.split(' ')).chain([ACCOUNT]).collect();
        assert_eq!(world.kubectl(&hub, &words).stdout.trim(), allowed, "{words:?}");
    }
    world.down(&hub);
    world.docker(&["image", "rm", IMAGE]).expect(0);
}
