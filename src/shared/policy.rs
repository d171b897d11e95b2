//! A fence that RBAC cannot build: a ValidatingAdmissionPolicy that holds a developer to the projects, names and labels
//! of their own environment, for the verbs that a Role can only give for all objects of a kind. Pure.

use serde_json::{Value, json};

use crate::gitops::world::IN_CLUSTER;
use crate::names::EnvName;
use crate::shared::rights::{Subject, repository_secrets, root_project, secret_name};

/// The policy and its binding, for an administrator to apply beside the Role.
pub fn policy(name: &EnvName, namespace: &str, subject: &Subject) -> Vec<Value> {
    let called = format!("k8tre-{namespace}-{name}");
    // JSON's way of writing a text is CEL's, too.
    let text = |text: &str| Value::from(text).to_string();
    let who = match subject {
        Subject::User(user) => format!("request.userInfo.username == {}", text(user)),
        Subject::Group(group) => format!("{} in request.userInfo.groups", text(group)),
    };
    let (project, root) = (text(&name.project()), text(&root_project(name)));
    let secrets: Vec<String> =
        [secret_name(name)].iter().chain(&repository_secrets(name)).map(|secret| text(secret)).collect();
    let secrets = secrets.join(", ");
    let validation = |expression: String, message: &str| json!({"expression": expression, "message": message});
    let on = |resource: &str, rule: &str| format!("request.resource.resource != '{resource}' || ({rule})");
    // What is there and what is to be there, as far as there are both.
    let all = |rule: &str| {
        format!(
            "(oldObject == null || ({})) && (object == null || ({}))",
            rule.replace('@', "oldObject"),
            rule.replace('@', "object")
        )
    };
    let spec = json!({
        "failurePolicy": "Fail",
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "resourceRules": [
                {"apiGroups": ["argoproj.io"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE", "DELETE"], "resources": ["applications", "applicationsets", "appprojects"]},
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE", "DELETE"], "resources": ["secrets"]},
            ],
        },
        "matchConditions": [{"name": "developer", "expression": who}],
        "validations": [
            validation(
                on("applications", &all(&format!("@.spec.project == {project} || (@.metadata.name == {} && @.spec.project == {root})", text(&name.root_application())))),
                "Applications of other projects are not yours",
            ),
            validation(
                on("applicationsets", &all(&format!("@.spec.template.spec.project == {project}"))),
                "ApplicationSets of other projects are not yours",
            ),
            validation(
                on("appprojects", &all(&format!("@.metadata.name in [{project}, {root}]"))),
                "AppProjects of others are not yours",
            ),
            validation(
                on("appprojects", &format!("object == null || object.metadata.name != {project} || object.spec.destinations.all(d, has(d.server) && !(d.server in ['*', '{IN_CLUSTER}']))")),
                "your project deploys to your own cluster alone",
            ),
            validation(
                on("appprojects", &format!("object == null || object.metadata.name != {root} || (object.spec.destinations.all(d, d.namespace == {}) && object.spec.namespaceResourceWhitelist.all(k, k.kind == 'ApplicationSet'))", text(namespace))),
                "your root project deploys ApplicationSets alone",
            ),
            validation(
                on("secrets", &format!("(object == null ? oldObject : object).metadata.name in [{secrets}]")),
                "Secrets of others are not yours",
            ),
            validation(
                on("secrets", &format!("object == null || object.metadata.labels['developer'] == {}", text(name.as_str()))),
                "your cluster's Secret has your label",
            ),
        ],
    });
    vec![
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": called, "labels": {"app.kubernetes.io/managed-by": "k8tre"}}, "spec": spec,
        }),
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": called, "labels": {"app.kubernetes.io/managed-by": "k8tre"}},
            "spec": {"policyName": called, "validationActions": ["Deny"]},
        }),
    ]
}
