//! What keeps a developer's environment and everybody else's apart on the shared side: looked at before anything is
//! written there. Reads only; the judgements are pure.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::gitops::selector::Selector;
use crate::settings::{self, FileSettings};

/// Env folders of what people rely on.
const PRODUCTION: [&str; 2] = ["prd", "prod"];

/// Names of the ApplicationSets that would take a cluster with these labels for one of their own.
pub fn takers<'a>(sets: &'a [Value], project: &str, labels: &BTreeMap<String, String>) -> Vec<&'a str> {
    let others = sets.iter().filter(|set| set["spec"]["template"]["spec"]["project"] != *project);
    let taking = others.filter(|set| any_selects(&set["spec"]["generators"], labels));
    taking.filter_map(|set| set["metadata"]["name"].as_str()).collect()
}

fn any_selects(generators: &Value, labels: &BTreeMap<String, String>) -> bool {
    generators.as_array().into_iter().flatten().any(|generator| {
        let nested = ["matrix", "merge"].into_iter().any(|kind| any_selects(&generator[kind]["generators"], labels));
        let clusters = generator.get("clusters").is_some_and(|clusters| {
            // What cannot be read, Argo CD cannot use either.
            let selector = Selector::parse(&clusters["selector"]);
            selector.is_ok_and(|selector| {
                selector.matches(|key| match key {
                    "argocd.argoproj.io/secret-type" => Some("cluster"),
                    key => labels.get(key).map(String::as_str),
                })
            })
        });
        nested || clusters
    })
}

/// What shows that an Argo CD deploys production; none if nothing does.
pub fn production(applications: &[Value], clusters: &[Value]) -> Option<String> {
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let of_cluster = clusters
        .iter()
        .find(|secret| PRODUCTION.iter().any(|production| secret["metadata"]["labels"]["environment"] == **production));
    if let Some(secret) = of_cluster {
        return Some(format!(
            "the cluster Secret {} has the label environment={}",
            name(secret),
            secret["metadata"]["labels"]["environment"].as_str().unwrap_or_default()
        ));
    }
    let of_application = applications.iter().find(|app| {
        let sources = app["spec"]["sources"].as_array().into_iter().flatten().chain([&app["spec"]["source"]]);
        let mut paths = sources.filter_map(|source| source["path"].as_str());
        paths.any(|path| PRODUCTION.iter().any(|production| path.ends_with(&format!("/envs/{production}"))))
    });
    of_application.map(|app| format!("the Application {} deploys production", name(app)))
}

/// Refuses a context that the repository's settings or the user's own protect from developers' environments.
pub fn refuse_protected(cx: &Context, context: &str) -> Result<()> {
    let mut protected = FileSettings::read(&cx.spec.repo.join(settings::FILE))?.protected_contexts;
    protected.extend(FileSettings::read(&cx.dirs.config.join("config.toml"))?.protected_contexts);
    if !is_protected(context, &protected) {
        return Ok(());
    }
    Err(Error::preflight(format!("the context {context} is protected: `protected-contexts` in your settings names it"))
        .hint("use one that is meant for developers' environments"))
}

/// Whether a context is on the user's list: by its name, or by the beginning of it and a `*`.
fn is_protected(context: &str, list: &[String]) -> bool {
    list.iter().any(|entry| match entry.strip_suffix('*') {
        Some(beginning) => context.starts_with(beginning),
        None => context == entry,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(name: &str, project: &str, generators: Value) -> Value {
        json!({"metadata": {"name": name}, "spec": {"generators": generators, "template": {"spec": {"project": project}}}})
    }

    #[test]
    fn sets_that_take_every_cluster_are_named_and_those_of_environments_are_not() {
        let labels = BTreeMap::from([
            ("environment".to_owned(), "dev-alice".to_owned()),
            ("vendor".to_owned(), "kind".to_owned()),
        ]);
        let by_environment = json!([{"matrix": {"generators": [
            {"git": {}}, {"clusters": {"selector": {"matchLabels": {"environment": "{{index .path.segments 3}}", "vendor": "kind"}}}}]}}]);
        let sets = [
            set("stable", "default", by_environment),
            set("addons", "default", json!([{"clusters": {}}])),
            set(
                "kinds",
                "default",
                json!([{"merge": {"generators": [{"clusters": {"selector": {"matchLabels": {"vendor": "kind"}}}}]}}]),
            ),
            set(
                "others",
                "default",
                json!([{"clusters": {"selector": {"matchExpressions": [{"key": "environment", "operator": "In", "values": ["dev"]}]}}}]),
            ),
            set("ours", "dev-alice", json!([{"clusters": {}}])),
        ];
        assert_eq!(takers(&sets, "dev-alice", &labels), ["addons", "kinds"]);
    }

    #[test]
    fn production_is_known_by_labels_and_by_folders() {
        let app = |path: &str| json!({"metadata": {"name": "a"}, "spec": {"source": {"path": path}}});
        assert!(production(&[app("apps/a/envs/dev"), app("apps/prd/base")], &[]).is_none());
        assert!(production(&[app("apps/a/envs/prd")], &[]).unwrap().contains("Application a"));
        let secret = json!({"metadata": {"name": "c", "labels": {"environment": "prod"}}});
        assert!(production(&[], &[secret]).unwrap().contains("environment=prod"));
    }

    #[test]
    fn protected_contexts_are_names_or_beginnings() {
        let list = ["prod".to_owned(), "arn:aws:*".to_owned()];
        assert!(is_protected("prod", &list) && is_protected("arn:aws:eks:x", &list));
        assert!(!is_protected("prod-2", &list));
    }
}
