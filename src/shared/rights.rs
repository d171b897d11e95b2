//! What a developer has to be allowed to do on the shared side, and the objects by which an administrator allows it.

use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use crate::argocd::side::ArgoCd;
use crate::error::{Error, Result};
use crate::names::EnvName;
use crate::ports::kube::Right;
use crate::spec::SharedArgoCd;

/// Requests under way at once.
const AT_ONCE: usize = 8;
const ARGOPROJ: &str = "argoproj.io";

/// Name of the cluster Secret of an environment.
pub fn secret_name(name: &EnvName) -> String {
    format!("k8tre-cluster-{name}")
}

/// The AppProject of the root Application. No environment's own can have this name, which begins with `dev-`.
pub fn root_project(name: &EnvName) -> String {
    format!("root-{}", name.project())
}

/// All that `up`, `status`, `hold` and `down` do there. Objects that have the environment's name are named, since
/// RBAC can hold a user to that.
pub fn needed(name: &EnvName) -> Vec<Right> {
    let on = |verbs: &[&'static str], resource: &'static str| -> Vec<Right> {
        verbs.iter().map(|verb| Right::new(verb, ARGOPROJ, resource)).collect()
    };
    let mut rights = on(&["get", "list", "create", "patch", "delete"], "applications");
    rights.extend(on(&["get", "list", "patch", "delete"], "applicationsets"));
    rights.push(Right::new("create", ARGOPROJ, "appprojects"));
    for project in [name.project(), root_project(name)] {
        rights.extend(on(&["get", "patch", "delete"], "appprojects").into_iter().map(|right| right.named(&project)));
    }
    rights.push(Right::new("create", "", "secrets"));
    let secret = secret_name(name);
    rights.extend(["get", "patch", "delete"].map(|verb| Right::new(verb, "", "secrets").named(&secret)));
    rights.push(Right::new("list", "", "pods"));
    rights
}

/// Names of the repository Secrets, by which the Applications and the root Application read a repository that is not
/// everybody's.
pub fn repository_secrets(name: &EnvName) -> [String; 2] {
    [format!("k8tre-repo-{name}"), format!("k8tre-repo-{}", root_project(name))]
}

/// What `--repo-credentials` takes besides.
pub fn for_credentials(name: &EnvName) -> Vec<Right> {
    let on = |secret: &String| ["get", "patch", "delete"].map(|verb| Right::new(verb, "", "secrets").named(secret));
    repository_secrets(name).iter().flat_map(on).collect()
}

/// What the probe from Argo CD's own network takes besides: a command in a pod of Argo CD's, or a pod of its own.
pub const EXEC: Right = Right::new("create", "", "pods/exec");
pub const POD: [Right; 4] = [
    Right::new("create", "", "pods"),
    Right::new("get", "", "pods"),
    Right::new("delete", "", "pods"),
    Right::new("get", "", "pods/log"),
];

/// Refuses when something is not allowed, with all of it.
pub async fn check(argocd: &ArgoCd, shared: &SharedArgoCd, name: &EnvName) -> Result<()> {
    let mut rights = needed(name);
    if shared.repo_credentials {
        rights.extend(for_credentials(name));
    }
    let missing = missing(argocd, rights).await?;
    if missing.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = missing.iter().map(shown).collect();
    Err(Error::preflight(format!("you may not do all that {name} needs in {}", shared.place()))
        .detail(lines.join("\n"))
        .hint(format!(
            "ask an administrator of that Argo CD to apply: k8tre shared rbac --name {name} --namespace {} --for USER{}",
            shared.namespace,
            if shared.repo_credentials { " --repo-credentials" } else { "" }
        )))
}

/// Those of the rights that this user has not.
pub async fn missing(argocd: &ArgoCd, rights: Vec<Right>) -> Result<Vec<Right>> {
    let asked = rights.into_iter().map(|right| async move {
        match argocd.kube.may(&argocd.namespace, &right).await? {
            Some(allowed) => Ok((right, allowed)),
            None => Err(Error::preflight("the API server of the shared Argo CD does not know you")
                .hint("log in again, as you do before you use kubectl there")),
        }
    });
    let answers: Vec<(Right, bool)> = stream::iter(asked).buffered(AT_ONCE).try_collect().await?;
    Ok(answers.into_iter().filter(|(_, allowed)| !allowed).map(|(right, _)| right).collect())
}

fn shown(right: &Right) -> String {
    let group = if right.group.is_empty() { String::new() } else { format!(".{}", right.group) };
    let name = right.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    format!("{} {}{group}{name}", right.verb, right.resource)
}

/// Who gets the rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    User(String),
    Group(String),
}

