//! One environment, damaged in every way that happens: `status` names the damage, `up` mends it.

use crate::support::{Up, World};

struct Patient<'a> {
    world: &'a World,
    name: &'a str,
    node: String,
}

#[test]
fn what_is_damaged_is_named_by_status_and_mended_by_up() {
    let world = World::new();
    let name = world.name("alice");
    let before = world.snapshot(&[]);
    world.up_healthy(&name, &["--sample"]);
    let patient = Patient { world: &world, name: &name, node: format!("k8tre-{name}-control-plane") };
    let kubectl = |args: &[&str]| world.kubectl(&name, args).expect(0);
    let docker = |args: &[&str]| world.docker(args).expect(0);

    std::fs::remove_file(world.kubeconfig(&name)).expect("the environment's kubeconfig is there");
    patient.is_mended("the kubeconfig file is deleted", "kubeconfig");

    world.git(&world.sample(), &["branch", "--quiet", "-D", &format!("dev/{name}")]).expect(0);
    patient.is_mended("the branch is deleted", "branch");

    kubectl(&["delete", "secret", "-n", "argocd", &format!("k8tre-cluster-{name}")]);
    patient.is_mended("the cluster Secret is deleted", "registration");

    docker(&["exec", &patient.node, "rm", "-rf", "/var/lib/k8tre/git/tre.git"]);
    kubectl(&["delete", "pod", "-n", "argocd", "-l", "app.kubernetes.io/name=k8tre-git"]);
    patient.is_mended("the git server's pod and repository are deleted", "publish");

    kubectl(&["scale", "-n", "argocd", "--replicas=0", "deployment/argocd-repo-server"]);
    kubectl(&["scale", "-n", "argocd", "--replicas=0", "statefulset/argocd-application-controller"]);
    patient.is_mended("Argo CD is scaled down", "argocd");

    let of = "applications.argoproj.io";
    kubectl(&["delete", of, "-n", "argocd", "--timeout=120s", &format!("portal-{name}")]);
    // The ApplicationSet may have made it again already, so there may be nothing for status to name.
    patient.is_healthy_after_up("an Application is deleted");

    // Not waiting, so that `up` meets it while Argo CD removes all that belongs to it.
    kubectl(&["delete", of, "-n", "argocd", "--wait=false", &format!("root-app-of-apps-{name}")]);
    patient.is_mended("the root Application is being deleted", "root");

    docker(&["stop", &patient.node]);
    patient.is_mended("the node is stopped", "stopped");

    docker(&["restart", &patient.node]);
    patient.is_mended("the node has just been restarted", "cluster");

    world.down(&name);
    world.assert_nothing_left(&before, &[]);
}

impl Patient<'_> {
    #[track_caller]
    fn is_mended(&self, damage: &str, named: &str) -> Up {
        let status = self.world.status(self.name);
        assert_eq!(status.code, Some(3), "{damage}: {status}");
        assert!(status.stdout.contains(named), "{damage}: status does not name {named:?}: {status}");
        self.is_healthy_after_up(damage)
    }

    #[track_caller]
    fn is_healthy_after_up(&self, damage: &str) -> Up {
        let up = self.world.up(self.name, &["-o", "json"]);
        assert_eq!(up.code, Some(0), "{damage}: {up}");
        let up = Up::of(&up);
        let status = self.world.status_in_peace(self.name, &[]);
        assert_eq!(status.code, Some(0), "{damage}, and up had called it healthy: {status}");
        self.world.assert_deployed(self.name, &self.world.sample(), &up);
        up
    }
}
