//! What an environment has on the shared side: read from there, whatever the journal says.

use serde_json::Value;

use crate::argocd::side::ArgoCd;
use crate::context::Context;
use crate::error::Result;
use crate::shared::check::{project_type, secret_type};
use crate::shared::rights;
use crate::spec::Spec;
use crate::steps::look::{application_set_type, application_type};
use crate::steps::objects;

#[derive(Debug, Default)]
pub struct Remains {
    /// The root Application among them.
    pub applications: Vec<Value>,
    pub sets: Vec<Value>,
    pub projects: Vec<Value>,
    pub secret: Option<Value>,
    pub repositories: Vec<Value>,
}

impl Remains {
    pub async fn read(cx: &Context, argocd: &ArgoCd) -> Result<Remains> {
        Remains::of(&cx.spec, &cx.id, argocd).await
    }

    /// Only what is this environment's: a project of the same name that is somebody else's has their Applications.
    pub async fn of(spec: &Spec, id: &str, argocd: &ArgoCd) -> Result<Remains> {
        let name = &spec.name;
        let ours = |found: &Value| objects::owner(found) == Some(id);
        let (project, root) = (name.project(), name.root_application());
        let found = argocd.get(&project_type(), &project).await?;
        let theirs = found.as_ref().is_some_and(|found| !ours(found));
        let of_root = argocd.get(&project_type(), &rights::root_project(name)).await?;
        let projects = found.into_iter().chain(of_root).filter(ours).collect();
        let secret = argocd.get(&secret_type(), &rights::secret_name(name)).await?.filter(ours);
        let mut repositories = Vec::new();
        for secret in rights::repository_secrets(name) {
            // Who was given no login may not look, and has none there.
            let found = match argocd.get(&secret_type(), &secret).await {
                Err(error) if spec.argocd.shared().is_some_and(|shared| shared.repo_credentials) => return Err(error),
                found => found.unwrap_or_default(),
            };
            repositories.extend(found.filter(ours));
        }
        let mut applications = argocd.list(&application_type(), "").await?;
        applications.retain(|app| match app["metadata"]["name"] == *root {
            true => ours(app),
            false => !theirs && app["spec"]["project"] == *project && is_to_cluster(spec, app),
        });
        let mut sets = if theirs { Vec::new() } else { argocd.list(&application_set_type(), "").await? };
        sets.retain(|set| set["spec"]["template"]["spec"]["project"] == *project);
        Ok(Remains { applications, sets, projects, secret, repositories })
    }

    pub fn has_applications(&self) -> bool {
        !self.applications.is_empty() || !self.sets.is_empty()
    }

    /// All of it, each with its kind as kubectl names it.
    pub fn named(&self) -> Vec<(&'static str, &str)> {
        let applications = self.applications.iter().map(|app| ("application", app));
        let others = self.sets.iter().map(|set| ("applicationset", set));
        let others = others.chain(self.projects.iter().map(|project| ("appproject", project)));
        let others = others.chain(self.secret.iter().chain(&self.repositories).map(|secret| ("secret", secret)));
        applications.chain(others).map(|(kind, object)| (kind, called(object))).collect()
    }

    /// Names of the Applications and ApplicationSets, for a message.
    pub fn shown(&self) -> String {
        let names: Vec<&str> = self.applications.iter().chain(&self.sets).map(called).collect();
        crate::text::one_line(&names.join(", "), 300)
    }
}

/// The name of an object that was read, and so has one.
pub fn called(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Whether an Application deploys to the environment's own cluster.
pub fn is_to_cluster(spec: &Spec, app: &Value) -> bool {
    let destination = &app["spec"]["destination"];
    let server = destination["server"].as_str().map(|server| server.trim_end_matches('/'));
    // The cluster's name in Argo CD is the environment's.
    server == Some(spec.argocd.server().trim_end_matches('/')) || destination["name"] == *spec.name.as_str()
}
