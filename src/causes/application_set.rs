//! An Application that its ApplicationSet does not make, and the app-of-apps that holds such a set.

use super::evidence::{is, items, name_of, namespace_of};
use super::view::View;
use super::words::innermost;
use super::{Cause, Family};
use crate::ports::kube::condition;

pub const FAMILY: Family = Family { codes: &["applicationset-error"], explain };

fn explain(view: &View) -> Option<Cause> {
    let errors: Vec<(&str, &str, &str)> = view
        .evidence
        .application_sets
        .iter()
        .filter_map(|set| {
            let error = condition(set, "ErrorOccurred")?;
            Some((namespace_of(set), name_of(set), error["message"].as_str()?))
        })
        .collect();
    let (namespace, name, message) = match view.app["spec"].is_null() {
        true => of_missing(view, &errors)?,
        false => *errors.iter().find(|(namespace, name, _)| {
            let held = |one: &&serde_json::Value| one["kind"] == "ApplicationSet" && one["name"] == *name;
            view.resources().find(held).is_some_and(|one| one["namespace"].as_str().unwrap_or(namespace) == *namespace)
        })?,
    };
    Some(
        Cause::new("applicationset-error")
            .because(format!("ApplicationSet {name} reports an error"))
            .because(shortened(message))
            .hint(format!("kubectl -n {namespace} get applicationset {name} -o jsonpath='{{.status.conditions}}'")),
    )
}

/// The set which says the missing name, or whose template can make it; with a single set in error, that.
fn of_missing<'a>(view: &View, errors: &[(&'a str, &'a str, &'a str)]) -> Option<(&'a str, &'a str, &'a str)> {
    let app = view.name();
    let template = |namespace: &str, name: &str| {
        let set = view.evidence.application_sets.iter().find(|set| is(set, namespace, name))?;
        set["spec"]["template"]["metadata"]["name"].as_str()
    };
    let fits = |&&(namespace, name, message): &&(&str, &str, &str)| {
        let words = message.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '.'));
        let says = words.into_iter().any(|word| word == app);
        says || template(namespace, name).is_some_and(|template| {
            let start = template.split("{{").next().unwrap_or_default();
            let end = template.rsplit("}}").next().unwrap_or_default();
            !(start.is_empty() && end.is_empty()) && app.starts_with(start) && app.ends_with(end)
        })
    };
    errors.iter().find(fits).or(if errors.len() == 1 { errors.first() } else { None }).copied()
}

/// The reason at the end of Go's chain, with the expression if it is a template's.
fn shortened(message: &str) -> String {
    match message.split_once("template: ") {
        Some((_, rest)) if rest.contains("executing") => match rest.split_once(" at ") {
            Some((_, at)) => format!("template: {at}"),
            None => rest.to_owned(),
        },
        _ if message.starts_with("error generating params") => format!("generator: {}", innermost(message)),
        _ => message.to_owned(),
    }
}

/// Whether an Application's resources include ApplicationSets, which are then worth reading.
pub fn holds_sets(application: &serde_json::Value) -> bool {
    application["spec"].is_null()
        || items(&application["status"]["resources"]).any(|one| one["kind"] == "ApplicationSet")
}
