//! Repositories for tests.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::tree::{FolderTree, MemoryTree, Tree};
use crate::ports::environment;
use crate::ports::process::Program;

/// The layout files of the real K8TRE repository, from the folder that K8TRE_FIXTURE names, or from beside the project.
pub fn fixture(test: &str) -> Option<FolderTree> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/k8tre-fixture");
    let folder = environment::var("K8TRE_FIXTURE").map_or(beside, PathBuf::from);
    match FolderTree::open(&folder) {
        Ok(tree) => Some(tree),
        Err(error) => {
            skipped(test, &format!("set K8TRE_FIXTURE to the layout files of the K8TRE repository ({error})"))
        }
    }
}

/// Written past the test harness, which keeps to itself what a passing test prints.
fn skipped<T>(test: &str, why: &str) -> Option<T> {
    let text = format!("\nSKIPPED {test}: {why}\n");
    std::io::stderr().write_all(text.as_bytes()).expect("stderr is open in tests");
    None
}

/// A repository of these files, with a root Application for `appsets` if there is none.
pub fn repository_of(files: &[(&str, &str)]) -> MemoryTree<'static> {
    let root = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: root}\nspec:\n  source: \
                {repoURL: 'https://git.example/r.git', targetRevision: main, path: appsets}\n";
    let mut all = vec![("app_of_apps/root-app-of-apps.yaml", root)];
    all.extend(files);
    MemoryTree::new(all)
}

/// An ApplicationSet with these generators (in flow style) and this name of its Applications, which is on line 9.
pub fn set(name: &str, generators: &str, application: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: {name}}}\nspec:\n  goTemplate: true\n  \
         goTemplateOptions: [missingkey=error]\n  generators: {generators}\n  template:\n    metadata: {{name: '{application}'}}\n    \
         spec:\n      project: default\n      source: {{repoURL: 'https://git.example/r.git', targetRevision: main, path: p}}\n      \
         destination: {{server: 'https://kubernetes.default.svc', namespace: n}}\n"
    )
}

/// A large repository: this many ApplicationSets with three env folders each, for clusters with the label `env`.
pub fn many(sets: usize) -> Vec<(String, String)> {
    let root = "kind: Application\nmetadata: {name: root}\nspec:\n  source: {repoURL: 'https://git.example/r', path: appsets}\n";
    let mut files = vec![("app_of_apps/root-app-of-apps.yaml".to_owned(), root.to_owned())];
    for number in 0..sets {
        let generators = format!(
            "[{{matrix: {{generators: [{{git: {{repoURL: 'https://git.example/r', revision: main, directories: [{{path: \
             apps/a{number}/envs/*}}]}}}}, {{clusters: {{selector: {{matchLabels: {{env: '{{{{index .path.segments 3}}}}'}}}}}}}}]}}}}]"
        );
        let text = set(&format!("a{number}"), &generators, "{{index .path.segments 1}}-{{.nameNormalized}}")
            .replace("path: p}", "path: '{{.path.path}}', plugin: {name: x, env: [{name: D, value: '{{index .metadata.labels \"domain\"}}'}]}}")
            .replace("'https://kubernetes.default.svc'", "'{{.server}}'");
        files.push((format!("appsets/a{number}.yaml"), text));
        for env in ["dev", "stg", "prd"] {
            files.push((format!("apps/a{number}/envs/{env}/kustomization.yaml"), String::new()));
        }
    }
    files
}

/// The folder built by the real kustomize, if there is one on this machine: on PATH or in the lab.
pub fn kustomize_build(test: &str, tree: &dyn Tree, folder: &str) -> Option<String> {
    let home = environment::var("HOME").unwrap_or_default();
    let lab = Path::new(&home).join(".cache/k8tre-lab/bin/kustomize");
    let Some(kustomize) = which::which("kustomize").ok().or_else(|| lab.is_file().then_some(lab)) else {
        return skipped(test, "there is no kustomize on PATH");
    };
    let checkout = tempfile::tempdir().unwrap();
    for path in tree.paths() {
        let file = checkout.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, tree.read(path).unwrap()).unwrap();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let build = Program::new(kustomize).args(["build", folder]).folder(checkout.path()).run();
    Some(runtime.block_on(build).unwrap().text())
}
