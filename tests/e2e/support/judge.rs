//! What the cluster, Argo CD, git and Docker say of an environment: the judges of every test.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::{Ran, World};

/// The longest that `status` may take, whatever is broken.
pub const STATUS_LIMIT: Duration = Duration::from_secs(15);

/// What `up -o json` said.
#[derive(Debug, Clone)]
pub struct Up {
    pub applications: BTreeSet<String>,
    pub changed: bool,
    pub commit: String,
}

impl Up {
    #[track_caller]
    pub fn of(ran: &Ran) -> Up {
        let json = ran.json();
        let applications = json["applications"].as_array().unwrap_or_else(|| panic!("no applications:\n{ran}"));
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("no text in {value}:\n{ran}")).to_owned();
        Up {
            applications: applications.iter().map(text).collect(),
            changed: json["changed"].as_bool().unwrap_or_else(|| panic!("nothing on change:\n{ran}")),
            commit: text(&json["commit"]),
        }
    }
}

impl World {
    /// Where the sample goes when nobody says where.
    pub fn sample(&self) -> PathBuf {
        self.data.join("sample-tre")
    }

    /// `up`, which has to succeed.
    #[track_caller]
    pub fn up_healthy(&self, name: &str, args: &[&str]) -> Up {
        Up::of(&self.up(name, &[args, &["-o", "json"]].concat()).expect(0))
    }

    pub fn status(&self, name: &str) -> Ran {
        self.k8tre(&["dev", "status", name])
    }

    /// `status` that could ask everything. Where the machine is busy with others, it may say that it could not
    /// in time, which is the truth, and then it is asked again.
    pub fn status_in_peace(&self, name: &str, args: &[&str]) -> Ran {
        let ask = || self.k8tre(&[&["dev", "status", name], args].concat());
        let mut ran = ask();
        for _ in 0..4 {
            if !ran.stdout.contains("gave up after") {
                break;
            }
            std::thread::sleep(Duration::from_secs(5));
            ran = ask();
        }
        ran
    }

    #[track_caller]
    pub fn down(&self, name: &str) -> Ran {
        self.k8tre(&["dev", "down", name]).expect(0)
    }

    pub fn tip(&self, repo: &Path, reference: &str) -> Option<String> {
        let ran = self.git(repo, &["rev-parse", "--verify", "--quiet", reference]);
        (ran.code == Some(0)).then(|| ran.stdout.trim_end().to_owned())
    }

    /// Objects of some kinds, by "Kind namespace/name".
    #[track_caller]
    pub fn objects(&self, name: &str, kinds: &str, scope: &[&str]) -> BTreeMap<String, Value> {
        let list = self.kubectl(name, &[&["get", kinds, "-o", "json"], scope].concat()).expect(0).json();
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let key = |item: &Value| {
            let about = &item["metadata"];
            format!("{} {}/{}", text(&item["kind"]), text(&about["namespace"]), text(&about["name"]))
        };
        items.into_iter().map(|item| (key(&item), item)).collect()
    }

    #[track_caller]
    pub fn object(&self, name: &str, kind: &str, namespace: &str, object: &str) -> Value {
        self.kubectl(name, &["get", kind, object, "-n", namespace, "-o", "json"]).expect(0).json()
    }

    /// The Applications of the environment without its root: name, sync, health, commit.
    #[track_caller]
    pub fn applications(&self, name: &str) -> BTreeMap<String, [String; 3]> {
        let project = format!("dev-{name}");
        let all = self.objects(name, "applications.argoproj.io", &["-n", "argocd"]);
        let ours = all.into_values().filter(|app| app["spec"]["project"] == *project);
        ours.map(|app| (text(&app, "/metadata/name"), state(&app))).collect()
    }

