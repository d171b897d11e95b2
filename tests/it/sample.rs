//! The sample TRE: its layout, and the repository that it becomes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use k8tre::error::Kind;
use k8tre::ports::git::Checkout;
use k8tre::sample::{SampleOutcome, files, write_sample};

const IMAGES: [&str; 2] = ["quay.io/argoproj/argocd:v3.6.1", "public.ecr.aws/docker/library/redis:8.10.1-alpine"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-tre")
}

/// Every YAML document of the sample, by path.
fn documents() -> Vec<(String, serde_json::Value)> {
    let mut all = Vec::new();
    for (path, content) in files() {
        let name = path.display().to_string();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = std::str::from_utf8(content).unwrap();
            let documents: Vec<serde_json::Value> =
                serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            all.extend(documents.into_iter().map(|document| (name.clone(), document)));
        }
    }
    all
}

fn application_sets() -> Vec<(String, serde_json::Value)> {
    documents().into_iter().filter(|(_, document)| document["kind"] == "ApplicationSet").collect()
}

/// Every string under a key, at any depth.
fn values<'a>(value: &'a serde_json::Value, key: &str, found: &mut Vec<&'a str>) {
    match value {
        serde_json::Value::Object(map) => map.iter().for_each(|(name, inner)| match inner {
            serde_json::Value::String(text) if name == key => found.push(text),
            inner => values(inner, key, found),
        }),
        serde_json::Value::Array(list) => list.iter().for_each(|inner| values(inner, key, found)),
        _ => {}
    }
}

