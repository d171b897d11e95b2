//! `gc` as a job of the cluster itself: the CronJob, and no more rights than it needs. Pure.

use serde_json::{Value, json};

use super::rights::{EXEC, rules};
use crate::ports::kube::Right;

/// What all of it is called.
const NAME: &str = "k8tre-gc";
const ARGOPROJ: &str = "argoproj.io";
const RBAC: &str = "rbac.authorization.k8s.io";
/// An account that is nobody's, for images that name none.
const NOBODY: u32 = 65532;
/// A run is over by then: deleting a vCluster takes minutes at most.
const LIMIT: u32 = 1800;

/// What an administrator has chosen.
pub struct Janitor<'a> {
    pub image: &'a str,
    pub namespace: &'a str,
    pub schedule: &'a str,
    /// Namespace of an Argo CD that is looked after too.
    pub argocd: Option<&'a str>,
    pub probe: bool,
    pub without_end: bool,
}

/// What it does to the cluster's vClusters, which are namespaces.
fn on_the_host() -> Vec<Right> {
    ["get", "list", "delete"].map(|verb| Right::new(verb, "", "namespaces")).into()
}

/// What it does at an Argo CD. Finalizers of Applications whose cluster is gone are taken off by a patch.
fn on_argocd(probe: bool) -> Vec<Right> {
    let on = |verbs: &[&'static str], group: &'static str, resource: &'static str| -> Vec<Right> {
        verbs.iter().map(|verb| Right::new(verb, group, resource)).collect()
    };
    let mut rights = on(&["list", "patch", "delete"], ARGOPROJ, "applications");
    rights.extend(on(&["list", "delete"], ARGOPROJ, "applicationsets"));
    rights.extend(on(&["get", "list", "delete"], ARGOPROJ, "appprojects"));
    rights.extend(on(&["get", "list", "delete"], "", "secrets"));
    if probe {
        rights.extend([Right::new("list", "", "pods"), Right::new("get", "", "pods/exec"), EXEC]);
    }
    rights
}

/// All objects, in the order in which they are applied.
pub fn objects(of: &Janitor<'_>) -> Vec<Value> {
    let labels = json!({"app.kubernetes.io/managed-by": "k8tre", "app.kubernetes.io/name": NAME});
    let account = json!([{"kind": "ServiceAccount", "name": NAME, "namespace": of.namespace}]);
    let inside = |namespace: &str| json!({"name": NAME, "namespace": namespace, "labels": labels});
    let everywhere = json!({"name": NAME, "labels": labels});
    let mut quiet = labels.clone();
    quiet["pod-security.kubernetes.io/enforce"] = json!("restricted");
    let mut objects = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": of.namespace, "labels": quiet}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": inside(of.namespace)}),
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": everywhere, "rules": rules(on_the_host())}),
        json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": everywhere,
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": NAME}, "subjects": account,
        }),
    ];
    if let Some(argocd) = of.argocd {
        objects.extend([
            json!({"apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": inside(argocd), "rules": rules(on_argocd(of.probe))}),
            json!({
                "apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding", "metadata": inside(argocd),
                "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": NAME}, "subjects": account,
            }),
        ]);
    }
    objects.push(json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": inside(of.namespace),
        "spec": {
            "schedule": of.schedule, "concurrencyPolicy": "Forbid",
            "successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 3,
            "jobTemplate": {"spec": {
                // What could not be removed is tried again with the next run.
                "backoffLimit": 0, "activeDeadlineSeconds": LIMIT,
                "template": {"metadata": {"labels": labels}, "spec": pod(of)},
            }},
        },
    }));
    objects
}

fn pod(of: &Janitor<'_>) -> Value {
    let mut args = vec!["dev", "gc", "--in-cluster", "--yes"];
    args.extend(of.argocd.iter().flat_map(|namespace| ["--argocd", namespace]));
    args.extend(of.without_end.then_some("--without-end"));
    json!({
        "serviceAccountName": NAME, "restartPolicy": "Never",
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": NOBODY, "runAsGroup": NOBODY, "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [{
            "name": "gc", "image": of.image, "imagePullPolicy": "IfNotPresent", "args": args,
            // The only place that it writes to.
            "env": [{"name": "HOME", "value": "/tmp"}],
            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
            "securityContext": {
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
            },
            "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "256Mi"}},
        }],
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "16Mi"}}],
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command, Dev};

    fn janitor(argocd: Option<&'static str>, probe: bool) -> Janitor<'static> {
        Janitor { image: "k8tre:1", namespace: "k8tre-gc", schedule: "17 * * * *", argocd, probe, without_end: true }
    }

    /// Each right that a role gives, as `verb resource`.
    fn given(objects: &[Value], kind: &str) -> Vec<String> {
        let words = |value: &Value| {
            value.as_array().unwrap().iter().map(|w| w.as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let roles = objects.iter().filter(|object| object["kind"] == kind);
        let rules = roles.flat_map(|role| role["rules"].as_array().unwrap());
        rules
            .flat_map(|rule| {
                words(&rule["verbs"]).into_iter().map(move |verb| format!("{verb} {}", words(&rule["resources"])[0]))
            })
            .collect()
    }

    #[test]
    fn it_may_do_what_gc_does_and_nothing_else() {
        let alone = objects(&janitor(None, false));
        assert_eq!(given(&alone, "ClusterRole"), ["get namespaces", "list namespaces", "delete namespaces"]);
        assert!(given(&alone, "Role").is_empty());
        let both = objects(&janitor(Some("argocd"), false));
        assert_eq!(given(&both, "ClusterRole"), given(&alone, "ClusterRole"));
        let expected = [
            "list applications",
            "patch applications",
            "delete applications",
            "list applicationsets",
            "delete applicationsets",
            "get appprojects",
            "list appprojects",
            "delete appprojects",
            "get secrets",
            "list secrets",
            "delete secrets",
        ];
        assert_eq!(given(&both, "Role"), expected);
        assert!(given(&objects(&janitor(Some("argocd"), true)), "Role").contains(&"create pods/exec".to_owned()));
    }

    #[test]
    fn what_it_runs_is_a_command_line_of_k8tre() {
        let all = objects(&janitor(Some("gitops"), false));
        let job = all.last().unwrap();
        let args = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
        let words = ["k8tre"].into_iter().chain(args.iter().filter_map(Value::as_str));
        let Command::Dev(dev) = Cli::try_parse_from(words).unwrap().command else {
            panic!("no command for environments")
        };
        let Dev::Gc(gc) = *dev else { panic!("not gc") };
        assert!(gc.in_cluster && gc.yes && gc.without_end);
        assert_eq!(gc.argocd.as_deref(), Some("gitops"));
    }
}
