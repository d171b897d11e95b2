//! A developer's machine, whole: folders, Docker, kind, clusters with Argo CD; and k8tre, the real
//! program, at work on it. Nothing of the machine that runs the test is seen or touched.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;

use super::fake_cluster::FakeClusters;
use super::fake_docker::FakeDocker;
use super::fake_kind::FakeKind;
use super::gate::Gate;
use super::tools;

/// Applications that the sample TRE makes, without the environment's name.
pub const SAMPLE: [&str; 6] = ["guardrails", "identity", "metrics", "portal", "storage-class", "workspaces"];

/// No command over fakes takes this long.
const LIMIT: Duration = Duration::from_secs(60);

pub struct Desk {
    folder: tempfile::TempDir,
    pub docker: FakeDocker,
    pub kind: FakeKind,
    pub clusters: FakeClusters,
    pub gate: Gate,
    variables: BTreeMap<String, String>,
}

impl Desk {
    pub async fn new() -> Desk {
        let gate = Gate::open_always();
        let docker = FakeDocker::behind(gate.clone()).await;
        docker.change(|world| {
            // Another machine's engine as far as memory, disk and kernel settings go.
            world.info["OperatingSystem"] = "Docker Desktop".into();
            world.images = ["example.org/argocd:1", "example.org/redis:1"]
                .map(|name| (name.to_owned(), serde_json::json!({"Id": name})))
                .into();
        });
        let kind = FakeKind::new(&docker);
        tools::write_all(kind.folder());
        let gate = gate.with_folder(kind.folder());
        let (clusters, url) = FakeClusters::start(&docker.containers(), gate.clone()).await;
        clusters.applications(&SAMPLE);
        kind.serve(&url);
        let folder = tempfile::Builder::new().prefix("k8tre-desk-").tempdir().unwrap();
        for name in ["home/.kube", "tmp", "work"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("home/.kube/config"), tools::KUBECONFIG).unwrap();
        let settings = "[user]\n\tname = Alice\n\temail = alice@example.org\n[init]\n\tdefaultBranch = main\n";
        fs::write(folder.path().join("home/.gitconfig"), settings).unwrap();

        let path = |name: &str| folder.path().join(name).display().to_string();
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/support/argocd.yaml");
        let variables = [
            ("HOME", path("home")),
            ("TMPDIR", path("tmp")),
            ("USER", "alice".into()),
            ("PATH", kind.folder().display().to_string()),
            ("DOCKER_HOST", docker.endpoint().host),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("K8TRE_DATA_DIR", path("data")),
            ("K8TRE_CACHE_DIR", path("cache")),
            ("K8TRE_CONFIG_DIR", path("config")),
            ("K8TRE_ARGOCD_MANIFEST", manifest.into()),
        ];
        let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Desk { folder, docker, kind, clusters, gate, variables }
    }

