//! Real repositories in a temporary folder, with settings of their own: the machine's do not matter.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use k8tre::ports::git::{Checkout, Overlay, Owner};
use tempfile::TempDir;

pub const BRANCH: &str = "dev/alice";

/// A folder that holds a home, repositories and remotes.
pub struct World {
    folder: TempDir,
}

impl World {
    /// Alice's machine, with one repository in `tre` that has a commit on `main`.
    pub fn new() -> World {
        let world = World { folder: TempDir::with_prefix("k8tre-git-").unwrap() };
        std::fs::create_dir(world.path("home")).unwrap();
        world.settings("[user]\n\tname = Alice\n\temail = alice@example.org\n[init]\n\tdefaultBranch = main\n");
        world.repository("tre");
        world
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces the user's git settings.
    pub fn settings(&self, text: &str) {
        std::fs::write(self.path("home/.gitconfig"), text).unwrap();
    }

    /// Variables that keep every git inside this world.
    pub fn variables(&self) -> Vec<(String, String)> {
        let home = self.path("home").display().to_string();
        let fixed =
            [("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", ""), ("GNUPGHOME", ""), ("XDG_CONFIG_HOME", "")];
        let mut variables: Vec<(String, String)> = fixed.map(|(name, value)| (name.into(), value.into())).into();
        variables[1].1 = format!("{home}/.gitconfig");
        variables[2].1 = format!("{home}/.gnupg");
        variables[3].1 = format!("{home}/.config");
        variables.push(("HOME".into(), home));
        variables
    }

    pub fn repository(&self, name: &str) {
        std::fs::create_dir(self.path(name)).unwrap();
        self.git(name, &["init", "--quiet", "-b", "main"]);
        self.commit(name, "appsets/portal.yaml", "kind: ApplicationSet\n", "Start");
    }

    pub fn commit(&self, repository: &str, path: &str, content: &str, message: &str) -> String {
        self.write(&format!("{repository}/{path}"), content);
        self.git(repository, &["add", path]);
        self.git(repository, &["commit", "--quiet", "--no-gpg-sign", "-m", message]);
        self.git(repository, &["rev-parse", "HEAD"])
    }

    pub fn write(&self, path: &str, content: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Runs git as the user would, and returns what it prints.
    pub fn git(&self, folder: &str, args: &[&str]) -> String {
        let output = self.try_git(folder, args);
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    pub fn try_git(&self, folder: &str, args: &[&str]) -> std::process::Output {
        let mut git = Command::new("git");
        git.current_dir(self.path(folder)).envs(self.variables()).args(["-c", "protocol.file.allow=always"]).args(args);
        git.output().unwrap()
    }

    pub fn checkout(&self, name: &str) -> Checkout {
        self.at(&self.path(name))
    }

    pub fn at(&self, path: &Path) -> Checkout {
        let checkout = Checkout::open(path).unwrap();
        self.variables().into_iter().fold(checkout, |checkout, (name, value)| checkout.with_variable(name, value))
    }

    /// A bare repository in `remote.git`, known to `tre` as origin.
    pub fn with_remote(self) -> World {
        self.git("", &["init", "--quiet", "--bare", "-b", "main", "remote.git"]);
        self.git("tre", &["remote", "add", "origin", self.path("remote.git").to_str().unwrap()]);
        self.git("tre", &["push", "--quiet", "origin", "main"]);
        self
    }

    /// An executable shell script.
    pub fn script(&self, path: &str, body: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        self.write(path, &format!("#!/bin/sh\n{body}\n"));
        std::fs::set_permissions(self.path(path), std::fs::Permissions::from_mode(0o755)).unwrap();
        self.path(path)
    }
}

pub fn owner(id: &str) -> Owner {
    Owner { name: "alice".parse().unwrap(), id: id.into() }
}

pub fn files(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(path, content)| ((*path).to_owned(), (*content).to_owned())).collect()
}

/// The overlay that most tests write: one file, based on main.
pub struct Wanted {
    pub owner: Owner,
    pub files: BTreeMap<String, String>,
    pub seeds: BTreeMap<String, String>,
    pub remove: Vec<String>,
}

impl Wanted {
    pub fn new(content: &str) -> Wanted {
        let files = files(&[("overlays/developers/alice/kustomization.yaml", content)]);
        Wanted { owner: owner("id-1"), files, seeds: BTreeMap::new(), remove: Vec::new() }
    }

    pub fn overlay(&self, checkout: &Checkout) -> Overlay<'_> {
        Overlay {
            branch: BRANCH,
            owner: &self.owner,
            base: checkout.resolve("main").unwrap(),
            files: &self.files,
            seeds: &self.seeds,
            remove: &self.remove,
            message: "Add alice's overlay",
        }
    }
}
