//! Where an Application is to be deployed: outside its project, unknown to Argo CD, or not answering.

use super::view::{Refusal, View};
use super::words::{group, innermost, pattern, quoted, unresolved};
use super::{Cause, Family};

pub const FAMILY: Family = Family {
    codes: &[
        "destination-outside-project",
        "project-missing",
        "source-outside-project",
        "kind-outside-project",
        "destination-unknown",
        "destination-unreachable",
    ],
    explain,
};

const REGISTERED: &str = "kubectl -n argocd get secrets -l argocd.argoproj.io/secret-type=cluster";

fn explain(view: &View) -> Option<Cause> {
    let whole = view.comparison_errors().chain([view.operation_message()]).find_map(|message| {
        outside(view, message)
            .or_else(|| missing_project(view, message))
            .or_else(|| unknown(message))
            .or_else(|| unreachable(message))
    });
    whole.or_else(|| view.refusals.iter().find_map(object_outside))
}

/// A single object that the project has no room for.
fn object_outside(refusal: &Refusal) -> Option<Cause> {
    let found =
        pattern!(r"(namespace|resource) (\S+) is not permitted in project '?([^'\s]+)").captures(refusal.message)?;
    let (what, project) = (&found[2], &found[3]);
    let (code, root) = match &found[1] {
        "namespace" => {
            ("destination-outside-project", format!("AppProject {project} does not list the namespace {what}"))
        }
        _ => ("kind-outside-project", format!("AppProject {project} does not allow objects of this kind")),
    };
    let hint = format!("kubectl -n argocd get appproject {} -o jsonpath='{{.spec}}'", quoted(project));
    Some(Cause::new(code).because(refusal.link()).because(root).hint(hint))
}

fn outside(view: &View, message: &str) -> Option<Cause> {
    let (code, project) = match message {
        m if m.contains("application destination") => {
            ("destination-outside-project", group(pattern!(r"in project '([^']*)'"), m)?)
        }
        m if m.contains("application repo") => {
            ("source-outside-project", group(pattern!(r"not permitted in project '?([^'\s]+)"), m)?)
        }
        _ => return None,
    };
    let spec = &view.app["spec"];
    let what = match code {
        "source-outside-project" => {
            format!("repository {}", spec["source"]["repoURL"].as_str().unwrap_or("of its source"))
        }
        _ => {
            let namespace = spec["destination"]["namespace"].as_str().unwrap_or("(none)");
            let server = spec["destination"]["server"].as_str().or_else(|| spec["destination"]["name"].as_str());
            format!("destination {namespace} on {}", server.unwrap_or("an unnamed cluster"))
        }
    };
    Some(
        Cause::new(code)
            .because(format!("{what} is not allowed"))
            .because(format!("AppProject {project} does not list it"))
            .hint(format!("kubectl -n argocd get appproject {} -o jsonpath='{{.spec}}'", quoted(project))),
    )
}

fn missing_project(view: &View, message: &str) -> Option<Cause> {
    let project = group(pattern!(r"referencing project (\S+) which does not exist"), message)?;
    let namespace = view.app["metadata"]["namespace"].as_str().unwrap_or("argocd");
    Some(
        Cause::new("project-missing")
            .because(format!("no AppProject \"{project}\""))
            .hint(format!("kubectl -n {namespace} get appprojects")),
    )
}

fn unknown(message: &str) -> Option<Cause> {
    let cluster = group(pattern!(r#"cluster "([^"]+)" not found"#), message)
        .or_else(|| group(pattern!(r"there are no clusters with this name: (\S+)"), message))?;
    Some(
        Cause::new("destination-unknown")
            .because(format!("no cluster {cluster} is registered in Argo CD"))
            .hint(REGISTERED),
    )
}

fn unreachable(message: &str) -> Option<Cause> {
    let server = group(pattern!(r#"failed to get cluster info for "([^"]+)""#), message)
        .or_else(|| group(pattern!(r#"error getting cluster by server "([^"]+)""#), message))?;
    let reason = match unresolved(message) {
        Some(name) => format!("{name} does not resolve"),
        None => innermost(message).to_owned(),
    };
    Some(
        Cause::new("destination-unreachable")
            .because(format!("cluster {server} cannot be used"))
            .because(reason)
            .hint(REGISTERED),
    )
}
