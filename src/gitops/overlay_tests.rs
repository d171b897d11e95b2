use super::*;
use crate::gitops::predict::clashes_between;
use crate::gitops::testing::{fixture, kustomize_build, repository_of, set};
use crate::gitops::yaml;

const REPO: &str = "git://git.argocd.svc/repo.git";

fn spec(name: &str, labels: &[(&str, &str)]) -> OverlaySpec {
    let mut spec = OverlaySpec::new(name.parse().unwrap(), REPO);
    spec.labels = labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    spec
}

fn alice() -> OverlaySpec {
    let labels =
        [("vendor", "k3s"), ("secret-store", "kubernetes"), ("external-domain", "x.org"), ("skip-nginx", "true")];
    spec("alice", &labels)
}

fn names(prediction: &Prediction) -> Vec<&str> {
    prediction.applications.iter().map(|app| &*app.name).collect()
}

/// As seen on a real cluster with a real Argo CD.
const OF_ALICE: [&str; 16] = [
    "ad-in-cluster",
    "backend-in-cluster",
    "cert-manager-in-cluster",
    "cnpg-in-cluster",
    "cr8tor-in-cluster",
    "external-secrets-in-cluster",
    "gateway-in-cluster",
    "gitea-in-cluster",
    "guacamole-in-cluster",
    "jupyterhub-in-cluster",
    "kare-dns-in-cluster",
    "keycloak-in-cluster",
    "loadbalancer-in-cluster",
    "object-storage-k3s-dev-alice",
    "secret-store-in-cluster",
    "storage-k3s-dev-alice",
];

#[test]
fn alice_gets_the_sixteen_applications_of_the_real_argo_cd() {
    let Some(tree) = fixture("alice_gets_the_sixteen_applications_of_the_real_argo_cd") else { return };
    let repository = Repository::read(&tree).unwrap();
    let prediction = predict_environment(&repository, &tree, &alice()).unwrap();
    assert_eq!(names(&prediction), OF_ALICE);
    assert_eq!(prediction.findings, []);
    for app in &prediction.applications {
        assert_eq!((&*app.project, &*app.repo_url, &*app.revision), ("dev-alice", REPO, "dev/alice"), "{app:?}");
        assert!(app.path.ends_with("/envs/dev-alice"), "{app:?}");
    }
    let reasons: String =
        prediction.excluded.iter().map(|e| format!("{}: {}\n", e.application_set, e.reason)).collect();
    insta::assert_snapshot!(reasons, @r"
    cluster-autoscaler-alice: no folder is for environment=dev-alice of cluster in-cluster (there is: dev, prd, stg); no folder is for vendor=k3s of cluster in-cluster (there is: aws)
    default-network-policy-alice: no folder is for environment=dev-alice of cluster in-cluster (there is: dev, prd, stg); no folder is for vendor=k3s of cluster in-cluster (there is: aws)
    external-dns-alice: no folder is for environment=dev-alice of cluster in-cluster (there is: dev, prd, stg); cluster in-cluster has no label external-dns (there are folders for: aws, azure, k3s)
    nginx-alice: the label skip-nginx=true of cluster in-cluster switches it off
    observability-metrics-alice: no folder is for environment=dev-alice of cluster in-cluster (there is: prd)
    ");
}

/// The branch that this makes, built by the real kustomize, is the patched model to the last field of its generators.
#[test]
fn kustomize_builds_what_the_model_says() {
    let Some(tree) = fixture("kustomize_builds_what_the_model_says") else { return };
    let repository = Repository::read(&tree).unwrap();
    let spec = alice();
    let overlay = overlay(&repository, &tree, &spec).unwrap();
    let branch = overlay.tree(&tree);
    let Some(built) = kustomize_build("kustomize_builds_what_the_model_says", &branch, &spec.folder()) else { return };
    let objects: Vec<Value> =
        yaml::documents("built", built.as_bytes()).unwrap().into_iter().map(|d| d.value).collect();
    let named = |kind: &str, name: &str| {
        objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
    };
    assert_eq!(named("AppProject", "dev-alice"), Some(&overlay.app_project));
    let model = overlay.read(&branch).unwrap();
    assert_eq!((model.application_sets.len(), objects.len()), (21, 22));
    for set in &model.application_sets {
        let object = named("ApplicationSet", &set.name).expect(&set.name);
        assert_eq!(object["spec"], set.value["spec"], "{}", set.name);
    }
}

#[test]
fn a_stable_environment_and_two_developers_do_not_meet() {
    let Some(tree) = fixture("a_stable_environment_and_two_developers_do_not_meet") else { return };
    let repository = Repository::read(&tree).unwrap();
    let labels = [("vendor", "k3s"), ("secret-store", "kubernetes"), ("external-domain", "x.org")];
    let mut specs = [spec("alice", &labels), spec("bob", &labels)];
    for spec in &mut specs {
        spec.cluster = format!("kind-{}", spec.name);
        spec.server = format!("https://{}:6443", spec.name);
    }
    let mut stable: BTreeMap<String, String> = labels.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    stable.insert("environment".into(), "dev".into());
    let mut clusters: Vec<Cluster> = specs.iter().map(|spec| spec.cluster().unwrap()).collect();
    clusters.push(Cluster {
        name: "stable".into(),
        server: "https://s:6443".into(),
        labels: stable,
        ..Cluster::default()
    });
    // Every set of ApplicationSets sees every cluster, as on one Argo CD.
    let mut seen = BTreeMap::new();
    for app in predict(&repository, &tree, &clusters).applications {
        assert_eq!(&*app.server, "https://s:6443");
        assert_eq!(seen.insert(app.name.to_string(), "main".to_owned()), None);
    }
    for spec in &specs {
        let overlay = overlay(&repository, &tree, spec).unwrap();
        let branch = overlay.tree(&tree);
        let model = overlay.read(&branch).unwrap();
        for app in predict(&model, &branch, &clusters).applications {
            assert_eq!(app.server.to_string(), spec.server);
            assert_eq!(seen.insert(app.name.to_string(), spec.name.to_string()), None, "{app:?}");
        }
    }
    assert_eq!(seen.len(), 17 * 3);
    let main = predict(&repository, &tree, &clusters);
    assert_eq!(clashes_between(&main, &main, &repository).len(), 17);
}

#[test]
fn only_and_skip_decide_which_folders_exist() {
    let Some(tree) = fixture("only_and_skip_decide_which_folders_exist") else { return };
    let repository = Repository::read(&tree).unwrap();
    let mut spec = alice();
    spec.only = vec!["backend".into(), "cert-manager".into(), "keycloak-appset".into(), "gitea".into()];
    spec.skip = vec!["gitea".into()];
    let prediction = predict_environment(&repository, &tree, &spec).unwrap();
    assert_eq!(names(&prediction), ["backend-in-cluster", "cert-manager-in-cluster", "keycloak-in-cluster"]);
    spec.skip = vec!["gitae".into()];
    let error = overlay(&repository, &tree, &spec).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.hints()[0].contains("gitea"), "{error:?}");
}

