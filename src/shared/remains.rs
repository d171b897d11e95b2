//! What an environment has on the shared side: read from there, whatever the journal says.

use serde_json::Value;

use crate::argocd::side::ArgoCd;
use crate::context::Context;
use crate::error::Result;
use crate::shared::check::{project_type, secret_type};
use crate::shared::{is_foreign, rights};
use crate::steps::look::{application_set_type, application_type};
use crate::steps::objects;

#[derive(Debug, Default)]
pub struct Remains {
    /// The root Application among them.
    pub applications: Vec<Value>,
    pub sets: Vec<String>,
    pub projects: Vec<String>,
    pub secret: Option<String>,
    pub repositories: Vec<String>,
}

impl Remains {
    /// Only what is this environment's: a project of the same name that is somebody else's has their Applications.
    pub async fn read(cx: &Context, argocd: &ArgoCd) -> Result<Remains> {
        let name = &cx.spec.name;
        let mut remains = Remains::default();
        for project in [name.project(), rights::root_project(name)] {
            if argocd.get(&project_type(), &project).await?.is_some_and(|found| objects::owner(&found) == Some(&cx.id))
            {
                remains.projects.push(project);
            }
        }
        let secret = rights::secret_name(name);
        if argocd.get(&secret_type(), &secret).await?.is_some_and(|found| objects::owner(&found) == Some(&cx.id)) {
            remains.secret = Some(secret);
        }
        for secret in rights::repository_secrets(name) {
            // Who was given no login may not look, and has none there.
            let found = argocd.get(&secret_type(), &secret).await;
            let found = if cx.spec.argocd.shared().is_some_and(|shared| shared.repo_credentials) {
                found?
            } else {
                found.unwrap_or_default()
            };
            if found.is_some_and(|found| objects::owner(&found) == Some(&cx.id)) {
                remains.repositories.push(secret);
            }
        }
        let theirs = is_foreign(cx, argocd, &project_type(), &name.project()).await?;
        let (project, root) = (name.project(), name.root_application());
        let applications = argocd.list(&application_type(), "").await?;
        remains.applications.extend(applications.into_iter().filter(|app| match app["metadata"]["name"] == *root {
            true => objects::owner(app) == Some(&cx.id),
            false => !theirs && app["spec"]["project"] == *project && is_to_cluster(cx, app),
        }));
        if !theirs {
            let sets = argocd.list(&application_set_type(), "").await?;
            let ours = sets.iter().filter(|set| set["spec"]["template"]["spec"]["project"] == *project);
            remains.sets.extend(ours.filter_map(|set| set["metadata"]["name"].as_str().map(str::to_owned)));
        }
        Ok(remains)
    }

    pub fn has_applications(&self) -> bool {
        !self.applications.is_empty() || !self.sets.is_empty()
    }

    /// All of it, each with its kind as kubectl names it.
    pub fn named(&self) -> Vec<(&'static str, &str)> {
        let applications =
            self.applications.iter().filter_map(|app| Some(("application", app["metadata"]["name"].as_str()?)));
        let others = self.sets.iter().map(|set| ("applicationset", set.as_str()));
        let others = others.chain(self.projects.iter().map(|project| ("appproject", project.as_str())));
        let others =
            others.chain(self.secret.iter().chain(&self.repositories).map(|secret| ("secret", secret.as_str())));
        applications.chain(others).collect()
    }

    /// Names of the Applications and ApplicationSets, for a message.
    pub fn shown(&self) -> String {
        let applications = self.applications.iter().filter_map(|app| app["metadata"]["name"].as_str());
        let names: Vec<&str> = applications.chain(self.sets.iter().map(String::as_str)).collect();
        crate::text::one_line(&names.join(", "), 300)
    }
}

/// Whether an Application deploys to the environment's own cluster.
pub fn is_to_cluster(cx: &Context, app: &Value) -> bool {
    let destination = &app["spec"]["destination"];
    let server = destination["server"].as_str().map(|server| server.trim_end_matches('/'));
    server == Some(cx.spec.argocd.server().trim_end_matches('/')) || destination["name"] == *cx.cluster_name()
}