/// The Role and its RoleBinding.
pub fn rbac(name: &EnvName, namespace: &str, subject: &Subject, probe: bool, credentials: bool) -> Vec<Value> {
    let mut rights = needed(name);
    if credentials {
        rights.extend(for_credentials(name));
    }
    if probe {
        rights.push(EXEC);
    }
    let called = format!("k8tre-{name}");
    let labels = json!({"app.kubernetes.io/managed-by": "k8tre"});
    let metadata = json!({"name": called, "namespace": namespace, "labels": labels});
    let (kind, who) = match subject {
        Subject::User(who) => ("User", who),
        Subject::Group(who) => ("Group", who),
    };
    vec![
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": rules(rights),
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": called},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": who}],
        }),
    ]
}

/// Rules of a Role: one for each resource, with the names that it is held to.
pub(super) fn rules(rights: Vec<Right>) -> Vec<Value> {
    let mut rules: Vec<Rule> = Vec::new();
    for right in rights {
        let fits = |rule: &Rule| {
            (rule.group, rule.resource, rule.names.is_empty()) == (right.group, right.resource, right.name.is_none())
        };
        let at = rules.iter().position(fits).unwrap_or_else(|| {
            rules.push(Rule { group: right.group, resource: right.resource, verbs: Vec::new(), names: Vec::new() });
            rules.len() - 1
        });
        let Rule { verbs, names, .. } = &mut rules[at];
        if !verbs.contains(&right.verb) {
            verbs.push(right.verb);
        }
        names.extend(right.name.filter(|name| !names.contains(name)));
    }
    rules.iter().map(Rule::value).collect()
}

struct Rule {
    group: &'static str,
    resource: &'static str,
    verbs: Vec<&'static str>,
    /// None means: any.
    names: Vec<String>,
}

impl Rule {
    fn value(&self) -> Value {
        let mut rule = json!({"apiGroups": [self.group], "resources": [self.resource], "verbs": self.verbs});
        if !self.names.is_empty() {
            rule["resourceNames"] = json!(self.names);
        }
        rule
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_allows_what_is_asked_for_and_no_secret_of_others() {
        let name: EnvName = "alice".parse().unwrap();
        let objects = rbac(&name, "argocd", &Subject::Group("devs".into()), false, false);
        let rules = objects[0]["rules"].as_array().unwrap();
        for right in needed(&name) {
            let allowed = rules.iter().any(|rule| {
                let has = |key: &str, wanted: &str| rule[key].as_array().unwrap().iter().any(|one| one == wanted);
                has("verbs", right.verb)
                    && has("apiGroups", right.group)
                    && has("resources", right.resource)
                    && right.name.as_ref().is_none_or(|name| has("resourceNames", name))
            });
            assert!(allowed, "{}", shown(&right));
        }
        let secrets: Vec<&Value> = rules.iter().filter(|rule| rule["resources"][0] == "secrets").collect();
        for rule in secrets.iter().filter(|rule| rule["verbs"] != json!(["create"])) {
            assert_eq!(rule["resourceNames"], json!(["k8tre-cluster-alice"]));
        }
        assert!(!serde_json::to_string(&objects).unwrap().contains("pods/exec"));
        assert_eq!(objects[1]["subjects"][0]["kind"], "Group");
    }
}
