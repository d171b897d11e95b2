//! A world of its own for each test: folders, git identity, kubeconfig, names; and its removal.

pub mod branches;
pub mod controller;
pub mod hub;
mod judge;
pub mod private_git;
pub mod proxy;
mod run;
mod snapshot;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use judge::{STATUS_LIMIT, Up};
pub use run::{Ran, Running};
pub use snapshot::{Snapshot, assert_same_world};

/// Longer than any command may take; a test of a shorter bound looks at `Ran::took`.
pub const LIMIT: Duration = Duration::from_secs(600);

/// What of the caller's environment a developer's shell would have, too.
const PASSED_ON: [&str; 12] = [
    "PATH",
    "LANG",
    "RUST_BACKTRACE",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "https_proxy",
    "http_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
];

/// A developer's machine as k8tre sees it, made of temporary folders and the real Docker.
pub struct World {
    root: tempfile::TempDir,
    pub home: PathBuf,
    pub data: PathBuf,
    pub cache: PathBuf,
    pub config: PathBuf,
    temp: PathBuf,
    /// Of the tests' own kubectl, whose cache is no trace of k8tre.
    kubectl_cache: tempfile::TempDir,
    names: RefCell<Vec<String>>,
    _alone: MutexGuard<'static, ()>,
}

impl World {
    /// Panics where no lab is: an end-to-end test that quietly passes without one would be a lie.
    pub fn new() -> World {
        static ALONE: Mutex<()> = Mutex::new(());
        assert!(
            std::env::var_os("K8TRE_LAB").is_some(),
            "K8TRE_LAB is not set: these tests make real clusters. With a Docker that reaches image registries: \
             K8TRE_LAB=1 .ci/run e2e. Without: tests/lab/lab up, then eval \"$(tests/lab/lab env)\""
        );
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let root = tempfile::Builder::new().prefix("k8tre-e2e-").tempdir().expect("a temporary folder");
        let folder = |name: &str| {
            let path = root.path().join(name);
            fs::create_dir(&path).expect("a folder in the temporary folder");
            path
        };
        let world = World {
            home: folder("home"),
            data: root.path().join("data"),
            cache: folder("cache"),
            config: folder("config"),
            temp: folder("tmp"),
            kubectl_cache: tempfile::tempdir().expect("a temporary folder"),
            names: RefCell::default(),
            _alone: alone,
            root,
        };
        let write = |path: PathBuf, content: &str| fs::write(path, content).expect("a file in the temporary folder");
        write(world.home.join(".gitconfig"), "[user]\nname = Alice\nemail = alice@example.org\n");
        fs::create_dir(world.home.join(".kube")).expect("a folder in the temporary folder");
        write(world.kubeconfig_of_user(), USERS_KUBECONFIG);
        world
    }