#[test]
fn folders_that_the_developer_has_are_kept() {
    let Some(tree) = fixture("folders_that_the_developer_has_are_kept") else { return };
    let own = "apps/backend/envs/dev-alice/kustomization.yaml";
    let tree = MemoryTree::over(&tree, [(own, "resources: [../dev]\nnamePrefix: mine-\n")]);
    let overlay = overlay(&Repository::read(&tree).unwrap(), &tree, &alice()).unwrap();
    assert!(!overlay.files.contains_key(own));
    assert!(overlay.files.contains_key("apps/keycloak/envs/dev-alice/kustomization.yaml"));
}

#[test]
fn every_cluster_generator_wants_the_developer_wherever_it_nests() {
    let git = "git: {repoURL: 'https://git.example/r.git', revision: main, directories: [{path: 'apps/a/envs/*'}]}";
    let other = "git: {repoURL: 'https://git.example/other', revision: v1, directories: [{path: x}]}";
    let generators = format!(
        "[{{clusters: {{}}}}, {{clusters: {{selector: {{matchExpressions: [{{key: a, operator: Exists}}]}}}}}}, \
         {{matrix: {{generators: [{{{git}}}, {{merge: {{mergeKeys: [name], generators: [{{clusters: {{selector: {{matchLabels: \
         {{environment: '{{{{.path.basename}}}}'}}}}}}}}, {{list: {{elements: []}}}}]}}}}]}}}}, {{{other}}}]"
    );
    let text = set("s", &generators, "{{.name}}").replace(
        "source: {repoURL: 'https://git.example/r.git', targetRevision: main, path: p}",
        "sources: [{repoURL: 'https://GIT.example/r', path: p}, {repoURL: 'https://charts.example', chart: c}]",
    );
    let tree = repository_of(&[("appsets/s.yaml", &text), ("apps/a/envs/dev/kustomization.yaml", "")]);
    let repository = Repository::read(&tree).unwrap();
    let overlay = overlay(&repository, &tree, &spec("alice", &[])).unwrap();
    let branch = overlay.tree(&tree);
    let model = overlay.read(&branch).unwrap();
    let value = &model.application_sets[0].value["spec"];
    let generators = &value["generators"];
    let developer = json!({"developer": "alice"});
    assert_eq!(generators[0]["clusters"]["selector"]["matchLabels"], developer);
    assert_eq!(generators[1]["clusters"]["selector"]["matchLabels"], developer);
    let merge = &generators[2]["matrix"]["generators"][1]["merge"]["generators"];
    assert_eq!(merge[0]["clusters"]["selector"]["matchLabels"]["developer"], "alice");
    assert_eq!(merge[0]["clusters"]["selector"]["matchLabels"]["environment"], "{{.path.basename}}");
    let git = &generators[2]["matrix"]["generators"][0]["git"];
    assert_eq!((&git["repoURL"], &git["revision"]), (&json!(REPO), &json!("dev/alice")));
    assert_eq!(generators[3]["git"]["revision"], "v1", "another repository stays as it is");
    let sources = &value["template"]["spec"]["sources"];
    assert_eq!((&sources[0]["repoURL"], &sources[0]["targetRevision"]), (&json!(REPO), &json!("dev/alice")));
    assert_eq!(sources[1]["repoURL"], "https://charts.example");
    assert_eq!(overlay.app_project["spec"]["sourceRepos"], json!([REPO, "https://charts.example"]));
    assert_eq!(value["template"]["spec"]["project"], "dev-alice");
    assert_eq!(model.application_sets[0].name, "s-alice");
}

