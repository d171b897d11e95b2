//! Helm on the host, by its program. It is asked to install and nothing else: whether that went well, and what has to go,
//! the host's API server tells better.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result, ResultExt};
use crate::ports::dirs;
use crate::ports::process::Program;
use crate::spec::VclusterSpec;

const LIMIT: Duration = Duration::from_secs(120);
/// Variables by which a user's shell could lead it to another cluster, another user or another namespace.
const ELSEWHERE: [&str; 9] = [
    "HELM_KUBECONTEXT",
    "HELM_KUBEAPISERVER",
    "HELM_KUBETOKEN",
    "HELM_KUBEASUSER",
    "HELM_KUBEASGROUPS",
    "HELM_KUBECAFILE",
    "HELM_NAMESPACE",
    "HELM_DRIVER",
    "HELM_DEBUG",
];

/// The program, found before anything is made.
pub fn program() -> Result<PathBuf> {
    which::which("helm").map_err(|_| {
        Error::preflight("helm is not on PATH, and a vCluster is installed with it")
            .hint("install it: https://helm.sh/docs/intro/install/")
    })
}

/// One release on the host.
pub struct Release<'a> {
    pub spec: &'a VclusterSpec,
    pub name: &'a str,
    /// A folder of the environment's own, for what Helm would keep in the user's.
    pub folder: &'a Path,
}

impl Release<'_> {
    /// Installs it, or brings it to these values: each over the one before.
    pub async fn install(&self, chart: &Path, values: &[PathBuf]) -> Result<()> {
        let mut run = self.program(&["upgrade", "--install", self.name])?.arg(chart);
        for file in values {
            run = run.arg("--values").arg(file);
        }
        run.run().await.map(drop).context("helm could not install vCluster").map_err(explained)
    }

    fn program(&self, args: &[&str]) -> Result<Program> {
        let home = self.folder.join("helm");
        dirs::create_private_dir(&home)?;
        let run = Program::new(program()?)
            .own_group()
            .args(args)
            .arg("--kubeconfig")
            .arg(&self.spec.host_kubeconfig)
            .args(["--kube-context", &self.spec.host_context, "--namespace", &self.spec.namespace])
            .env("KUBECONFIG", &self.spec.host_kubeconfig)
            // An empty one: a folder of the chart's name where one happens to stand would be taken for the chart.
            .folder(&home)
            .limit(LIMIT);
        let homes = ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"];
        let run = homes.into_iter().fold(run, |run, name| run.env(name, &home));
        Ok(ELSEWHERE.into_iter().fold(run, |run, name| run.env_remove(name)))
    }
}

/// What Helm's words mean, where they are known to puzzle.
fn explained(error: Error) -> Error {
    let words = format!("{error} {}", error.detail_text().unwrap_or_default());
    let known = [
        ("values don't meet the specifications", "look at your values: --vcluster-values FILE"),
        ("cannot reuse a name", "k8tre dev down, then up again"),
        ("is forbidden", "ask an administrator of the host for the right that is named"),
    ];
    let hints = known.iter().filter(|(said, _)| words.contains(said)).map(|(_, hint)| *hint);
    hints.fold(error, Error::hint)
}
