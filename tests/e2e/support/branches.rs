//! A developer's branch as k8tre makes it, for a test that publishes it itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Parser;
use k8tre::cli::{Cli, Command, Dev};
use k8tre::gitops::predict::Prediction;
use k8tre::overlay::EnvironmentOverlay;
use k8tre::settings::{Found, settle};
use serde_json::Value;

use super::controller::{commit, write_tree};
use super::{LIMIT, World};

pub struct Branch {
    /// What `k8tre dev preview -o json` says of it.
    pub preview: Value,
    pub labels: BTreeMap<String, String>,
    pub prediction: Prediction,
    /// The branch's files.
    pub folder: PathBuf,
    /// The overlay in it, which the root Application deploys.
    pub overlay: PathBuf,
}

impl Branch {
    /// The branch that `k8tre dev up NAME ARGS` would publish.
    pub fn new(world: &World, repo: &Path, name: &str, args: &[&str]) -> Branch {
        let repo_text = repo.to_string_lossy();
        let args = [&["dev", "preview", name, "--repo", &repo_text, "-o", "json"], args].concat();
        let preview = world.k8tre(&args).json();
        let cli = Cli::try_parse_from([&["k8tre"], &args[..]].concat()).expect("k8tre has just taken these arguments");
        let Command::Dev(dev) = cli.command else { panic!("dev is a group of commands") };
        let Dev::Preview(wanted) = *dev else { panic!("preview is a command of dev") };
        let found = Found {
            repo: repo.to_owned(),
            sample: false,
            head: Some("main".into()),
            vendor: "k3s".into(),
            lists_secrets: false,
        };
        let name = name.parse().expect("a name of an environment");
        let spec = settle(&name, &wanted.up, None, &[], found).expect("k8tre has just settled the same");
        let made =
            EnvironmentOverlay::of(&spec, name.as_str(), None, None).expect("k8tre has just made the same overlay");
        let folder = world.home.join(format!("branch-{name}"));
        let to = folder.to_string_lossy().into_owned();
        world.start_program("cp", &["-R", &repo_text, &to]).wait(LIMIT).expect(0);
        write_tree(&folder, made.files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
        commit(world, &folder);
        let overlay = folder.join("overlays/developers").join(name.as_str());
        Branch { preview, labels: made.labels, prediction: made.prediction, folder, overlay }
    }
}