/// The other order: the clusters first, and their environment in the folder's pattern.
#[test]
fn folders_of_clusters_first_matrices_are_made_too() {
    let generators = "[{matrix: {generators: [{clusters: {selector: {matchExpressions: [{key: environment, operator: Exists}]}}}, \
        {git: {repoURL: 'https://git.example/r', revision: main, directories: [{path: 'apps/*/envs/{{.metadata.labels.environment}}'}]}}]}}]";
    let files = "[{matrix: {generators: [{git: {repoURL: 'https://git.example/r', revision: main, files: [{path: 'conf/*/envs/*/c.yaml'}]}}, \
        {clusters: {selector: {matchLabels: {environment: '{{.path.basename}}'}}}}]}}]";
    let (folders, files) = (set("s", generators, "{{index .path.segments 1}}-{{.name}}"), set("t", files, "{{.team}}"));
    let tree = repository_of(&[
        ("appsets/s.yaml", &folders),
        ("appsets/t.yaml", &files),
        ("apps/a/envs/dev/kustomization.yaml", ""),
        ("apps/b/envs/dev/kustomization.yaml", ""),
        ("apps/c/envs/prd/kustomization.yaml", ""),
        ("conf/d/envs/dev/c.yaml", "team: red\n"),
    ]);
    let repository = Repository::read(&tree).unwrap();
    let mut spec = spec("alice", &[]);
    spec.skip = vec!["b".into()];
    let prediction = predict_environment(&repository, &tree, &spec).unwrap();
    assert_eq!(names(&prediction), ["a-in-cluster", "red"], "{:?}", prediction.excluded);
}

#[test]
fn the_cluster_has_annotations_as_its_secret_will_have() {
    let generators = "[{clusters: {}}]";
    let text = set("a", generators, "a-{{.name}}{{index .metadata.annotations \"none\"}}");
    let tree = repository_of(&[("appsets/a.yaml", &text)]);
    let prediction = predict_environment(&Repository::read(&tree).unwrap(), &tree, &alice()).unwrap();
    assert_eq!(names(&prediction), ["a-in-cluster"], "{:?}", prediction.findings);
}

