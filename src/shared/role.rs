//! What Argo CD may do in the developer's cluster. Pure.
//!
//! It watches everything, because it compares with everything. What it may write is listed: no impersonation, no
//! tokens, no commands in pods, and no rights for others beyond those that it has itself.

use std::collections::BTreeSet;

use serde_json::{Value, json};

pub const NAMESPACE: &str = "k8tre-system";
pub const ACCOUNT: &str = "k8tre-argocd";

/// Kinds of Kubernetes itself that a TRE is made of, by group.
const WRITTEN: [(&str, &[&str]); 17] = [
    (
        "",
        &[
            "configmaps",
            "endpoints",
            "limitranges",
            "namespaces",
            "persistentvolumeclaims",
            "persistentvolumes",
            "pods",
            "podtemplates",
            "replicationcontrollers",
            "resourcequotas",
            "secrets",
            "serviceaccounts",
            "services",
        ],
    ),
    ("admissionregistration.k8s.io", &["*"]),
    ("apiextensions.k8s.io", &["customresourcedefinitions"]),
    ("apiregistration.k8s.io", &["apiservices"]),
    ("apps", &["controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"]),
    ("autoscaling", &["horizontalpodautoscalers"]),
    ("batch", &["cronjobs", "jobs"]),
    ("coordination.k8s.io", &["leases"]),
    ("discovery.k8s.io", &["endpointslices"]),
    ("events.k8s.io", &["events"]),
    ("flowcontrol.apiserver.k8s.io", &["flowschemas", "prioritylevelconfigurations"]),
    ("networking.k8s.io", &["ingressclasses", "ingresses", "networkpolicies"]),
    ("node.k8s.io", &["runtimeclasses"]),
    ("policy", &["poddisruptionbudgets"]),
    ("rbac.authorization.k8s.io", &["clusterrolebindings", "clusterroles", "rolebindings", "roles"]),
    ("scheduling.k8s.io", &["priorityclasses"]),
    ("storage.k8s.io", &["csidrivers", "storageclasses", "volumeattributesclasses"]),
];

/// Groups that a K8TRE's operators bring, whose charts name them nowhere in the repository.
const OPERATORS: [&str; 13] = [
    "acme.cert-manager.io",
    "cert-manager.io",
    "cilium.io",
    "external-secrets.io",
    "gateway.networking.k8s.io",
    "generators.external-secrets.io",
    "identity.k8tre.io",
    "k8s.keycloak.org",
    "longhorn.io",
    "metallb.io",
    "monitoring.coreos.com",
    "postgresql.cnpg.io",
    "snapshot.storage.k8s.io",
];

/// Groups in which everything would be more than the kinds of a TRE: Kubernetes' own, and Argo CD's.
fn is_known(group: &str) -> bool {
    const OWN: [&str; 5] = [
        "argoproj.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "certificates.k8s.io",
        "kustomize.config.k8s.io",
    ];
    OWN.contains(&group) || WRITTEN.iter().any(|(known, _)| *known == group)
}

/// The rules, with the groups of the repository's own kinds.
pub fn rules(groups: &BTreeSet<String>) -> Value {
    const WRITE: [&str; 6] = ["get", "create", "update", "patch", "delete", "deletecollection"];
    let mut rules = vec![
        json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "watch"]}),
        json!({"nonResourceURLs": ["/version", "/version/*", "/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"], "verbs": ["get"]}),
        // The end of a log in Argo CD's UI, and what operators ask of the API server.
        json!({"apiGroups": [""], "resources": ["pods/log", "nodes", "events"], "verbs": ["get"]}),
        json!({"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]}),
        json!({"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]}),
    ];
    rules.extend(
        WRITTEN.iter().map(|(group, resources)| json!({"apiGroups": [group], "resources": resources, "verbs": WRITE})),
    );
    let custom: BTreeSet<&str> =
        OPERATORS.into_iter().chain(groups.iter().map(String::as_str).filter(|group| !is_known(group))).collect();
    rules.push(json!({"apiGroups": custom, "resources": ["*"], "verbs": WRITE}));
    rules.into()
}

/// The identity by which Argo CD works in the cluster: all that it is made of.
pub fn objects(groups: &BTreeSet<String>) -> Vec<Value> {
    let labels = json!({"app.kubernetes.io/managed-by": "k8tre"});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ACCOUNT});
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}),
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "automountServiceAccountToken": false,
            "metadata": {"name": ACCOUNT, "namespace": NAMESPACE, "labels": labels},
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": ACCOUNT, "labels": labels}, "rules": rules(groups),
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": ACCOUNT, "labels": labels}, "roleRef": role,
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the API server decides: whether a rule covers the verb on the resource.
    fn may(rules: &Value, verb: &str, group: &str, resource: &str) -> bool {
        let has = |list: &Value, wanted: &str| {
            list.as_array().is_some_and(|all| all.iter().any(|one| one == wanted || one == "*"))
        };
        rules.as_array().unwrap().iter().any(|rule| {
            has(&rule["verbs"], verb) && has(&rule["apiGroups"], group) && has(&rule["resources"], resource)
        })
    }

    #[test]
    fn argo_cd_may_make_a_tre_and_may_not_become_anybody_else() {
        let rules = rules(&BTreeSet::from(["example.org".to_owned(), "argoproj.io".to_owned()]));
        for (verb, group, resource) in [
            ("list", "", "secrets"),
            ("watch", "anything.example", "things"),
            ("create", "apps", "deployments"),
            ("patch", "", "namespaces"),
            ("delete", "rbac.authorization.k8s.io", "clusterroles"),
            ("create", "example.org", "widgets"),
            ("create", "cert-manager.io", "certificates"),
            ("get", "", "pods/log"),
            ("create", "admissionregistration.k8s.io", "validatingadmissionpolicies"),
        ] {
            assert!(may(&rules, verb, group, resource), "{verb} {resource} in {group:?}");
        }
        for (verb, group, resource) in [
            ("impersonate", "", "users"),
            ("impersonate", "", "groups"),
            ("impersonate", "", "serviceaccounts"),
            ("create", "", "serviceaccounts/token"),
            ("create", "", "pods/exec"),
            ("get", "", "pods/exec"),
            ("create", "", "pods/portforward"),
            ("get", "", "nodes/proxy"),
            ("create", "", "nodes/proxy"),
            ("delete", "", "nodes"),
            ("escalate", "rbac.authorization.k8s.io", "clusterroles"),
            ("escalate", "rbac.authorization.k8s.io", "roles"),
            ("bind", "rbac.authorization.k8s.io", "clusterroles"),
            ("bind", "rbac.authorization.k8s.io", "roles"),
            ("approve", "certificates.k8s.io", "signers"),
            ("create", "certificates.k8s.io", "certificatesigningrequests"),
            ("create", "unknown.example", "things"),
            ("create", "argoproj.io", "applications"),
        ] {
            assert!(!may(&rules, verb, group, resource), "{verb} {resource} in {group:?}");
        }
    }

    #[test]
    fn nothing_binds_to_a_group_of_administrators() {
        let text = serde_json::to_string(&objects(&BTreeSet::new())).unwrap();
        assert!(!text.contains("system:masters") && !text.contains("cluster-admin"), "{text}");
    }
}
