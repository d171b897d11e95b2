use super::*;
use crate::gitops::finding::Severity;
use crate::gitops::testing::{fixture, repository_of, set};
use crate::gitops::tree::MemoryTree;

fn linted(tree: &dyn Tree) -> Vec<String> {
    let findings = lint(&Repository::read(tree).unwrap(), tree);
    findings.iter().map(|f| format!("{:?} {} {}:{} {}", f.severity, f.code, f.file, f.line, f.message)).collect()
}

#[test]
fn the_fixture_has_the_faults_of_the_study() {
    let Some(tree) = fixture("the_fixture_has_the_faults_of_the_study") else { return };
    let findings = lint(&Repository::read(&tree).unwrap(), &tree);
    assert!(findings.iter().all(|f| !f.message.is_empty() && !f.fix.is_empty()), "{findings:#?}");
    let all = linted(&tree).join("\n");
    for said in [
        "Error env-without-kustomization agnostics/external-secrets/envs/prod/.gitkeep:0",
        "Error name-not-unique appsets/agnostics/object-storage.yaml:24",
        "Error name-not-unique appsets/agnostics/storage-class.yaml:24",
        "Error variable-unset agnostics/loadbalancer/k3s/base/ip-address-pool.yaml:7 nothing sets ${METALLB_IP_RANGE}",
        "Warning unusual-environment apps/jupyterhub/envs/prod/kustomization.yaml:0 the environment prod looks like prd",
        "Warning unusual-environment agnostics/cnpg/envs/prod/kustomization.yaml:0",
        "Note environment-missing appsets/observability/observability-metrics.yaml:12 ApplicationSet observability-metrics has no folder for dev, stg",
        "Note unreferenced agnostics/cert-manager/envs/dev/kustomization.yaml:0 no ApplicationSet reaches",
    ] {
        assert!(all.contains(said), "{said}\nis not in\n{all}");
    }
    assert!(!all.contains("EXTERNAL_DOMAIN"), "a variable of the container's own shell\n{all}");
    let not_unique = findings.iter().filter(|f| f.code == "name-not-unique").count();
    assert_eq!(not_unique, 2, "{all}");
    assert!(findings.is_sorted_by_key(|f| f.severity));
}

/// A second is the promise for a release build on an idle machine; this is a debug build beside other tests.
#[test]
fn the_fixture_takes_a_moment() {
    let Some(tree) = fixture("the_fixture_takes_a_moment") else { return };
    let run = || {
        let start = std::time::Instant::now();
        lint(&Repository::read(&tree).unwrap(), &tree);
        start.elapsed()
    };
    let best = (0..3).map(|_| run()).min().unwrap();
    assert!(best.as_secs() < 10, "{best:?}");
}

const SET: &str = "[{matrix: {generators: [{git: {repoURL: 'https://git.example/r', revision: main, directories: [{path: \
                   'apps/a/envs/*'}]}}, {clusters: {selector: {matchLabels: {environment: '{{.path.basename}}'}}}}]}}]";

fn with(files: &[(&str, &str)]) -> MemoryTree<'static> {
    let text = set("a", SET, "a-{{.nameNormalized}}");
    let mut all = vec![("appsets/a.yaml", text.as_str())];
    all.extend(files);
    repository_of(&all)
}

#[test]
fn secrets_that_nothing_makes_are_named_with_who_needs_them() {
    let deployment = "kind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      containers:\n      - env:\n        \
        - valueFrom:\n            secretKeyRef: {name: gone, key: k}\n        - valueFrom:\n            secretKeyRef: {name: maybe, key: k, optional: true}\n      \
        volumes:\n      - secret: {secretName: made}\n";
    let external = "kind: ExternalSecret\nmetadata: {name: e}\nspec:\n  target: {name: made}\n  data:\n  - remoteRef: {key: db, property: user}\n  \
        - remoteRef: {key: db, property: nope}\n  - remoteRef: {key: other}\n";
    let tree = with(&[
        ("apps/a/envs/dev/kustomization.yaml", "resources: [d.yaml, e.yaml]\n"),
        ("apps/a/envs/dev/d.yaml", deployment),
        ("apps/a/envs/dev/e.yaml", external),
        ("ci/ci-secrets.yaml", "secrets:\n- name: db\n  data: [{key: user, value: x}]\n"),
    ]);
    assert_eq!(
        linted(&tree),
        [
            "Error secret-unmade apps/a/envs/dev/d.yaml:9 Deployment web needs the secret \"gone\", which nothing in the repository makes; its pods wait for it",
            "Warning secret-not-listed apps/a/envs/dev/e.yaml:7 ExternalSecret e reads the key \"nope\" of the secret \"db\", which ci/ci-secrets.yaml does not make",
            "Warning secret-not-listed apps/a/envs/dev/e.yaml:8 ExternalSecret e reads the secret \"other\", which ci/ci-secrets.yaml does not make",
        ]
    );
}

#[test]
fn placeholders_dead_files_and_developers_folders() {
    let tree = with(&[
        (
            "apps/a/base/kustomization.yaml",
            "resources: [c.yaml]\nconfigMapGenerator:\n- name: x\n  files: [k=conf.py]\n",
        ),
        (
            "apps/a/base/c.yaml",
            "kind: ConfigMap\nmetadata: {name: c}\n# change-me in a comment\ndata: {p: change-me}\n",
        ),
        ("apps/a/base/conf.py", ""),
        ("apps/a/base/dead.yaml", ""),
        ("apps/a/base/README.md", ""),
        ("apps/a/envs/dev/kustomization.yaml", "resources: [../../base]\n"),
        ("apps/a/envs/dev-alice/kustomization.yaml", "resources: [../dev]\n"),
    ]);
    let findings = linted(&tree);
    let expected = [
        "Warning placeholder apps/a/base/c.yaml:4",
        "Warning developer-folder apps/a/envs/dev-alice/kustomization.yaml:0",
        "Note unreferenced apps/a/base/dead.yaml:0",
    ];
    assert_eq!(findings.len(), 3, "{findings:#?}");
    for said in expected {
        assert!(findings.iter().any(|f| f.starts_with(said)), "{said}\nis not in\n{findings:#?}");
    }
}

#[test]
fn a_clean_repository_has_no_findings() {
    let tree = with(&[("apps/a/envs/dev/kustomization.yaml", "resources: []\n")]);
    assert_eq!(linted(&tree), Vec::<String>::new());
    assert!(Severity::Error < Severity::Note);
}
