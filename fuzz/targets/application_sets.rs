//! A repository's ApplicationSets, Kustomizations and parameter files: predicted, checked and overlaid, or refused.
#![no_main]

use k8tre::gitops::overlay::{OverlaySpec, predict_environment};
use k8tre::gitops::predict::{Cluster, predict};
use k8tre::gitops::repository::Repository;
use k8tre::gitops::tree::MemoryTree;

const ROOT: &str = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: root}\nspec:\n  source: \
                    {repoURL: 'https://git.example/r.git', targetRevision: main, path: appsets}\n";

#[derive(arbitrary::Arbitrary, Debug)]
struct Files<'a> {
    set: &'a str,
    kustomization: Option<&'a str>,
    parameters: &'a str,
    path: &'a str,
}

libfuzzer_sys::fuzz_target!(|files: Files| {
    let mut all = vec![
        ("app_of_apps/root-app-of-apps.yaml", ROOT),
        ("appsets/a.yaml", files.set),
        ("x/dev/config.json", files.parameters),
        (files.path, files.parameters),
    ];
    all.extend(files.kustomization.map(|text| ("appsets/kustomization.yaml", text)));
    let tree = MemoryTree::new(all);
    let Ok(repository) = Repository::read(&tree) else { return };
    let labels = [("environment".to_owned(), "dev".to_owned())].into();
    let cluster = Cluster { name: "c".into(), server: "https://c".into(), labels, ..Cluster::default() };
    let _ = predict(&repository, &tree, &[cluster]);
    let _ = k8tre::gitops::lint::lint(&repository, &tree);
    let spec = OverlaySpec::new("alice".parse().expect("a name"), "git://k8tre-git/tre.git");
    let _ = predict_environment(&repository, &tree, &spec);
});
