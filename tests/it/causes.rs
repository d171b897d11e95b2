//! Cause lines from what a real API server and a real Argo CD said about things broken on purpose:
//! one file a case in `tests/fixtures/causes`, with the code and the line that a user must see.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use k8tre::causes::{Evidence, codes, explain};
use serde_json::{Value, json};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn cases() -> Vec<(String, Value)> {
    let folder = std::fs::read_dir(root().join("tests/fixtures/causes")).unwrap();
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |file: PathBuf| {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        (name, serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap())
    };
    files.into_iter().map(read).collect()
}

fn case(name: &str) -> Value {
    cases().into_iter().find(|(found, _)| found == name).unwrap().1
}

fn evidence(case: &Value) -> Evidence {
    serde_json::from_value(case["evidence"].clone()).unwrap()
}

fn line(application: &Value, evidence: &Evidence) -> String {
    explain(application, evidence).map_or_else(|| "nothing".to_owned(), |cause| format!("[{}] {cause}", cause.code))
}

/// What was broken, the recorded case, and what has to be said: the code, and the end of the line.
const BROKEN: &[(&str, &str, &str, &str)] = &[
    ("an image whose registry does not exist", "image", "image-pull", "registry.invalid does not resolve"),
    ("a program that ends with an error", "crash", "crash-loop", "FATAL: cannot open config /etc/app.toml"),
    ("a program that takes more memory than it may", "oom", "oom-killed", "its memory limit is 16Mi"),
    ("a program whose name does not resolve", "dns", "dns", "db.nowhere.svc.cluster.local does not resolve"),
    ("a claim whose class does not exist", "pvc-class", "storage-class-missing", r#"no StorageClass "rwx-default""#),
    (
        "a claim whose driver is not installed",
        "pvc-ext",
        "storage-provisioner-missing",
        "provisioner driver.longhorn.io does not answer",
    ),
    (
        "an object whose CRD is missing",
        "crd",
        "crd-missing",
        "the cluster does not know cilium.io/CiliumNetworkPolicy: no such CRD",
    ),
    (
        "an object that a policy forbids",
        "admission",
        "admission-denied",
        "policy no-denied-label: the label deny is not allowed",
    ),
    (
        "an admission webhook that nobody serves",
        "webhook",
        "admission-webhook-unreachable",
        r#"service "policy-webhook" not found"#,
    ),
    (
        "a quota that is used up",
        "quota",
        "quota",
        "quota small is used up: requested pods=1, used pods=0, limit pods=0",
    ),
    (
        "a service account without the right",
        "rbac",
        "rbac",
        "service account limited/reader may not create configmaps in namespace limited",
    ),
    (
        "a role with rights that Argo CD has not itself",
        "rbac-escalation",
        "rbac-escalation",
        "it gives a right that Argo CD has not itself: create serviceaccounts/token",
    ),
    (
        "a kustomization that names a missing file",
        "kustomize",
        "kustomize-failed",
        "kustomize/missing.yaml: no such file or directory",
    ),
    (
        "a file of a kustomization that is no YAML",
        "kustomize-yaml",
        "kustomize-failed",
        "kustomize-yaml/a.yaml: yaml: line 4: did not find expected key",
    ),
    ("a plugin that fails", "cmp-folder", "plugin-failed", "agnostics/ad/base: no such file or directory"),
    (
        "a plugin that is not installed",
        "plugin",
        "plugin-missing",
        r#"no plugin "kustomize-with-envsubst-v1.0" in Argo CD's repo-server"#,
    ),
    ("a hook Job that does not end", "hook-slow", "hook-waiting", "its pod is running"),
    ("a hook Job that fails", "hook-fail", "hook-failed", "relation users does not exist"),
    ("a finalizer that nobody takes off", "finalizer", "finalizer", "finalizer example.org/hold is not taken off"),
    ("a cluster that does not answer", "dest-refused", "destination-unreachable", "connection refused"),
    (
        "a destination outside the project",
        "dest-outside",
        "destination-outside-project",
        "AppProject dev-alice does not list it",
    ),
    ("a pod that asks for more than there is", "cpu", "unschedulable", "asks for cpu 100; nodes have 2"),
    ("a Secret that is missing", "secret", "secret-missing", r#"no Secret "oidc""#),
    ("a readiness probe that fails", "probe", "readiness-probe", "http://10.244.0.17:8080/ready: connection refused"),
];

#[test]
fn each_kind_of_failure_is_traced_to_its_root() {
    for (broken, name, code, root) in BROKEN {
        let case = case(name);
        let cause = explain(&case["application"], &evidence(&case)).unwrap_or_else(|| panic!("{broken}: nothing"));
        assert_eq!((cause.code, cause.chain.last().unwrap().as_str()), (*code, *root), "{broken}: {cause}");
    }
}

#[test]
fn what_was_broken_is_what_the_line_names() {
    let cases = cases();
    assert!(cases.len() >= 50, "only {} cases", cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(name, case)| {
            let expected = format!("[{}] {}", case["code"].as_str().unwrap(), case["line"].as_str().unwrap());
            let said = line(&case["application"], &evidence(case));
            (said != expected).then(|| format!("{name}\n  expected {expected}\n  said     {said}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_line_never_stops_at_the_symptom_and_always_has_a_command() {
    for (name, case) in cases() {
        let cause = explain(&case["application"], &evidence(&case)).unwrap();
        assert!(cause.chain.len() >= 2, "{name}: {cause}");
        assert!(cause.hint.is_some(), "{name}: {cause}");
        assert!(!cause.short(120).contains("Degraded") && !cause.short(120).contains("Progressing"), "{name}: {cause}");
    }
}

#[test]
fn without_evidence_argo_cds_own_words_are_still_said() {
    for (name, case) in cases() {
        let application = &case["application"];
        if application["spec"].is_null() || application["metadata"]["deletionTimestamp"].is_string() {
            continue;
        }
        // An ApplicationSet's error is nowhere but in the ApplicationSet.
        let cause = explain(application, &Evidence::default());
        assert!(cause.is_some_and(|cause| cause.chain.len() >= 2) || name == "root", "{name}");
    }
}

#[test]
fn another_applications_trouble_in_the_same_namespace_is_not_blamed() {
    let case = case("image");
    let mut other = case["application"].clone();
    other["metadata"]["name"] = json!("other");
    other["status"]["resources"][0]["name"] = json!("other");
    other["status"]["operationState"]["syncResult"]["resources"] = json!([]);
    other["status"]["health"] = json!({"status": "Progressing"});
    assert_eq!(line(&other, &evidence(&case)), "nothing");
}

#[test]
fn a_password_in_a_log_is_not_shown() {
    let case = case("crash");
    let mut evidence = evidence(&case);
    evidence.logs[0]["text"] = json!("\u{1b}[31mFATAL: login failed, password=hunter2 token: abc\u{1b}[0m\n");
    let said = line(&case["application"], &evidence);
    assert!(said.ends_with("FATAL: login failed, password=*** token: ***"), "{said}");
}

#[test]
fn trouble_that_is_over_is_not_told() {
    let case = case("probe");
    let mut evidence = evidence(&case);
    evidence.pods[0]["status"]["containerStatuses"][0]["ready"] = json!(true);
    assert!(!line(&case["application"], &evidence).contains("probe failed"));
    assert!(line(&case["application"], &evidence).starts_with("[unhealthy-object]"));
}

fn refused(kind: &str, message: &str) -> Value {
    let result = json!({"kind": kind, "name": "a", "namespace": "ns", "status": "SyncFailed", "message": message});
    json!({
        "metadata": {"name": "app"}, "spec": {},
        "status": {"operationState": {"phase": "Failed", "message": "failed", "syncResult": {"resources": [result]}}},
    })
}

fn uncompared(message: &str) -> Value {
    let condition = json!({"type": "ComparisonError", "message": message});
    let source = json!({"repoURL": "https://example.org/tre.git", "path": "apps/hub", "targetRevision": "main"});
    json!({"metadata": {"name": "app"}, "spec": {"source": source}, "status": {"conditions": [condition]}})
}

/// Wordings that the recorded cases do not have.
#[test]
fn other_words_for_the_same_trouble_are_understood() {
    let rpc =
        "Failed to load target state: failed to generate manifest for source 1 of 1: rpc error: code = Unknown desc = ";
    for (application, expected) in [
        (
            refused("Pod", r#"admission webhook "validate.kyverno.svc" denied the request: no latest tag"#),
            "[admission-denied] app sync failed <- Pod a is refused <- webhook validate.kyverno.svc: no latest tag",
        ),
        (
            refused("Pod", r#"pods "a" is forbidden: failed quota: q: must specify limits.cpu for: main"#),
            "[quota] app sync failed <- Pod a is refused <- quota q: its containers must specify limits.cpu for: main",
        ),
        (
            refused(
                "ClusterRole",
                "resource rbac.authorization.k8s.io:ClusterRole is not permitted in project dev-alice",
            ),
            "[kind-outside-project] app sync failed <- ClusterRole a is refused <- AppProject dev-alice does not allow objects of this kind",
        ),
        (
            refused("Cluster", r#"no matches for kind "Cluster" in version "postgresql.cnpg.io/v1""#),
            "[crd-missing] app sync failed <- Cluster a is refused <- the cluster does not know postgresql.cnpg.io/v1/Cluster: no such CRD",
        ),
        (
            refused(
                "ClusterRole",
                r#"clusterroles.rbac.authorization.k8s.io is forbidden: User "al" cannot create resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope"#,
            ),
            "[rbac] app sync failed <- ClusterRole a is refused <- user al may not create clusterroles.rbac.authorization.k8s.io in the whole cluster",
        ),
        (
            uncompared(&format!(
                "{rpc}plugin sidecar failed. error generating manifests in cmp: rpc error: code = Unknown desc = error generating manifests: `sh -c gen` failed exit status 1: Error: accumulating resources: accumulating resources from 'a.yaml': open /tmp/_cmp_server/1/apps/hub/a.yaml: no such file or directory"
            )),
            "[plugin-failed] app cannot be compared <- plugin failed in apps/hub <- apps/hub/a.yaml: no such file or directory",
        ),
        (
            uncompared(&format!("{rpc}failed to list refs: ssh: handshake failed: knownhosts: key is unknown")),
            "[repository-denied] app cannot be compared <- https://example.org/tre.git cannot be read <- key is unknown",
        ),
        (
            uncompared("something new: entirely"),
            "[comparison-error] app cannot be compared <- ComparisonError: entirely",
        ),
    ] {
        assert_eq!(line(&application, &Evidence::default()), expected);
    }
}

#[test]
fn a_sync_that_gave_up_says_so_where_no_object_is_to_blame() {
    let mut application = refused("Pod", "");
    application["status"]["operationState"] =
        json!({"phase": "Failed", "retryCount": 5, "message": "operation timed out (retried 5 times)."});
    let said = line(&application, &Evidence::default());
    assert_eq!(said, "[sync-retries] app sync failed <- Argo CD gave up after 5 retries <- operation timed out");
    application["status"]["operationState"] =
        json!({"phase": "Running", "retryCount": 1, "message": "operation timed out. Retrying attempt #2 at 1:00PM."});
    let said = line(&application, &Evidence::default());
    assert_eq!(said, "[sync-failed] app sync failed <- operation timed out");
}

#[test]
fn taints_and_evictions_are_told_apart_from_too_little_room() {
    let case = case("selector");
    let mut evidence = evidence(&case);
    let message = "0/2 nodes are available: 2 node(s) had untolerated taint {gpu: true}. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.";
    evidence.pods[0]["status"]["conditions"][0]["message"] = json!(message);
    let said = line(&case["application"], &evidence);
    assert!(said.ends_with("Pending <- 2 node(s) had untolerated taint {gpu: true}"), "{said}");
    evidence.pods[0]["status"] =
        json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."});
    assert!(line(&case["application"], &evidence).starts_with("[evicted]"));
}

#[test]
fn a_job_that_succeeded_in_the_end_is_not_blamed_for_its_first_pods() {
    let case = case("job");
    let mut evidence = evidence(&case);
    evidence.jobs[0]["status"]["conditions"] = json!([{"type": "Complete", "status": "True"}]);
    assert!(!line(&case["application"], &evidence).contains("no rows"));
}

#[test]
fn what_comes_from_a_repository_cannot_run_in_a_pasted_command() {
    let mut application = uncompared("unable to resolve 'x' to a commit SHA");
    application["spec"]["source"]["repoURL"] = json!("https://h/$(reboot);x");
    let cause = explain(&application, &Evidence::default()).unwrap();
    assert_eq!(cause.hint.as_deref(), Some("git ls-remote 'https://h/$(reboot);x'"));
}

#[test]
fn every_code_has_its_section_and_every_section_its_code() {
    let text = std::fs::read_to_string(root().join("docs/troubleshooting.md")).unwrap();
    let sections: BTreeSet<&str> = text.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert_eq!(sections, codes().collect::<BTreeSet<&str>>());
    let of = |part: &str| text.lines().filter(|line| line.starts_with(part)).count();
    assert_eq!(
        (of("- See: "), of("- Mend: ")),
        (sections.len(), sections.len()),
        "each says how to see and how to mend it"
    );
}
