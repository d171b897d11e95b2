//! A real Argo CD that generates and deploys nothing: ApplicationSets go in, Applications come out.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use k8tre::gitops::predict::Cluster;
use k8tre::steps::git_server;
use serde_json::{Value, json};

use super::{LIMIT, Ran, Running, World};
use crate::made::{All, Made, Predicted, cleaned};

/// How long the controller may take for a repository's ApplicationSets.
const PATIENCE: Duration = Duration::from_secs(120);
/// Nothing has changed for so long: nothing more will come.
const CALM: Duration = Duration::from_secs(4);

pub struct Controller<'a> {
    world: &'a World,
    name: String,
}

impl<'a> Controller<'a> {
    /// k8tre makes the cluster, Argo CD and the git server; then whatever would deploy is stopped.
    pub fn new(world: &'a World, stem: &str) -> Controller<'a> {
        let repo = world.home.join("nothing");
        write_tree(&repo, TINY);
        commit(world, &repo);
        let controller = Controller { world, name: world.name(stem) };
        world.up(&controller.name, &["--repo", &repo.to_string_lossy(), "--no-wait"]).expect(0);
        controller.kubectl(&["scale", "statefulset/argocd-application-controller", "--replicas=0"]);
        controller.kubectl(&["scale", "deployment/argocd-server", "--replicas=0"]);
        controller.kubectl(&["wait", "--for=delete", "pod/argocd-application-controller-0", "--timeout=60s"]);
        controller.clear();
        controller.kubectl(&["delete", "secrets", "-l", "argocd.argoproj.io/secret-type=cluster"]);
        controller
    }

    #[track_caller]
    pub fn kubectl(&self, args: &[&str]) -> Ran {
        self.world.kubectl(&self.name, &[&["-n", "argocd"], args].concat()).expect(0)
    }

    /// Puts a folder's content on a branch of the git server in the cluster. Its addresses must be [`address`].
    pub fn push(&self, folder: &Path, branch: &str) {
        commit(self.world, folder);
        let program = env!("CARGO_BIN_EXE_k8tre");
        let mut command = self.world.command("git", &["push", "--quiet", "--force", "ssh://k8tre/git/tre.git"]);
        command.arg(format!("HEAD:refs/heads/{branch}")).current_dir(folder);
        command.env("GIT_SSH_COMMAND", format!("'{program}' internal git-transport")).env("GIT_SSH_VARIANT", "ssh");
        command.env("K8TRE_TRANSPORT_KUBECONFIG", self.world.kubeconfig(&self.name));
        Running::start(command).wait(LIMIT).expect(0);
    }

    /// Registers a cluster as `k8tre` does. That nothing answers there does not matter to who only generates.
    pub fn register(&self, cluster: &Cluster) {
        let mut labels = cluster.labels.clone();
        labels.insert("argocd.argoproj.io/secret-type".into(), "cluster".into());
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {
                "name": format!("cluster-{}", cluster.name.to_lowercase().replace('_', "-")), "namespace": "argocd",
                "labels": labels, "annotations": cluster.annotations,
            },
            "stringData": {"name": cluster.name, "server": cluster.server, "config": "{}"},
        });
        let file = self.world.home.join("cluster.json");
        fs::write(&file, secret.to_string()).expect("the world's folders can be written");
        self.kubectl(&["apply", "--server-side", "-f", &file.to_string_lossy()]);
    }

    pub fn unregister(&self, cluster: &str) {
        self.kubectl(&["delete", "secret", &format!("cluster-{cluster}")]);
    }

    /// Applies what a kustomization builds, as the root Application would.
    pub fn apply(&self, folder: &Path) {
        self.kubectl(&["apply", "--server-side", "-k", &folder.to_string_lossy()]);
        // Branches that were pushed a moment ago are not among those that the repository server remembers.
        let refresh = "argocd.argoproj.io/application-set-refresh=true";
        self.kubectl(&["annotate", "applicationsets", "--all", "--overwrite", refresh]);
    }

    fn list(&self, kind: &str) -> Vec<Value> {
        let list = self.kubectl(&["get", kind, "-o", "json"]).json();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// What the controller has made by now.
    pub fn made(&self) -> All {
        let leaving = |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
        let applications: Vec<Value> = self.list("applications").into_iter().filter(|app| !leaving(app)).collect();
        real(&self.list("applicationsets"), &applications)
    }

    /// UID, generation and spec of every Application, by name.
    pub fn applications(&self) -> BTreeMap<String, [Value; 3]> {
        let name = |app: &Value| app["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let facts = |app: &Value| {
            ["/metadata/uid", "/metadata/generation", "/spec"].map(|p| app.pointer(p).cloned().unwrap_or_default())
        };
        self.list("applications").iter().map(|app| (name(app), facts(app))).collect()
    }

    /// Waits until the controller has made exactly what was predicted, and stays with it.
    #[track_caller]
    pub fn assert_makes(&self, what: &str, predicted: &Predicted) -> All {
        let deadline = Instant::now() + PATIENCE;
        let mut since = None;
        loop {
            let real = self.made();
            let differences = predicted.differences(&real);
            match differences.is_empty() {
                true if since.get_or_insert_with(Instant::now).elapsed() > CALM => return real,
                true => {}
                false => since = None,
            }
            assert!(
                Instant::now() < deadline || differences.is_empty(),
                "{what}: {} of {} ApplicationSets differ:\n{}",
                differences.len(),
                real.len(),
                differences.join("\n")
            );
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// Takes all ApplicationSets and Applications away. Nobody is there to take down what they would have deployed.
    pub fn clear(&self) {
        self.kubectl(&["delete", "applicationsets", "--all", "--cascade=orphan"]);
        for app in self.list("applications") {
            let name = app["metadata"]["name"].as_str().unwrap_or_default();
            let free = r#"{"metadata":{"finalizers":null}}"#;
            self.kubectl(&["patch", "application", name, "--type=merge", "-p", free]);
        }
        self.kubectl(&["delete", "applications", "--all"]);
    }
}

/// What the controller made of the ApplicationSets in a namespace: both as the API server lists them.
fn real(sets: &[Value], applications: &[Value]) -> All {
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let failed = |set: &Value| {
        let conditions = set["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let failed = conditions.iter().any(|c| c["type"] == "ErrorOccurred" && c["status"] == "True");
        // A panic in the controller leaves no condition behind.
        failed || conditions.is_empty()
    };
    let mut all: All = sets.iter().map(|set| (name(set), Made { error: failed(set), ..Made::default() })).collect();
    for application in applications {
        let owner = application["metadata"]["ownerReferences"][0]["name"].as_str().unwrap_or_default();
        let made = all.entry(owner.to_owned()).or_default();
        made.applications.insert(name(application), of_spec(&application["spec"]));
    }
    all
}

fn of_spec(spec: &Value) -> Value {
    cleaned(&json!({
        "project": spec["project"],
        "source": spec["source"],
        "sources": spec["sources"],
        "destination": spec["destination"],
        "syncOptions": spec["syncPolicy"]["syncOptions"],
    }))
}

/// Where Argo CD reads in the cluster.
pub fn address() -> String {
    git_server::url()
}

/// A copy of a TRE repository whose own address is that of the git server in the cluster, as a git repository.
pub fn copy_of(world: &World, source: &Path, name: &str, own_address: &str, revision: &str) -> PathBuf {
    let folder = world.home.join(name);
    let (from, to) = (source.to_string_lossy(), folder.to_string_lossy());
    world.start_program("cp", &["-R", &from, &to]).wait(LIMIT).expect(0);
    let script =
        format!("s#{own_address}#{}#g; s#\\(revision\\|targetRevision\\): main\\b#\\1: {revision}#g", address());
    let find = format!("find '{to}' -name '*.yaml' -exec sed -i '{script}' {{}} +");
    world.start_program("sh", &["-c", &find]).wait(LIMIT).expect(0);
    commit(world, &folder);
    folder
}

pub fn write_tree<'f>(folder: &Path, files: impl IntoIterator<Item = (&'f str, &'f str)>) {
    for (path, text) in files {
        let file = folder.join(path);
        fs::create_dir_all(file.parent().expect("a file is in a folder")).expect("a folder in the temporary folder");
        fs::write(file, text).expect("a file in the temporary folder");
    }
}

/// Commits everything in a folder, which becomes a repository if it is none.
pub fn commit(world: &World, folder: &Path) {
    world.git(folder, &["init", "--quiet", "--initial-branch=main"]).expect(0);
    world.git(folder, &["add", "--all"]).expect(0);
    world.git(folder, &["commit", "--quiet", "--allow-empty", "--message", "As it is now"]).expect(0);
}

/// The least that k8tre takes for a TRE repository: one Application, with one ConfigMap.
const TINY: [(&str, &str); 3] = [
    (
        "app_of_apps/root-app-of-apps.yaml",
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: root-app-of-apps, namespace: argocd}\nspec:\n  \
         source: {repoURL: 'https://example.invalid/r.git', targetRevision: main, path: appsets}\n",
    ),
    (
        "appsets/one.yaml",
        "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: one, namespace: argocd}\nspec:\n  \
         goTemplate: true\n  generators:\n  - matrix:\n      generators:\n      - git: {repoURL: 'https://example.invalid/r.git', \
         revision: main, directories: [{path: 'apps/one/envs/*'}]}\n      - clusters: {selector: {matchLabels: {environment: \
         '{{.path.basename}}'}}}\n  template:\n    metadata: {name: 'one-{{.nameNormalized}}'}\n    spec:\n      project: \
         default\n      source: {repoURL: 'https://example.invalid/r.git', targetRevision: main, path: '{{.path.path}}'}\n      \
         destination: {server: '{{.server}}', namespace: default}\n",
    ),
    ("apps/one/envs/dev/kustomization.yaml", "configMapGenerator: [{name: one, literals: [a=b]}]\n"),
];