#[test]
fn labels_are_checked_and_completed() {
    let labels = alice().labels().unwrap();
    assert_eq!((labels["developer"].as_str(), labels["environment"].as_str()), ("alice", "dev-alice"));
    for (key, value, said) in [
        ("a b", "x", "cannot be the key of a label"),
        ("vendor", "k3s!", "cannot be the value of the label vendor: it contains '!'"),
        ("domain", &"x".repeat(64), "it has 64 characters"),
    ] {
        let error = spec("alice", &[(key, value)]).labels().unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn the_objects_are_those_of_the_design() {
    let Some(tree) = fixture("the_objects_are_those_of_the_design") else { return };
    let overlay = overlay(&Repository::read(&tree).unwrap(), &tree, &alice()).unwrap();
    let root = &overlay.root_application;
    assert_eq!(root["metadata"]["name"], "root-app-of-apps-alice");
    assert_eq!(root["metadata"]["finalizers"][0], "resources-finalizer.argocd.argoproj.io");
    assert_eq!(
        root["spec"]["source"],
        json!({
            "repoURL": REPO, "targetRevision": "dev/alice", "path": "overlays/developers/alice",
            "kustomize": {
                "commonLabels": {"app.kubernetes.io/managed-by": "argocd"},
                "commonAnnotations": {"app.kubernetes.io/part-of": "k8tre"},
            },
        })
    );
    let project = &overlay.app_project;
    assert_eq!(project["metadata"]["name"], "dev-alice");
    assert_eq!(
        project["spec"]["destinations"],
        json!([{"server": "https://kubernetes.default.svc", "namespace": "*"}])
    );
    let text = &overlay.files["overlays/developers/alice/appproject.yaml"];
    assert_eq!(yaml::document("p", text.as_bytes()).unwrap().value["metadata"]["name"], "dev");
    assert!(overlay.files["overlays/developers/alice/kustomization.yaml"].starts_with("# Written by k8tre"));
    // The kustomization, the project, and one file for each application that labels do not rule out: nginx, too.
    assert_eq!(overlay.files.len(), 2 + 17);
}

#[test]
fn the_preset_fits_the_repository_to_a_laptop() {
    let Some(tree) = fixture("the_preset_fits_the_repository_to_a_laptop") else { return };
    let repository = Repository::read(&tree).unwrap();
    let mut preset = Preset::recognise(&repository, &tree).expect("the fixture is a K8TRE repository");
    assert_eq!(preset.plugin_name().as_deref(), Some("kustomize-with-envsubst-v1.0"));
    preset.address_range = Some("172.18.250.1-172.18.250.50".into());
    let mut spec = spec("alice", &[("vendor", "k3s")]);
    preset.apply(&mut spec);
    let prediction = predict_environment(&repository, &tree, &spec).unwrap();
    let names = names(&prediction);
    assert!(!names.contains(&"kare-dns-in-cluster") && !names.contains(&"nginx-in-cluster"), "{names:?}");
    assert!(names.contains(&"secret-store-in-cluster"), "the label is a default of the preset");
    let hub = prediction.applications.iter().find(|app| &*app.name == "jupyterhub-in-cluster").unwrap();
    assert!(hub.sync_options.iter().any(|option| &**option == "RespectIgnoreDifferences=true"));
    let overlay = overlay(&repository, &tree, &spec).unwrap();
    let storage = &overlay.files["agnostics/storage-class/k3s/envs/dev-alice/storage-classes.yaml"];
    let classes = yaml::documents("s", storage.as_bytes()).unwrap();
    assert_eq!(
        classes.iter().map(|c| &c.value["metadata"]["name"]).collect::<Vec<_>>(),
        ["rwo-default", "rwx-default"]
    );
    let branch = overlay.tree(&tree);
    for folder in ["overlays/developers/alice", "agnostics/storage-class/k3s/envs/dev-alice"] {
        kustomize_build("the_preset_fits_the_repository_to_a_laptop", &branch, folder);
    }
    let pool = &overlay.files["agnostics/loadbalancer/k3s/envs/dev-alice/kustomization.yaml"];
    let pool = yaml::document("p", pool.as_bytes()).unwrap().value;
    assert!(pool["patches"][0]["patch"].as_str().unwrap().contains("value: 172.18.250.1-172.18.250.50"), "{pool}");
    assert_eq!(Preset::recognise(&repository, &MemoryTree::default()), None);
}

#[test]
fn a_vcluster_leaves_to_its_host_what_only_that_can_do() {
    let Some(tree) = fixture("a_vcluster_leaves_to_its_host_what_only_that_can_do") else { return };
    let repository = Repository::read(&tree).unwrap();
    let preset = Preset::recognise(&repository, &tree).unwrap().in_vcluster(&repository);
    let mut spec = spec("alice", &[("vendor", "k3s")]);
    preset.apply(&mut spec);
    let prediction = predict_environment(&repository, &tree, &spec).unwrap();
    let names = names(&prediction);
    for app in ["gateway", "loadbalancer", "storage-class"] {
        assert!(!names.contains(&format!("{app}-in-cluster").as_str()), "{names:?}");
        let skip = preset.skips.iter().find(|skip| skip.app == app).expect(app);
        assert!(skip.reason.contains("host"), "{}", skip.reason);
    }
    assert!(names.contains(&"jupyterhub-in-cluster"));
    let files = overlay(&repository, &tree, &spec).unwrap().files;
    assert!(!files.keys().any(|path| path.contains("storage-classes.yaml")), "no classes of k8tre's own");
}