    /// With another value of a variable; without one, unset.
    pub fn with(mut self, name: &str, value: Option<&str>) -> Desk {
        match value {
            Some(value) => self.variables.insert(name.to_owned(), value.to_owned()),
            None => self.variables.remove(name),
        };
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// git as the user runs it.
    pub fn git(&self, folder: &str, args: &[&str]) -> String {
        let mut git = std::process::Command::new("git");
        let output = git.current_dir(self.path(folder)).env_clear().envs(&self.variables).args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// A TRE repository of the user's own, with these files in one commit.
    pub fn repository(&self, name: &str, files: &[(&str, &str)]) {
        fs::create_dir_all(self.path(name)).unwrap();
        self.git(name, &["init", "--quiet"]);
        for (path, content) in files {
            self.write(&format!("{name}/{path}"), content);
        }
        self.git(name, &["add", "."]);
        self.git(name, &["commit", "--quiet", "--allow-empty", "-m", "Start"]);
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_k8tre"));
        command.current_dir(self.path("work")).env_clear().envs(&self.variables).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Runs k8tre in `work` to its end.
    pub async fn run(&self, args: &[&str]) -> Ended {
        self.start(args).ended().await
    }

    /// k8tre as a shell would start it in `work`.
    pub fn shell_command(&self, args: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_k8tre"));
        command.current_dir(self.path("work")).env_clear().envs(&self.variables).args(args);
        command
    }

    /// Another program, with the same variables.
    pub async fn program(&self, program: &Path, args: &[&str]) -> Ended {
        let mut command = Command::new(program);
        command.current_dir(self.path("work")).env_clear().envs(&self.variables).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        Running::of(&mut command, args).ended().await
    }

    pub async fn run_in(&self, folder: &str, args: &[&str]) -> Ended {
        let mut command = self.command(args);
        Running::of(command.current_dir(self.path(folder)), args).ended().await
    }

    /// On a disk that is full: no file can grow.
    pub async fn run_without_space(&self, args: &[&str]) -> Ended {
        let script = "trap '' XFSZ; ulimit -f 0; exec \"$@\"";
        let mut command = Command::new("/bin/sh");
        command.current_dir(self.path("work")).env_clear().envs(&self.variables);
        command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_k8tre")]).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        Running::of(&mut command, args).ended().await
    }

    pub fn start(&self, args: &[&str]) -> Running {
        Running::of(&mut self.command(args), args)
    }

    /// All that k8tre could leave: every file of the user's with its content, what Docker holds, and
    /// processes. Of git only what it means: objects that nothing refers to are its own affair.
    pub fn snapshot(&self) -> BTreeMap<String, String> {
        let mut all: BTreeMap<String, String> = self.docker.contents().into_iter().collect();
        walk(self.folder.path(), self.folder.path(), &mut all);
        for process in self.processes() {
            all.insert(format!("process {process}"), String::new());
        }
        all
    }

    /// Command lines of processes that were started on this machine.
    pub fn processes(&self) -> Vec<String> {
        let marks = [self.folder.path(), self.kind.folder()].map(|path| path.display().to_string());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
            let environment = String::from_utf8_lossy(&read("environ")).into_owned();
            let command = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
            if !command.is_empty() && marks.iter().any(|mark| environment.contains(mark)) {
                found.push(command);
            }
        }
        found
    }
}

fn walk(root: &Path, folder: &Path, all: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let name = path.strip_prefix(root).unwrap().display().to_string();
        if kind.is_dir() {
            if !name.ends_with(".git/objects") {
                walk(root, &path, all);
            }
        } else {
            let mode = entry.metadata().map_or(0, |data| data.permissions().mode());
            let content = fs::read(&path).unwrap_or_default();
            all.insert(name, format!("{mode:o} {}", String::from_utf8_lossy(&content)));
        }
    }
}

/// What is in one snapshot and not, or not so, in the other.
pub fn changes(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let names: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let differs = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    differs
        .map(|name| match (before.get(name), after.get(name)) {
            (None, _) => format!("new: {name}"),
            (_, None) => format!("gone: {name}"),
            (Some(before), Some(after)) => format!("changed: {name}: {before} -> {after}"),
        })
        .collect()
}

/// A k8tre at work.
pub struct Running {
    child: Child,
    shown: String,
    stdout: tokio::task::JoinHandle<String>,
    stderr: watch::Receiver<String>,
    reader: tokio::task::JoinHandle<()>,
}

impl Running {
    fn of(command: &mut Command, args: &[&str]) -> Running {
        let mut child = command.spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let stdout = tokio::spawn(async move {
            let mut text = String::new();
            out.read_to_string(&mut text).await.ok();
            text
        });
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (said, stderr) = watch::channel(String::new());
        let reader = tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                said.send_modify(|text| {
                    text.push_str(&line);
                    text.push('\n');
                });
            }
        });
        Running { child, shown: args.join(" "), stdout, stderr, reader }
    }

    /// Waits for a line of stderr; false if k8tre ended without it.
    pub async fn says(&self, wanted: impl Fn(&str) -> bool) -> bool {
        let mut stderr = self.stderr.clone();
        let seen = stderr.wait_for(|text| text.lines().any(&wanted));
        match tokio::time::timeout(LIMIT, seen).await {
            Ok(seen) => seen.is_ok(),
            Err(_) => panic!("k8tre {} does not say what it should: {}", self.shown, *self.stderr.borrow()),
        }
    }

    pub fn signal(&self, signal: Signal) {
        if let Some(id) = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) {
            kill_process(id, signal).ok();
        }
    }

    pub async fn ended(mut self) -> Ended {
        let status = match tokio::time::timeout(LIMIT, self.child.wait()).await {
            Ok(status) => status.unwrap(),
            Err(_) => panic!("k8tre {} does not end: {}", self.shown, *self.stderr.borrow()),
        };
        // Children may outlive a k8tre that was killed, and hold the pipes open.
        let patience = Duration::from_millis(if status.code().is_some() { 5000 } else { 50 });
        tokio::time::timeout(patience, self.reader).await.ok();
        let stdout = tokio::time::timeout(patience, self.stdout).await;
        let stdout = stdout.ok().and_then(Result::ok).unwrap_or_default();
        Ended { code: status.code(), stdout, stderr: self.stderr.borrow().clone(), shown: self.shown }
    }
}

/// How a k8tre ended: without a code if a signal ended it.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    shown: String,
}

impl Ended {
    #[track_caller]
    pub fn code(&self, code: i32) -> &Ended {
        assert_eq!(self.code, Some(code), "k8tre {}\n{}\n{}", self.shown, self.stdout, self.stderr);
        self
    }

    /// Looks for words on stderr.
    #[track_caller]
    pub fn says(&self, words: &str) -> &Ended {
        assert!(self.stderr.contains(words), "k8tre {} does not say {words:?}:\n{}", self.shown, self.stderr);
        self
    }

    /// Looks for words on stdout.
    #[track_caller]
    pub fn shows(&self, words: &str) -> &Ended {
        assert!(self.stdout.contains(words), "k8tre {} does not show {words:?}:\n{}", self.shown, self.stdout);
        self
    }

    /// Makes sure that words are nowhere.
    #[track_caller]
    pub fn hides(&self, words: &str) -> &Ended {
        assert!(!self.stdout.contains(words) && !self.stderr.contains(words), "k8tre {} tells {words:?}", self.shown);
        self
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}