#[test]
fn at_least_five_application_sets_and_each_is_listed() {
    let sets = application_sets();
    assert!(sets.len() >= 5, "{}", sets.len());
    let listed = documents().into_iter().find(|(path, _)| path == "appsets/kustomization.yaml").unwrap().1;
    let listed: BTreeSet<String> = listed["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|path| format!("appsets/{}", path.as_str().unwrap()))
        .collect();
    assert_eq!(sets.into_iter().map(|(path, _)| path).collect::<BTreeSet<_>>(), listed);
}

#[test]
fn one_is_chosen_by_vendor_one_switched_off_by_a_label_and_all_name_their_cluster() {
    let sets = application_sets();
    let text = |set: &serde_json::Value| set.to_string();
    assert!(sets.iter().any(|(_, set)| text(set).contains(r#""vendor":"{{index .path.segments 2}}""#)));
    assert!(sets.iter().any(|(_, set)| text(set).contains(r#""key":"skip-metrics","operator":"NotIn""#)));
    for (path, set) in &sets {
        let name = set["spec"]["template"]["metadata"]["name"].as_str().unwrap();
        assert!(name.ends_with("-{{.nameNormalized}}"), "{path}: one Argo CD could not serve two clusters with {name}");
        assert_eq!(set["spec"]["goTemplateOptions"][0], "missingkey=error", "{path}");
        let (mut addresses, mut revisions) = (Vec::new(), Vec::new());
        values(set, "repoURL", &mut addresses);
        values(set, "targetRevision", &mut revisions);
        values(set, "revision", &mut revisions);
        assert!(addresses.iter().all(|url| *url == "https://example.invalid/tre.git"), "{path}: {addresses:?}");
        assert!(revisions.iter().all(|revision| *revision == "main"), "{path}: {revisions:?}");
    }
}

#[test]
fn every_part_has_dev_stg_and_prd_and_an_application_set_that_finds_them() {
    let sets = application_sets();
    let mut parts = BTreeSet::new();
    for (path, _) in files() {
        let path = path.display().to_string();
        if let Some((part, _)) = path.split_once("/envs/") {
            parts.insert(part.to_owned());
        }
        if let Some((part, _)) = path.split_once("/base/") {
            parts.insert(part.to_owned());
        }
    }
    assert!(parts.len() >= 7, "{parts:?}");
    for part in parts {
        for environment in ["dev", "stg", "prd"] {
            let file = format!("{part}/envs/{environment}/kustomization.yaml");
            assert!(folder().join(&file).is_file(), "{file} is missing");
        }
        let pattern = match part.strip_prefix("agnostics/storage-class/") {
            Some(_) => "agnostics/storage-class/*/envs/".to_owned(),
            None => format!("{part}/envs/"),
        };
        assert!(sets.iter().any(|(_, set)| set.to_string().contains(&pattern)), "nothing looks for {pattern}");
    }
}

#[test]
fn workloads_use_only_images_that_argo_cd_brings_and_are_small_and_safe() {
    let mut workloads = 0;
    for (path, document) in documents() {
        let mut images = Vec::new();
        values(&document, "image", &mut images);
        assert!(images.iter().all(|image| IMAGES.contains(image)), "{path}: {images:?}");
        let pod = &document["spec"]["template"]["spec"];
        let Some(containers) = pod["containers"].as_array() else { continue };
        workloads += 1;
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{path}");
        for container in containers {
            assert_eq!(container["imagePullPolicy"], "IfNotPresent", "{path}");
            assert_eq!(container["readinessProbe"]["periodSeconds"], 1, "{path}");
            assert_eq!(container["resources"]["requests"]["cpu"], "10m", "{path}");
            assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false, "{path}");
        }
    }
    assert!((3..=5).contains(&workloads), "{workloads} workloads");
}

#[test]
fn every_reference_inside_a_kustomization_is_there() {
    for (path, document) in documents() {
        if document["kind"] != "Kustomization" {
            continue;
        }
        let here = folder().join(&path).parent().unwrap().to_owned();
        for resource in document["resources"].as_array().unwrap() {
            let target = here.join(resource.as_str().unwrap());
            assert!(target.is_file() || target.join("kustomization.yaml").is_file(), "{path}: {resource}");
        }
    }
}

#[tokio::test]
async fn it_becomes_a_repository_once_and_edits_stay() {
    let home = tempfile::tempdir().unwrap();
    let target = home.path().join("new/tre");
    let outcome = write_sample(&target).await.unwrap();
    assert!(matches!(outcome, SampleOutcome::Written(_)), "{outcome:?}");
    let checkout = Checkout::open(&target).unwrap();
    assert_eq!(checkout.head_branch().as_deref(), Some("main"));
    assert_eq!(
        checkout.tree(checkout.head().unwrap()).map(|tree| k8tre::gitops::tree::Tree::paths(&tree).len()).unwrap(),
        files().len()
    );
    assert_eq!(checkout.dirty().await.unwrap(), Default::default());
    checkout.identity().await.unwrap();

    std::fs::write(target.join("README.md"), "mine\n").unwrap();
    let head = checkout.head().unwrap();
    assert_eq!(write_sample(&target).await.unwrap(), SampleOutcome::Kept);
    assert_eq!(std::fs::read_to_string(target.join("README.md")).unwrap(), "mine\n");
    assert_eq!(checkout.head().unwrap(), head);
}

#[tokio::test]
async fn an_empty_folder_is_used_and_anything_else_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let empty = home.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    assert!(matches!(write_sample(&empty).await.unwrap(), SampleOutcome::Written(_)));

    let full = home.path().join("full");
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("thesis.txt"), "years of work").unwrap();
    let file = full.join("thesis.txt");
    for target in [&full, &file] {
        let error = write_sample(target).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Usage, "{error}");
    }
    assert_eq!(std::fs::read_dir(&full).unwrap().count(), 1);
}

#[tokio::test]
async fn what_a_killed_run_left_is_removed_and_a_run_under_way_is_not() {
    let home = tempfile::tempdir().unwrap();
    for (name, age) in [(".k8tre-sample-old", 3600), (".k8tre-sample-new", 0)] {
        let folder = home.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let changed = std::time::SystemTime::now() - std::time::Duration::from_secs(age);
        std::fs::File::open(&folder).unwrap().set_modified(changed).unwrap();
    }
    for name in [".k8tre-sample-killed", ".k8tre-sample-working"] {
        std::fs::create_dir_all(home.path().join(name).join("tre")).unwrap();
    }
    let working = std::fs::File::open(home.path().join(".k8tre-sample-working")).unwrap();
    working.lock().unwrap();
    write_sample(&home.path().join("tre")).await.unwrap();
    let mut left: Vec<_> = std::fs::read_dir(home.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, [".k8tre-sample-new", ".k8tre-sample-working", "tre"]);
}
