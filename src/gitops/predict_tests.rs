use super::*;
use crate::gitops::testing::{fixture, many, repository_of, set};
use crate::gitops::tree::MemoryTree;

fn cluster(name: &str, labels: &[(&str, &str)]) -> Cluster {
    Cluster {
        name: name.into(),
        server: if name == "in-cluster" {
            "https://kubernetes.default.svc".into()
        } else {
            format!("https://{name}:6443")
        },
        labels: labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
        annotations: BTreeMap::from([("note".into(), "n".into())]),
    }
}

fn predicted(files: &[(&str, &str)], clusters: &[Cluster]) -> Prediction {
    let tree = repository_of(files);
    predict(&Repository::read(&tree).unwrap(), &tree, clusters)
}

fn names(prediction: &Prediction) -> Vec<&str> {
    prediction.applications.iter().map(|app| &*app.name).collect()
}

fn reasons(prediction: &Prediction) -> String {
    prediction.excluded.iter().map(|e| format!("{}: {}\n", e.application_set, e.reason)).collect()
}

#[test]
fn the_fixture_gives_the_applications_of_main() {
    let Some(tree) = fixture("the_fixture_gives_the_applications_of_main") else { return };
    let labels = [
        ("environment", "dev"),
        ("vendor", "k3s"),
        ("secret-store", "kubernetes"),
        ("external-dns", "k3s"),
        ("external-domain", "x.org"),
    ];
    let repository = Repository::read(&tree).unwrap();
    assert_eq!(repository.application_sets.len(), 21);
    let prediction = predict(&repository, &tree, &[cluster("alpha", &labels)]);
    assert_eq!(
        names(&prediction),
        [
            "ad-alpha",
            "backend-alpha",
            "cert-manager-alpha",
            "cnpg-alpha",
            "cr8tor-alpha",
            "external-secrets-alpha",
            "externaldns-alpha",
            "gateway-alpha",
            "gitea-alpha",
            "guacamole-alpha",
            "jupyterhub-alpha",
            "kare-dns-alpha",
            "keycloak-alpha",
            "loadbalancer-alpha",
            "nginx-alpha",
            "object-storage-k3s-dev",
            "secret-store-alpha",
            "storage-k3s-dev",
        ]
    );
    insta::assert_snapshot!(reasons(&prediction), @r"
    cluster-autoscaler: no folder is for vendor=k3s of cluster alpha (there is: aws)
    default-network-policy: no folder is for vendor=k3s of cluster alpha (there is: aws)
    observability-metrics: no folder is for environment=dev of cluster alpha (there is: prd)
    ");
    assert_eq!(prediction.findings, []);
    let gateway = prediction.applications.iter().find(|app| &*app.name == "gateway-alpha").unwrap();
    assert_eq!((&*gateway.path, &*gateway.namespace), ("agnostics/gateway/k3s/envs/dev", "gateway"));
    assert_eq!(gateway.plugin.as_deref(), Some("kustomize-with-envsubst-v1.0"));
    assert_eq!(gateway.source.value()["plugin"]["env"][1]["value"], "x.org");
}

#[test]
fn labels_that_hide_or_lack_are_named() {
    let Some(tree) = fixture("labels_that_hide_or_lack_are_named") else { return };
    let labels = [("environment", "dev"), ("vendor", "k3s"), ("skip-nginx", "true"), ("external-dns", "route53")];
    let prediction = predict(&Repository::read(&tree).unwrap(), &tree, &[cluster("alpha", &labels)]);
    let reasons = reasons(&prediction);
    for said in [
        "nginx: the label skip-nginx=true of cluster alpha switches it off",
        "secret-store: cluster alpha has no label secret-store (there are folders for: aws, kubernetes)",
        "external-dns: no folder is for external-dns=route53 of cluster alpha (there is: aws, azure, k3s)",
    ] {
        assert!(reasons.contains(said), "{reasons}");
    }
    let none = predict(&Repository::read(&tree).unwrap(), &tree, &[]);
    assert!(none.applications.is_empty() && none.excluded.iter().all(|e| e.reason == "no cluster is registered"));
}

#[test]
fn two_clusters_clash_where_the_name_says_nothing_of_them() {
    let Some(tree) = fixture("two_clusters_clash_where_the_name_says_nothing_of_them") else { return };
    let labels = [("environment", "dev"), ("vendor", "k3s")];
    let clusters = [cluster("a", &labels), cluster("b", &labels)];
    let prediction = predict(&Repository::read(&tree).unwrap(), &tree, &clusters);
    let clashing: Vec<_> = prediction.findings.iter().map(|f| (f.code, f.file.as_str(), f.line)).collect();
    assert_eq!(
        clashing,
        [
            ("name-not-unique", "appsets/agnostics/storage-class.yaml", 24),
            ("name-not-unique", "appsets/agnostics/object-storage.yaml", 24),
        ]
    );
    assert!(!names(&prediction).contains(&"storage-k3s-dev"));
}

/// One example of one's own for every kind of generator.
#[test]
fn every_kind_of_generator() {
    let clusters = [cluster("a", &[("env", "dev"), ("tier", "1")]), cluster("B_2", &[("env", "prd")])];
    let files = [
        ("x/p/dev/k.yaml", ""),
        ("x/q/dev/k.yaml", ""),
        ("x/q/.hid/k.yaml", ""),
        ("x/q/old/k.yaml", ""),
        ("cfg/one.yaml", "team: t1\nport: 8080\n"),
        ("cfg/two.json", "[{\"team\": \"t2\"}, {\"team\": \"t3\"}]"),
    ];
    for (generators, name, expected) in [
        (
            "[{git: {repoURL: R, revision: main, directories: [{path: 'x/*/*'}, {path: 'x/*/old', exclude: true}]}}]",
            "{{index .path.segments 1}}-{{.path.basename}}",
            "p-dev q-dev",
        ),
        (
            "[{git: {repoURL: R, revision: main, pathParamPrefix: z, directories: [{path: x/p/*}], values: {v: '{{.z.path.basename}}!'}}}]",
            "{{.z.path.path | normalize}}-{{.values.v | trimSuffix \"!\"}}",
            "x-p-dev-dev",
        ),
        (
            "[{git: {repoURL: R, revision: main, files: [{path: cfg/*}, {path: cfg/two.json, exclude: true}]}}]",
            "{{.team}}-{{.port}}-{{.path.basename}}-{{.path.filenameNormalized}}",
            "t1-8080-cfg-one.yaml",
        ),
        ("[{git: {repoURL: R, revision: main, files: [{path: 'cfg/*.json'}]}}]", "{{.team}}", "t2 t3"),
        ("[{clusters: {}}]", "{{.nameNormalized}}-{{index .metadata.labels \"env\"}}", "a-dev b-2-prd in-cluster-err"),
        (
            "[{clusters: {selector: {matchExpressions: [{key: tier, operator: Exists}]}, values: {k: '{{.name}}9'}}}]",
            "{{.values.k}}-{{.metadata.annotations.note}}",
            "a9-n",
        ),
        (
            "[{clusters: {flatList: true, selector: {matchLabels: {env: dev}}}}]",
            "{{range .clusters}}{{.name}}{{index .metadata.labels \"nope\"}}{{end}}-all",
            "a-all",
        ),
        (
            "[{list: {elements: [{n: u, k: {d: 1}}, {n: v, k: {d: 2}}]}, selector: {matchLabels: {k.d: '2'}}}]",
            "{{.n}}",
            "v",
        ),
        ("[{list: {elementsYaml: '[{id: w}]'}}, {list: {elements: [{id: x}]}}]", "{{.id}}", "w x"),
        (
            "[{matrix: {generators: [{list: {elements: [{e: dev}, {e: prd}]}}, {clusters: {selector: {matchLabels: {env: '{{.e}}'}}, values: {o: '{{.e}}', l: '{{.name}}'}}}]}}]",
            "{{.nameNormalized}}-{{.values.l | lower | replace \"_\" \"\"}}{{.values.o}}",
            "a-adev b-2-b2prd",
        ),
        (
            "[{matrix: {generators: [{clusters: {selector: {matchLabels: {env: dev}}}}, {matrix: {generators: [{list: {elements: [{s: s1}, {s: s2}]}}, {git: {repoURL: R, revision: main, directories: [{path: 'x/*/{{.metadata.labels.env}}'}]}}]}}]}}]",
            "{{.name}}-{{.s}}-{{index .path.segments 1}}",
            "a-s1-p a-s1-q a-s2-p a-s2-q",
        ),
        (
            "[{merge: {mergeKeys: [name], generators: [{clusters: {values: {c: blue}}}, {list: {elements: [{name: a, nameNormalized: red}, {name: zz}]}}]}}]",
            "{{.nameNormalized}}-{{.values.c}}",
            "b-2-blue in-cluster-blue red-blue",
        ),
        (
            "[{list: {elements: [{n: t}], template: {metadata: {name: 'own-{{.n}}', labels: {}}, spec: {}}}}]",
            "base-{{.n}}",
            "own-t",
        ),
    ] {
        let text = set("s", generators, name).replace("repoURL: R", "repoURL: https://git.example/r.git");
        let mut all = files.to_vec();
        all.push(("appsets/s.yaml", &text));
        let mut given = clusters.to_vec();
        if expected.contains("in-cluster-err") {
            // Without a Secret the local cluster has no metadata, so that a strict template fails on it.
            let prediction = predicted(&all, &given);
            assert!(prediction.excluded[0].reason.contains("no value \"metadata\""), "{:?}", prediction.excluded);
            given.push(cluster("in-cluster", &[("env", "err")]));
        }
        let prediction = predicted(&all, &given);
        assert_eq!(
            names(&prediction).join(" "),
            expected,
            "{generators}\n{:#?}",
            (prediction.excluded, prediction.findings)
        );
    }
}

#[test]
fn the_older_templates_work_on_flat_names() {
    let text = set("s", "[{matrix: {generators: [{git: {repoURL: 'git@git.example:r.git', revision: main, directories: [{path: x/*}]}}, {clusters: {selector: {matchLabels: {env: '{{path.basename}}'}}}}]}}]",
        "{{path[1]}}-{{metadata.labels.env}}-{{name}}-{{nope}}")
        .replace("goTemplate: true", "goTemplate: false").replace("{{nope}}", "x");
    let prediction = predicted(&[("x/dev/k", ""), ("appsets/s.yaml", &text)], &[cluster("a", &[("env", "dev")])]);
    // The address is written in another form, and that of the root Application is https: another repository.
    assert!(prediction.excluded[0].unpredictable, "{:?}", prediction.excluded);
    let text = text.replace("git@git.example:r.git", "https://git.example/R");
    let prediction = predicted(&[("x/dev/k", ""), ("appsets/s.yaml", &text)], &[cluster("a", &[("env", "dev")])]);
    assert_eq!(names(&prediction), ["dev-dev-a-x"]);
}

#[test]
fn a_template_patch_changes_all_but_the_project() {
    let text = set("s", "[{list: {elements: [{n: a, prune: true}, {n: b}]}}]", "{{.n}}")
        .replace("goTemplateOptions: [missingkey=error]", "goTemplateOptions: []")
        + "  templatePatch: |\n    spec:\n      project: other\n      source: {path: 'p/{{.n}}'}\n    {{- if .prune }}\n      syncPolicy:\n        syncOptions: [X=true]\n    {{- end }}\n";
    let prediction = predicted(&[("appsets/s.yaml", &text)], &[]);
    let found: Vec<_> =
        prediction.applications.iter().map(|a| (&*a.name, &*a.path, &*a.project, a.sync_options.len())).collect();
    assert_eq!(found, [("a", "p/a", "default", 1), ("b", "p/b", "default", 0)], "{:?}", prediction.excluded);
}

#[test]
fn mistakes_are_findings_with_file_and_line() {
    let strict = set("s", "[{clusters: {}}]", "{{.metadata.labels.region}}");
    let prediction = predicted(&[("appsets/s.yaml", &strict)], &[cluster("in-cluster", &[])]);
    let finding = &prediction.findings[0];
    assert_eq!((finding.code, finding.file.as_str(), finding.line), ("render-error", "appsets/s.yaml", 9));
    assert!(finding.message.contains("there is no value \"region\""), "{finding:?}");
    let long = set("s", "[{list: {elements: [{n: a}]}}]", &format!("{}{{{{.n}}}}", "x".repeat(63)));
    let prediction = predicted(&[("appsets/s.yaml", &long)], &[]);
    assert_eq!(prediction.findings[0].code, "name-unusual");
    let bad = set("s", "[{clusters: {selector: {matchLabels: {a: b/c}}}}]", "x");
    let prediction = predicted(&[("appsets/s.yaml", &bad)], &[]);
    assert!(prediction.findings[0].message.contains("cannot be the value of a label"), "{:?}", prediction.findings);
    let away =
        set("s", "[{list: {elements: [{n: a}]}}]", "{{.n}}").replace("https://kubernetes.default.svc", "https://gone");
    let prediction = predicted(&[("appsets/s.yaml", &away)], &[]);
    assert_eq!((prediction.applications.len(), prediction.findings[0].code), (0, "destination-unknown"));
    let first = set("s", "[{list: {elements: [{n: a}]}}]", "{{.n}}");
    let second = set("t", "[{list: {elements: [{n: a}]}}]", "{{.n}}");
    let prediction = predicted(&[("appsets/s.yaml", &first), ("appsets/t.yaml", &second)], &[]);
    assert_eq!(prediction.findings[0].code, "name-clash");
    let request = set("s", "[{pullRequest: {github: {}}}]", "x");
    let prediction = predicted(&[("appsets/s.yaml", &request)], &[]);
    assert!(prediction.excluded[0].unpredictable);
}

/// Four times the ApplicationSets may take four times as long, and not sixteen. The best of three runs counts, since
/// other tests run beside this one.
/// Time that this thread has had of a processor: what others do on the machine does not count.
fn worked() -> std::time::Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    std::time::Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[test]
fn time_grows_linearly_with_the_repository() {
    let clusters: Vec<Cluster> =
        (0..20).map(|n| cluster(&format!("c{n}"), &[("env", ["dev", "stg", "prd"][n % 3])])).collect();
    let best = |sets: usize| {
        let tree = MemoryTree::new(many(sets).into_iter().map(|(path, text)| (path, text.into_bytes())));
        let run = || {
            let start = worked();
            let prediction = predict(&Repository::read(&tree).unwrap(), &tree, &clusters);
            assert_eq!(prediction.applications.len(), sets * clusters.len());
            worked() - start
        };
        (0..3).map(|_| run()).min().unwrap()
    };
    let (small, large) = (best(25), best(100));
    assert!(large < small * 10, "{small:?} for 25 sets, {large:?} for 100");
}