    /// A name that no other test and no other run uses; what carries it in Docker is removed at the end.
    pub fn name(&self, stem: &str) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{stem}-{:x}x{count}", std::process::id());
        self.names.borrow_mut().push(name.clone());
        name
    }

    /// Whether a text names something of this test.
    fn is_named(&self, text: &str) -> bool {
        self.names.borrow().iter().any(|name| text.contains(name))
    }

    /// The flags that make k8tre use the lab's images; none where the real registries are reachable.
    pub fn lab_flags(&self) -> Vec<String> {
        let flag = |flag: &str, variable| {
            std::env::var(variable).ok().map(|value| [flag.to_owned(), value]).into_iter().flatten()
        };
        flag("--node-image", "K8TRE_LAB_NODE_IMAGE")
            .chain(flag("--argocd-manifest", "K8TRE_LAB_ARGOCD_MANIFEST"))
            .collect()
    }

    /// The kubeconfig that belongs to the person, with a context that no command of k8tre may lose.
    pub fn kubeconfig_of_user(&self) -> PathBuf {
        self.home.join(".kube/config")
    }

    /// The kubeconfig that k8tre keeps for an environment.
    pub fn kubeconfig(&self, name: &str) -> PathBuf {
        self.data.join("environments").join(name).join("kubeconfig")
    }

    pub fn k8tre(&self, args: &[&str]) -> Ran {
        self.start(args).wait(LIMIT)
    }

    /// The same with some variables set differently.
    pub fn k8tre_with(&self, variables: &[(&str, &str)], args: &[&str]) -> Ran {
        self.start_with(variables, args).wait(LIMIT)
    }

    /// The same without waiting for its end.
    pub fn start_with(&self, variables: &[(&str, &str)], args: &[&str]) -> Running {
        let mut command = self.command(env!("CARGO_BIN_EXE_k8tre"), args);
        command.envs(variables.iter().copied());
        Running::start(command)
    }

    /// `k8tre dev up NAME` with the lab's flags and the given ones.
    pub fn up(&self, name: &str, args: &[&str]) -> Ran {
        self.start_up(name, args).wait(LIMIT)
    }

    /// The same without waiting for its end.
    pub fn start_up(&self, name: &str, args: &[&str]) -> Running {
        let flags = self.lab_flags();
        let args: Vec<&str> = ["dev", "up", name]
            .into_iter()
            .chain(flags.iter().map(String::as_str))
            .chain(args.iter().copied())
            .collect();
        self.start(&args)
    }

    /// Starts k8tre without waiting for its end, so that a test can interrupt it.
    pub fn start(&self, args: &[&str]) -> Running {
        self.start_program(env!("CARGO_BIN_EXE_k8tre"), args)
    }

    pub fn start_program(&self, program: &str, args: &[&str]) -> Running {
        Running::start(self.command(program, args))
    }

    /// `up` of the sample, running, while kind is in the middle of its work: the node's container exists.
    pub fn up_until_kind_creates(&self, name: &str) -> Running {
        let running = self.start_up(name, &["--sample", "--verbose"]);
        let filter = format!("name=k8tre-{name}-control-plane");
        let deadline = Instant::now() + LIMIT;
        while self.docker(&["ps", "--quiet", "--filter", &filter]).expect(0).stdout.is_empty() {
            assert!(Instant::now() < deadline, "kind makes no container:\n{}", running.stderr());
        }
        running
    }

    /// kubectl against an environment's cluster.
    pub fn kubectl(&self, name: &str, args: &[&str]) -> Ran {
        let kubeconfig = self.kubeconfig(name);
        let mut command = self.command("kubectl", &[]);
        command.env("KUBECACHEDIR", self.kubectl_cache.path());
        command.arg("--kubeconfig").arg(kubeconfig).arg("--request-timeout=20s").args(args);
        Running::start(command).wait(LIMIT)
    }

    pub fn program(&self, program: &str, args: &[&str]) -> Ran {
        self.start_program(program, args).wait(LIMIT)
    }

    pub fn docker(&self, args: &[&str]) -> Ran {
        self.program("docker", args)
    }

    pub fn git(&self, repo: &Path, args: &[&str]) -> Ran {
        let mut command = self.command("git", args);
        command.current_dir(repo);
        Running::start(command).wait(LIMIT)
    }

    /// All that k8tre could change: Docker, the files of this world, its processes, the repositories.
    pub fn snapshot(&self, repos: &[&Path]) -> Snapshot {
        Snapshot::take(self, repos)
    }

    /// k8tre as a shell would start it in the home folder.
    pub fn shell_command(&self, args: &[&str]) -> Command {
        self.command(env!("CARGO_BIN_EXE_k8tre"), args)
    }

    fn command(&self, program: impl AsRef<OsStr>, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.home).env_clear();
        command.envs(PASSED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.env("HOME", &self.home).env("TMPDIR", &self.temp);
        command.env("K8TRE_DATA_DIR", &self.data);
        command.env("K8TRE_CACHE_DIR", &self.cache);
        command.env("K8TRE_CONFIG_DIR", &self.config);
        command
    }

    /// Also after a panic: a failed test must not take the next one's memory and ports.
    fn clean(&self) {
        for (pid, _) in snapshot::processes(self.root.path()) {
            if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        for name in self.names.borrow().iter() {
            let filter = format!("name={name}");
            for (list, remove) in [
                (&["ps", "--all", "--quiet"][..], &["rm", "--force", "--volumes"][..]),
                (&["volume", "ls", "--quiet"], &["volume", "rm"]),
                (&["network", "ls", "--quiet"], &["network", "rm"]),
            ] {
                let found = self.docker(&[list, &["--filter", &filter]].concat());
                let ids: Vec<&str> = found.stdout.split_whitespace().collect();
                if !ids.is_empty() {
                    self.docker(&[remove, &ids].concat());
                }
            }
        }
    }
}

/// The layout files of the real K8TRE repository. A test that goes without them says so past the test harness.
pub fn fixture(test: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/k8tre-fixture");
    let folder = std::env::var_os("K8TRE_FIXTURE").map_or(beside, PathBuf::from);
    if folder.join("app_of_apps").is_dir() {
        return Some(folder);
    }
    let text = format!("\nSKIPPED a part of {test}: set K8TRE_FIXTURE to the layout files of the K8TRE repository\n");
    std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes()).expect("stderr is open in tests");
    None
}

impl Drop for World {
    fn drop(&mut self) {
        self.clean();
    }
}

const USERS_KUBECONFIG: &str = r#"apiVersion: v1
kind: Config
current-context: hospital-production
clusters:
- name: hospital
  cluster: {server: "https://hospital.example.org:6443"}
contexts:
- name: hospital-production
  context: {cluster: hospital, user: alice}
users:
- name: alice
  user: {}
"#;
