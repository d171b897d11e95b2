//! What Argo CD may do in the developer's cluster: in all of it, or in given namespaces alone. Pure.
//!
//! It watches everything, because it compares with everything. What it may write is listed: no impersonation, no
//! tokens, no commands in pods, and, unless somebody asks for it, no rights for others beyond those that it has itself.

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

/// Resources of `WRITTEN` that are in no namespace.
fn is_of_cluster(group: &str, resource: &str) -> bool {
    const GROUPS: [&str; 7] = [
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "node.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    ];
    const RESOURCES: [&str; 5] =
        ["clusterrolebindings", "clusterroles", "ingressclasses", "namespaces", "persistentvolumes"];
    GROUPS.contains(&group) || RESOURCES.contains(&resource)
}

const WRITE: [&str; 6] = ["get", "create", "update", "patch", "delete", "deletecollection"];

/// What every client has to ask before it can ask for anything.
fn discovery() -> Value {
    json!({"nonResourceURLs": ["/version", "/version/*", "/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"], "verbs": ["get"]})
}

/// Groups in which it may write everything: those of operators, and of the repository's own kinds.
fn custom(groups: &BTreeSet<String>) -> Value {
    let custom: BTreeSet<&str> =
        OPERATORS.into_iter().chain(groups.iter().map(String::as_str).filter(|group| !is_known(group))).collect();
    json!({"apiGroups": custom, "resources": ["*"], "verbs": WRITE})
}

/// What it takes to give rights that it has not itself: with that, nothing is out of its reach.
fn escalation(may_escalate: bool, resources: &[&str]) -> Option<Value> {
    let rule =
        json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": resources, "verbs": ["escalate", "bind"]});
    may_escalate.then_some(rule)
}

/// The rules for the whole cluster, with the groups of the repository's own kinds.
pub fn rules(groups: &BTreeSet<String>, may_escalate: bool) -> Value {
    let mut rules = vec![
        json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "watch"]}),
        discovery(),
        // The end of a log in Argo CD's UI, and what operators ask of the API server.
        json!({"apiGroups": [""], "resources": ["pods/log", "nodes", "events"], "verbs": ["get"]}),
        json!({"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]}),
        json!({"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]}),
    ];
    rules.extend(
        WRITTEN.iter().map(|(group, resources)| json!({"apiGroups": [group], "resources": resources, "verbs": WRITE})),
    );
    rules.push(custom(groups));
    rules.extend(escalation(may_escalate, &["clusterroles", "roles"]));
    rules.into()
}

/// The rules in one namespace, for an Argo CD that may manage no more than given ones.
pub fn rules_within(groups: &BTreeSet<String>, may_escalate: bool) -> Value {
    let mut rules = vec![
        json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "watch"]}),
        json!({"apiGroups": [""], "resources": ["pods/log", "events"], "verbs": ["get"]}),
        // Whether it is there: Argo CD asks before it would make it.
        json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}),
    ];
    for (group, resources) in WRITTEN {
        let within: Vec<&&str> = resources.iter().filter(|resource| !is_of_cluster(group, resource)).collect();
        if !within.is_empty() {
            rules.push(json!({"apiGroups": [group], "resources": within, "verbs": WRITE}));
        }
    }
    rules.push(custom(groups));
    rules.extend(escalation(may_escalate, &["roles"]));
    rules.into()
}

/// The identity by which Argo CD works in the cluster: all that it is made of. With namespaces, the account has its
/// rights in these alone.
pub fn objects(groups: &BTreeSet<String>, namespaces: &BTreeSet<String>, may_escalate: bool) -> Vec<Value> {
    const RBAC: &str = "rbac.authorization.k8s.io/v1";
    let labels = json!({"app.kubernetes.io/managed-by": "k8tre"});
    let role = |kind: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": ACCOUNT});
    let account = json!([{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}]);
    let everywhere = if namespaces.is_empty() { rules(groups, may_escalate) } else { json!([discovery()]) };
    let mut objects = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}),
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "automountServiceAccountToken": false,
            "metadata": {"name": ACCOUNT, "namespace": NAMESPACE, "labels": labels},
        }),
        json!({
            "apiVersion": RBAC, "kind": "ClusterRole",
            "metadata": {"name": ACCOUNT, "labels": labels}, "rules": everywhere,
        }),
        json!({
            "apiVersion": RBAC, "kind": "ClusterRoleBinding",
            "metadata": {"name": ACCOUNT, "labels": labels}, "roleRef": role("ClusterRole"), "subjects": account,
        }),
    ];
    for namespace in namespaces {
        let metadata = json!({"name": ACCOUNT, "namespace": namespace, "labels": labels});
        objects.push(json!({"apiVersion": RBAC, "kind": "Role", "metadata": metadata, "rules": rules_within(groups, may_escalate)}));
        objects.push(json!({
            "apiVersion": RBAC, "kind": "RoleBinding", "metadata": metadata,
            "roleRef": role("Role"), "subjects": account,
        }));
    }
    objects
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
        let rules = rules(&BTreeSet::from(["example.org".to_owned(), "argoproj.io".to_owned()]), false);
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
        for namespaces in [BTreeSet::new(), BTreeSet::from(["portal".to_owned()])] {
            let text = serde_json::to_string(&objects(&BTreeSet::new(), &namespaces, false)).unwrap();
            assert!(!text.contains("system:masters") && !text.contains("cluster-admin"), "{text}");
        }
    }

    #[test]
    fn held_to_namespaces_it_has_no_rights_outside_of_them_and_none_on_what_is_in_none() {
        let namespaces = BTreeSet::from(["identity".to_owned(), "portal".to_owned()]);
        let objects = objects(&BTreeSet::from(["example.org".to_owned()]), &namespaces, false);
        let of_kind = |kind: &str| objects.iter().filter(|one| one["kind"] == kind).collect::<Vec<_>>();
        for rule in of_kind("ClusterRole")[0]["rules"].as_array().unwrap() {
            assert!(rule["apiGroups"].is_null(), "no object of the cluster: {rule}");
        }
        let held: Vec<&Value> = of_kind("Role").iter().map(|role| &role["metadata"]["namespace"]).collect();
        assert_eq!(held, ["identity", "portal"]);
        let bound: Vec<&Value> = of_kind("RoleBinding").iter().map(|one| &one["metadata"]["namespace"]).collect();
        assert_eq!(bound, held);
        let rules = &of_kind("Role")[0]["rules"];
        for (verb, group, resource) in [
            ("watch", "anything.example", "things"),
            ("create", "apps", "deployments"),
            ("create", "networking.k8s.io", "ingresses"),
            ("create", "example.org", "widgets"),
            ("get", "", "namespaces"),
        ] {
            assert!(may(rules, verb, group, resource), "{verb} {resource} in {group:?}");
        }
        for (verb, group, resource) in [
            ("create", "", "namespaces"),
            ("delete", "", "namespaces"),
            ("create", "rbac.authorization.k8s.io", "clusterroles"),
            ("create", "storage.k8s.io", "storageclasses"),
            ("create", "apiextensions.k8s.io", "customresourcedefinitions"),
            ("create", "", "serviceaccounts/token"),
            ("create", "", "pods/exec"),
        ] {
            assert!(!may(rules, verb, group, resource), "{verb} {resource} in {group:?}");
        }
    }
}
