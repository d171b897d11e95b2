//! Every kind of generator and template, against what the real controller of Argo CD made of them, as the end-to-end
//! test `prediction` has recorded it.

use std::path::PathBuf;

use k8tre::gitops::predict::{Cluster, predict};
use k8tre::gitops::repository::Repository;
use k8tre::gitops::tree::FolderTree;

use crate::made::{All, Predicted};

#[test]
fn the_prediction_is_what_the_real_controller_made() {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/generators"));
    let read = |file: &str| std::fs::read(folder.join(file)).unwrap();
    let clusters: Vec<Cluster> = serde_json::from_slice(&read("clusters.json")).unwrap();
    let recorded: All = serde_json::from_slice(&read("expected.json")).unwrap();
    let tree = FolderTree::open(&folder.join("repository")).unwrap();
    let repository = Repository::read(&tree).unwrap();
    let prediction = predict(&repository, &tree, &clusters);
    let names = repository.application_sets.iter().map(|set| set.name.as_str());
    let predicted = Predicted::new(names, &prediction);
    assert_eq!(predicted.clashing.iter().collect::<Vec<_>>(), ["re-clash-a"]);
    assert_eq!(predicted.open.iter().collect::<Vec<_>>(), ["te-open-now", "te-open-semver", "te-open-tpl"]);
    let differences = predicted.differences(&recorded);
    let count = (differences.len(), recorded.len());
    assert!(differences.is_empty(), "{count:?} ApplicationSets differ:\n{}", differences.join("\n"));
}