    /// Argo CD's own objects say that exactly what was predicted is deployed, at the branch's tip.
    #[track_caller]
    pub fn assert_deployed(&self, name: &str, repo: &Path, up: &Up) {
        let tip = self.tip(repo, &format!("refs/heads/dev/{name}")).expect("the developer's branch is there");
        assert_eq!(up.commit, tip, "what was published is the branch's tip");
        assert!(!up.applications.is_empty(), "an environment without Applications is none");
        let healthy = ["Synced".to_owned(), "Healthy".to_owned(), tip];
        let expected: BTreeMap<_, _> = up.applications.iter().map(|app| (app.clone(), healthy.clone())).collect();
        assert_eq!(self.applications(name), expected, "what Argo CD has (left) and what was predicted (right)");
        let root = self.object(name, "applications.argoproj.io", "argocd", &format!("root-app-of-apps-{name}"));
        assert_eq!(state(&root), healthy, "the root Application");
    }

    /// `status` calls the environment healthy, and says of each Application what kubectl says.
    #[track_caller]
    pub fn assert_status_healthy(&self, name: &str) {
        let ran = self.status_in_peace(name, &["-o", "json"]).expect(0);
        assert!(ran.took < STATUS_LIMIT, "status takes too long:\n{ran}");
        let report = ran.json();
        assert_eq!(report["healthy"], true, "{ran}");
        let said = report["applications"].as_array().cloned().unwrap_or_default();
        let root = format!("root-app-of-apps-{name}");
        let said: BTreeMap<String, [String; 3]> = said
            .iter()
            .filter(|app| app["name"] != *root)
            .map(|app| (text(app, "/name"), ["/sync", "/health", "/revision"].map(|key| text(app, key))))
            .collect();
        assert_eq!(said, self.applications(name), "status (left) and kubectl (right)");
    }

    /// `status` says in time that the environment is not healthy, and names what is wrong.
    #[track_caller]
    pub fn assert_status_names(&self, name: &str, wrong: &str) {
        let ran = self.status(name).expect(3);
        assert!(ran.took < STATUS_LIMIT, "status takes too long:\n{ran}");
        assert!(ran.stdout.contains("is not healthy"), "{ran}");
        let line = ran.stdout.lines().find(|line| line.contains(wrong));
        assert!(line.is_some(), "status does not name {wrong:?}:\n{ran}");
    }

    /// Everything outside is as it was; what was fetched may stay in the cache. Somebody else on this machine may
    /// remove what is theirs meanwhile; that k8tre does not is shown by tests whose names it carries.
    #[track_caller]
    pub fn assert_nothing_left(&self, before: &super::Snapshot, repos: &[&Path]) {
        let after = self.snapshot(repos).without("file cache");
        let theirs = |change: &String| change.starts_with("- docker") && !self.is_named(change);
        let changes: Vec<String> =
            before.without("file cache").changes(&after).into_iter().filter(|change| !theirs(change)).collect();
        assert!(changes.is_empty(), "the world is not as it was:\n{}", changes.join("\n"));
    }

    /// A repository of the developer's own, in K8TRE's layout, with unfinished work in every place that git has.
    pub fn own_repository(&self) -> PathBuf {
        let repo = self.home.join("tre");
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/sample-tre");
        self.start_program("cp", &["-R", sample, &repo.to_string_lossy()]).wait(STATUS_LIMIT).expect(0);
        let git = |args: &[&str]| self.git(&repo, args).expect(0);
        git(&["init", "--quiet", "--initial-branch=main"]);
        git(&["add", "--all"]);
        git(&["commit", "--quiet", "--message", "Our TRE"]);
        let write = |file: &str, text: &str| std::fs::write(repo.join(file), text).expect("the repository is ours");
        write("README.md", "stashed\n");
        git(&["stash", "--quiet"]);
        write("README.md", "changed and staged\n");
        git(&["add", "README.md"]);
        write("README.md", "changed again, not staged\n");
        write("notes.txt", "not known to git\n");
        repo
    }
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn state(application: &Value) -> [String; 3] {
    ["/status/sync/status", "/status/health/status", "/status/sync/revision"].map(|pointer| text(application, pointer))
}
