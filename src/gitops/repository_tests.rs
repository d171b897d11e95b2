use super::*;
use crate::gitops::testing::{repository_of, set};
use crate::gitops::tree::MemoryTree;
use proptest::prelude::*;

fn plain(name: &str) -> String {
    set(name, "[{list: {elements: [{n: a}]}}]", "{{.n}}")
}

fn read(files: &[(&str, &str)]) -> Result<Repository> {
    Repository::read(&repository_of(files))
}

fn names(repository: &Repository) -> Vec<&str> {
    repository.application_sets.iter().map(|set| set.name.as_str()).collect()
}

#[test]
fn resources_nest_and_files_hold_several_documents() {
    let two = format!("{}---\n{}---\nkind: AppProject\nmetadata: {{name: p}}\n", plain("a"), plain("b"));
    let repository = read(&[
        ("appsets/kustomization.yaml", "resources: [deep/er, two.yaml]\nnamePrefix: x-\n"),
        ("appsets/two.yaml", &two),
        ("appsets/not-listed.yaml", &plain("no")),
        ("appsets/deep/er/kustomization.yml", "resources: [../c.yaml]\nnameSuffix: -y\n"),
        ("appsets/deep/c.yaml", &plain("c")),
    ])
    .unwrap();
    assert_eq!(names(&repository), ["x-c-y", "x-a", "x-b"]);
}

#[test]
fn a_folder_without_kustomization_is_read_file_by_file() {
    let repository = read(&[("appsets/a.yaml", &plain("a")), ("appsets/deep/b.yaml", &plain("b"))]).unwrap();
    assert_eq!(names(&repository), ["a"]);
}

#[test]
fn patches_apply_to_what_they_mean() {
    let kustomization = "resources: [a.yaml, b.yaml]\npatches:\n- target: {kind: ApplicationSet, name: a.*}\n  patch: |-\n    \
        - {op: replace, path: /spec/template/spec/project, value: json}\n- path: merge.yaml\n";
    let merge = "kind: ApplicationSet\nmetadata: {name: b}\nspec: {template: {spec: {project: merged}}}\n";
    let files = [
        ("appsets/kustomization.yaml", kustomization),
        ("appsets/merge.yaml", merge),
        ("appsets/a.yaml", &plain("ab")),
        ("appsets/b.yaml", &plain("b")),
    ];
    let repository = read(&files).unwrap();
    let projects: Vec<_> = repository.application_sets.iter().map(|s| &s.spec.template["spec"]["project"]).collect();
    assert_eq!(projects, ["json", "merged"]);
}

#[test]
fn what_is_not_followed_is_a_finding() {
    let kustomization = "resources:\n- a.yaml\n- https://example.org/x?ref=v1\nreplacements:\n- path: c\n";
    let repository = read(&[("appsets/kustomization.yaml", kustomization), ("appsets/a.yaml", &plain("a"))]).unwrap();
    let found: Vec<_> = repository.findings.iter().map(|f| (f.code, f.line)).collect();
    assert_eq!(found, [("remote-resource", 3), ("kustomize-not-followed", 5)]);
}

#[test]
fn broken_repositories_are_refused_with_file_and_line() {
    let a = plain("a");
    for (files, said) in [
        (vec![], "there is no folder appsets"),
        (vec![("appsets/kustomization.yaml", "resources: []\n")], "where no ApplicationSet is"),
        (
            vec![("appsets/kustomization.yaml", "resources:\n- gone.yaml\n")],
            "appsets/kustomization.yaml:2: there is no file",
        ),
        (
            vec![("appsets/kustomization.yaml", "resources:\n- ../../out\n")],
            "appsets/kustomization.yaml:2: ../../out leads out",
        ),
        (vec![("appsets/kustomization.yaml", "resources: [../appsets]\n")], "includes itself"),
        (vec![("appsets/a.yaml", "kind: ApplicationSet\nspec: [\n")], "appsets/a.yaml:"),
        (
            vec![("appsets/a.yaml", a.as_str()), ("appsets/b.yaml", a.as_str())],
            "appsets/b.yaml:3: ApplicationSet a is already in appsets/a.yaml",
        ),
        (
            vec![
                (
                    "appsets/kustomization.yaml",
                    "resources: [a.yaml]\npatches:\n- target: {name: a}\n  patch: '[{op: remove, path: /spec/nope}]'\n",
                ),
                ("appsets/a.yaml", a.as_str()),
            ],
            "appsets/kustomization.yaml:3: the patch does not fit a (appsets/a.yaml)",
        ),
        (
            vec![("app_of_apps/root-app-of-apps.yaml", "kind: Application\nspec:\n  source: {path: x}\n")],
            "root-app-of-apps.yaml:3: the root Application has no spec.source.repoURL",
        ),
    ] {
        let error = read(&files).unwrap_err();
        assert!(error.to_string().contains(said), "{error:?}\nis not: {said}");
    }
    let error = Repository::read(&MemoryTree::new([("README.md", "")])).unwrap_err();
    assert!(error.to_string().contains("this is no TRE repository"), "{error}");
    assert!(!error.hints().is_empty());
}

proptest! {
    /// Any damage to an ApplicationSet is an error or another prediction, and never a panic.
    #[test]
    fn no_damage_panics(cut in 0usize..900, length in 0usize..40, put in "[-a{}\\[\\]&*!|>'\":%@,. \n0-9~]{0,12}") {
        let generators = "[{matrix: {generators: [{git: {repoURL: 'https://git.example/r', revision: main, directories: [{path: 'x/*'}]}}, \
            {clusters: {selector: {matchLabels: {e: '{{.path.basename}}'}}, values: {v: '{{.name}}'}}}]}, selector: {matchLabels: {name: c}}}]";
        let text = set("a", generators, "{{.values.v | normalize}}");
        let (cut, end) = (cut.min(text.len()), (cut + length).min(text.len()));
        let damaged = format!("{}{put}{}", &text[..cut], &text[end.max(cut)..]);
        let tree = repository_of(&[("appsets/a.yaml", &damaged), ("x/dev/k", "")]);
        if let Ok(repository) = Repository::read(&tree) {
            let labels = [("e".to_owned(), "dev".to_owned())].into();
            let cluster = crate::gitops::predict::Cluster { name: "c".into(), server: "s".into(), labels, ..Default::default() };
            let _ = crate::gitops::predict::predict(&repository, &tree, &[cluster]);
            let _ = crate::gitops::lint::lint(&repository, &tree);
            let spec = crate::gitops::overlay::OverlaySpec::new("al".parse().unwrap(), "git://x/y");
            let _ = crate::gitops::overlay::predict_environment(&repository, &tree, &spec);
        }
    }
}
