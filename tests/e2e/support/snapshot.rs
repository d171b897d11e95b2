//! The whole outside world as a list of facts, so that "nothing is left" is one comparison.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::World;

/// Facts by name: "docker volume x", "file home/.kube/config", "tre refs/heads/main", "process …".
#[derive(Debug, Clone)]
pub struct Snapshot(BTreeMap<String, String>);

impl Snapshot {
    pub(super) fn take(world: &World, repos: &[&Path]) -> Snapshot {
        let mut facts = BTreeMap::new();
        docker(world, &mut facts);
        for repo in repos {
            repository(world, repo, &mut facts);
        }
        files(world.root.path(), world.root.path(), repos, &mut facts);
        for (pid, command) in processes(world.root.path()) {
            facts.insert(format!("process {pid}"), command);
        }
        Snapshot(facts)
    }

    /// The same without the facts whose names start so: for what may stay, as fetched files in the cache may.
    pub fn without(&self, prefix: &str) -> Snapshot {
        Snapshot(
            self.0.iter().filter(|(name, _)| !name.starts_with(prefix)).map(|(n, v)| (n.clone(), v.clone())).collect(),
        )
    }

    /// What differs in a later snapshot, a line each.
    pub fn changes(&self, after: &Snapshot) -> Vec<String> {
        let gone = self.0.iter().filter(|(name, _)| !after.0.contains_key(*name));
        let gone = gone.map(|(name, value)| format!("- {name}: {value}"));
        let new = after.0.iter().filter_map(|(name, value)| match self.0.get(name) {
            None => Some(format!("+ {name}: {value}")),
            Some(old) if old != value => Some(format!("~ {name}: {old} -> {value}")),
            Some(_) => None,
        });
        gone.chain(new).collect()
    }
}

/// Panics with everything that differs.
#[track_caller]
pub fn assert_same_world(before: &Snapshot, after: &Snapshot) {
    let changes = before.changes(after);
    assert!(changes.is_empty(), "the world is not as it was:\n{}", changes.join("\n"));
}

fn docker(world: &World, facts: &mut BTreeMap<String, String>) {
    let mut others = Vec::new();
    let format = r#"{{.Names}}\t{{.ID}} {{.State}}\t{{.Label "io.x-k8s.kind.cluster"}}\t{{.Mounts}}"#;
    let listed = world.docker(&["ps", "--all", "--no-trunc", "--format", format]).expect(0).stdout;
    for line in listed.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [name, value, cluster, mounts] = columns[..] else { panic!("Docker lists four columns: {line}") };
        // Somebody else on this machine may make and remove clusters meanwhile, and their volumes with them.
        if !cluster.is_empty() && !world.is_named(cluster) {
            others.extend(mounts.split(',').map(str::to_owned));
        } else {
            facts.insert(format!("docker container {name}"), value.to_owned());
        }
    }
    for (kind, list) in [
        ("volume", &["volume", "ls", "--format", "{{.Name}}\t{{.Driver}}"][..]),
        ("network", &["network", "ls", "--no-trunc", "--format", "{{.Name}}\t{{.ID}}"]),
    ] {
        let listed = world.docker(list).expect(0).stdout;
        for (name, value) in listed.lines().filter_map(|line| line.split_once('\t')) {
            // kind makes its network once and keeps it for all clusters of the machine, also other people's.
            if (kind, name) != ("network", "kind") && !others.iter().any(|other| other == name) {
                facts.insert(format!("docker {kind} {name}"), value.to_owned());
            }
        }
    }
}

/// Refs (the stash among them), HEAD, config, index, and the work tree's state.
fn repository(world: &World, repo: &Path, facts: &mut BTreeMap<String, String>) {
    let name = repo.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let git = |args: &[&str]| world.git(repo, &[&["--no-optional-locks"], args].concat());
    let folder = PathBuf::from(git(&["rev-parse", "--absolute-git-dir"]).expect(0).stdout.trim_end());
    for file in ["HEAD", "config", "index"] {
        let content = fs::read(folder.join(file)).map_or("absent".to_owned(), |bytes| described(&bytes));
        facts.insert(format!("{name} {file}"), content);
    }
    let refs = git(&["for-each-ref", "--format=%(refname)\t%(objectname)"]).expect(0).stdout;
    for (reference, object) in refs.lines().filter_map(|line| line.split_once('\t')) {
        facts.insert(format!("{name} {reference}"), object.to_owned());
    }
    let status = git(&["status", "--porcelain"]);
    let bare = status.code != Some(0);
    facts.insert(format!("{name} work tree"), if bare { "none".to_owned() } else { status.stdout });
}

/// Every file below a folder, with its rights; what is inside git folders is told by `repository`.
fn files(root: &Path, folder: &Path, repos: &[&Path], facts: &mut BTreeMap<String, String>) {
    let entries = fs::read_dir(folder).expect("the world's folders can be read");
    for path in entries.map(|entry| entry.expect("the world's folders can be read").path()) {
        if path.file_name().is_some_and(|name| name == ".git") {
            continue;
        }
        // A file may vanish between the listing and the look: then it is not there.
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        let name = format!("file {}", path.strip_prefix(root).expect("below the root").display());
        let rights = format!("{:o}", about.permissions().mode() & 0o7777);
        if about.is_dir() {
            let bare = repos.contains(&path.as_path()) && path.join("HEAD").exists();
            if !bare {
                facts.insert(name, format!("folder, {rights}"));
                files(root, &path, repos, facts);
            }
        } else if about.is_symlink() {
            facts.insert(name, format!("link to {}", fs::read_link(&path).unwrap_or_default().display()));
        } else if about.is_file() {
            let content = fs::read(&path).map_or("unreadable".to_owned(), |bytes| described(&bytes));
            facts.insert(name, format!("{content}, {rights}"));
        } else {
            facts.insert(name, format!("special file, {rights}"));
        }
    }
}

fn described(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let hash: String = hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("{} bytes, sha256 {hash}…", bytes.len())
}

/// Processes whose environment names this world: k8tre's, and whatever it started and forgot. Linux only.
pub(super) fn processes(root: &Path) -> Vec<(i32, String)> {
    let root = root.as_os_str().as_encoded_bytes();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        environment.windows(root.len()).any(|part| part == root).then_some(())?;
        let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).replace('\0', " ").trim_end().to_owned();
        Some((pid, command))
    })
    .collect()
}
