//! An environment in a cluster that k8tre did not make: it comes up, and afterwards the cluster is as it was, object by
//! object.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::World;

/// What moves by itself.
const RESTLESS: [&str; 6] =
    ["events", "events.events.k8s.io", "leases.coordination.k8s.io", "nodes", "endpoints", "componentstatuses"];

struct Standing<'a> {
    world: &'a World,
    name: String,
    context: String,
    kubeconfig: PathBuf,
}

impl<'a> Standing<'a> {
    /// Made by kind alone, with the images in it that the lab has no registry for.
    fn new(world: &'a World) -> Standing<'a> {
        let name = world.name("standing");
        let kubeconfig = world.home.join(".kube/standing");
        let path = kubeconfig.to_string_lossy().into_owned();
        let mut create = vec!["create", "cluster", "--name", &name, "--kubeconfig", &path];
        let node = std::env::var("K8TRE_LAB_NODE_IMAGE").ok();
        create.extend(node.iter().flat_map(|image| ["--image", image]));
        world.program("kind", &create).expect(0);
        let standing = Standing { world, context: format!("kind-{name}"), name: name.clone(), kubeconfig };
        for image in images() {
            if world.docker(&["image", "inspect", &image]).code == Some(0) {
                world.program("kind", &["load", "docker-image", "--name", &name, &image]).expect(0);
            }
        }
        standing
    }

    fn kubectl(&self, args: &[&str]) -> String {
        let path = self.kubeconfig.to_string_lossy().into_owned();
        let args: Vec<&str> = ["--kubeconfig", &path].into_iter().chain(args.iter().copied()).collect();
        self.world.program("kubectl", &args).expect(0).stdout
    }

    fn apply(&self, object: &str) {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(object.as_bytes()).expect("a temporary file");
        let path = file.path().to_string_lossy().into_owned();
        self.kubectl(&["apply", "--server-side", "--namespace", "argocd", "--filename", &path]);
    }

    fn k8tre(&self, args: &[&str]) -> crate::support::Ran {
        self.world.k8tre_with(&[("KUBECONFIG", self.kubeconfig.to_string_lossy().as_ref())], args)
    }

    fn up(&self, name: &str, more: &[&str]) -> crate::support::Ran {
        let flags = self.world.lab_flags();
        let up = ["dev", "up", name, "--sample", "--provider", "existing", "--context", &self.context, "--yes"];
        let more = more.iter().copied().chain(flags.iter().map(String::as_str));
        self.k8tre(&up.into_iter().chain(more).collect::<Vec<&str>>())
    }

    /// Every object of every type that can be listed, without what its controllers say of it.
    fn dump(&self) -> BTreeMap<String, Value> {
        let types = self.kubectl(&["api-resources", "--verbs=list", "--output=name"]);
        let mut all = BTreeMap::new();
        for of in types.lines().filter(|of| !RESTLESS.contains(of)) {
            let list = self.kubectl(&["get", of, "--all-namespaces", "--output=json"]);
            let list: Value = serde_json::from_str(&list).expect("a list");
            for mut object in list["items"].as_array().cloned().unwrap_or_default() {
                let metadata = object["metadata"].as_object_mut().expect("metadata");
                ["resourceVersion", "managedFields", "generation"].iter().for_each(|key| _ = metadata.remove(*key));
                object.as_object_mut().expect("an object").remove("status");
                let metadata = &object["metadata"];
                all.insert(format!("{of} {} {}", metadata["namespace"], metadata["name"]), object);
            }
        }
        all
    }

    /// The same as before, once what controllers still clear away is gone.
    fn assert_same(&self, before: &BTreeMap<String, Value>) {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let after = self.dump();
            let keys: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
            let differing: Vec<_> = keys.into_iter().filter(|key| before.get(*key) != after.get(*key)).collect();
            if differing.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "not as it was: {differing:#?}");
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    /// Argo CD as its own guide installs it, and an Application of somebody's.
    fn give_argocd(&self) {
        let manifest = std::env::var("K8TRE_LAB_ARGOCD_MANIFEST").expect("K8TRE_LAB_ARGOCD_MANIFEST");
        self.kubectl(&["create", "namespace", "argocd"]);
        let text = fs::read_to_string(manifest).expect("Argo CD's manifest");
        // The lab has no registry to ask for what is on the node already.
        self.apply(&text.replace("imagePullPolicy: Always", "imagePullPolicy: IfNotPresent"));
        // All that can run here: what becomes ready later would look like a change.
        for workload in [
            "deployment/argocd-redis",
            "deployment/argocd-server",
            "deployment/argocd-notifications-controller",
            "deployment/argocd-repo-server",
            "deployment/argocd-applicationset-controller",
            "statefulset/argocd-application-controller",
        ] {
            self.kubectl(&["--namespace", "argocd", "rollout", "status", "--timeout=240s", workload]);
        }
        let spec = json!({
            "project": "default", "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
            "source": {"repoURL": "https://example.invalid/theirs.git", "path": ".", "targetRevision": "main"}
        });
        let metadata = json!({"name": "theirs", "namespace": "argocd"});
        let app =
            json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec});
        self.apply(&app.to_string());
    }
}

fn images() -> Vec<String> {
    let Ok(manifest) = std::env::var("K8TRE_LAB_ARGOCD_MANIFEST") else { return Vec::new() };
    let text = fs::read_to_string(manifest).expect("Argo CD's manifest");
    let mut images: Vec<String> = text
        .lines()
        .filter_map(|line| Some(line.trim().trim_start_matches("- ").strip_prefix("image: ")?.to_owned()))
        .collect();
    images.sort();
    images.dedup();
    images
}

#[test]
fn a_cluster_that_is_there_is_left_as_it_was_with_and_without_an_argo_cd() {
    let world = World::new();
    let standing = Standing::new(&world);
    let name = world.name("erin");
    let before = standing.dump();
    standing.up(&name, &[]).expect(0);
    standing.k8tre(&["dev", "status", &name]).expect(0);
    standing.k8tre(&["dev", "down", &name]).expect(0);
    standing.assert_same(&before);

    // As its own guide installs it, it waits for addresses that nothing hands out here.
    standing.give_argocd();
    let before = standing.dump();
    let theirs = |dump: &BTreeMap<String, Value>| dump["applications.argoproj.io \"argocd\" \"theirs\""].clone();
    let up = standing.up(&name, &["--adjust-argocd"]).expect(0);
    assert!(up.stderr.contains("resource.customizations.health.Service: unset ->"), "{up}");
    standing.k8tre(&["dev", "status", &name]).expect(0);
    let settings = |dump: &BTreeMap<String, Value>| dump["configmaps \"argocd\" \"argocd-cm\""]["data"].clone();
    assert_ne!(settings(&standing.dump()), settings(&before));
    assert_eq!(theirs(&standing.dump()), theirs(&before), "while the environment is there");
    let down = standing.k8tre(&["dev", "down", &name]).expect(0);
    assert!(down.stderr.contains("settings of Argo CD"), "{down}");
    standing.assert_same(&before);
    world.program("kind", &["delete", "cluster", "--name", &standing.name]).expect(0);
}
