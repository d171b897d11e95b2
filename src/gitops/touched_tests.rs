use super::*;
use crate::gitops::tree::MemoryTree;

/// What of these files an Application with this source reads.
fn reads(files: &[(&str, &str)], source: Value, changed: &str) -> bool {
    let tree = MemoryTree::new(files.iter().copied());
    let mut reader = Reader { tree: &tree, folders: BTreeMap::new() };
    hits(&reader.reach(&source, "https://git/tre"), &[changed.to_owned()])
}

fn at(path: &str) -> Value {
    serde_json::json!({"repoURL": "https://git/tre.git", "path": path})
}

const KUSTOMIZED: [(&str, &str); 6] = [
    ("apps/a/envs/dev/kustomization.yaml", "resources: [../../base]\ncomponents: [../../../../shared/labels]\n"),
    (
        "apps/a/base/kustomization.yaml",
        "resources: [x.yaml]\nconfigMapGenerator: [{name: n, files: [page=../../pages/index.html]}]\n\
         generators: [chart.yaml]\npatches: [{path: ../patches/p.yaml}]\n",
    ),
    ("apps/a/base/chart.yaml", "kind: HelmChartInflationGenerator\nvaluesFile: ../../values/a.yaml\n"),
    ("apps/a/base/x.yaml", "kind: ConfigMap\n"),
    ("shared/labels/kustomization.yaml", "kind: Component\n"),
    ("apps/b/kustomization.yaml", "resources: [x.yaml]\n"),
];

#[test]
fn what_a_kustomization_names_is_read_at_any_depth_and_when_it_is_gone() {
    for path in [
        "apps/a/envs/dev/kustomization.yaml",
        "apps/a/base/x.yaml",
        "apps/a/base/Kustomization",
        "apps/pages/index.html",
        "apps/a/patches/p.yaml",
        "apps/values/a.yaml",
        "shared/labels/kustomization.yaml",
    ] {
        assert!(reads(&KUSTOMIZED, at("apps/a/envs/dev"), path), "{path}");
    }
    for path in ["apps/b/x.yaml", "README.md", "apps/a/envs/prd/kustomization.yaml", "shared/other.yaml", "apps/ab"] {
        assert!(!reads(&KUSTOMIZED, at("apps/a/envs/dev"), path), "{path}");
    }
}

#[test]
fn circles_end() {
    let files = [("a/kustomization.yaml", "resources: [../b]\n"), ("b/kustomization.yaml", "resources: [../a]\n")];
    assert!(reads(&files, at("a"), "b/new.yaml"));
}

#[test]
fn value_files_are_read_wherever_they_are() {
    let files = [("charts/a/Chart.yaml", "name: a\ndependencies: [{name: lib, repository: file://../lib}]\n")];
    let source = serde_json::json!({"repoURL": "https://git/tre.git", "path": "charts/a",
        "helm": {"valueFiles": ["../../values/dev.yaml", "/values/all.yaml"]}});
    for path in ["values/dev.yaml", "values/all.yaml", "charts/lib/templates/x.yaml", "charts/a/templates/y.yaml"] {
        assert!(reads(&files, source.clone(), path), "{path}");
    }
    let several = serde_json::json!([
        {"repoURL": "https://charts.example.org", "chart": "c", "helm": {"valueFiles": ["$values/own/v.yaml"]}},
        {"repoURL": "https://git/tre.git", "ref": "values"},
    ]);
    assert!(reads(&files, several.clone(), "own/v.yaml"));
    assert!(!reads(&files, several, "charts/a/Chart.yaml"));
}

#[test]
fn a_plugin_without_a_kustomization_may_read_anything() {
    let mut source = at("charts/a");
    source["plugin"] = serde_json::json!({"name": "mystery"});
    assert!(reads(&[("charts/a/x.txt", "")], source, "README.md"));
}

#[test]
fn another_repositorys_application_is_not_touched() {
    let source = serde_json::json!({"repoURL": "https://elsewhere/tre.git", "path": "apps/a/envs/dev"});
    assert!(!reads(&KUSTOMIZED, source, "apps/a/base/x.yaml"));
}
