//! Repository Secrets on a shared Argo CD, by which it reads a repository that is not everybody's: for this one address,
//! and for this environment's projects alone.

use async_trait::async_trait;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::{Error, Result};
use crate::shared::check::secret_type;
use crate::shared::rights::{repository_secrets, root_project};
use crate::shared::{answering, marked};
use crate::steps::{PROJECT, REPOSITORY_ACCESS, objects};

pub struct RepositoryAccess;

/// The Secrets without what is secret in them. Argo CD gives each to the Applications of one project.
fn open_parts(cx: &Context) -> [Value; 2] {
    let name = &cx.spec.name;
    let encoded = |text: &str| BASE64_STANDARD.encode(text);
    let projects = [name.project(), root_project(name)];
    let mut projects = projects.into_iter();
    repository_secrets(name).map(|called| {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": called, "labels": {"argocd.argoproj.io/secret-type": "repository"}},
            "data": {
                "type": encoded("git"), "url": encoded(&cx.spec.source.url()),
                "project": encoded(&projects.next().unwrap_or_default()),
            },
        });
        marked(cx, secret)
    })
}

/// The Secrets with the login, if this run has one.
fn whole(cx: &Context) -> Option<[Value; 2]> {
    let login = cx.options.login.as_ref()?;
    let encoded = |text: &str| json!(BASE64_STANDARD.encode(text));
    Some(open_parts(cx).map(|mut secret| {
        secret["data"]["username"] = encoded(&login.username);
        secret["data"]["password"] = encoded(login.password.expose_secret());
        secret
    }))
}

#[async_trait]
impl Step<Context> for RepositoryAccess {
    fn id(&self) -> StepId {
        REPOSITORY_ACCESS
    }

    fn needs(&self) -> &[StepId] {
        &[PROJECT]
    }

    fn describe(&self) -> String {
        "repository Secrets, for this environment's projects alone".into()
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        let argocd = cx.require_argocd().await?;
        for secret in whole(cx).unwrap_or_else(|| open_parts(cx)) {
            match objects::observe(&argocd.kube, &secret, &argocd.namespace, &cx.id).await? {
                State::Ready => {}
                other => return Ok(other),
            }
        }
        for name in repository_secrets(&cx.spec.name) {
            let found = argocd.get(&secret_type(), &name).await?.unwrap_or_default();
            if !found["data"]["password"].is_string() {
                return Ok(State::Drifted(format!("Secret {name} holds no login")));
            }
        }
        Ok(State::Ready)
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        let argocd = answering(cx).await?;
        let secrets = whole(cx).ok_or_else(|| {
            Error::usage("the login for the repository is not recorded here, and has to be given again")
                .hint(format!("k8tre dev up {} --repo-credentials git", cx.spec.name))
        })?;
        for secret in secrets {
            objects::refuse_foreign(&argocd.kube, &secret, &argocd.namespace, &cx.id).await?;
            argocd.apply(&secret).await?;
        }
        Ok(())
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        let argocd = answering(cx).await.map_err(|error| error.context("the repository Secrets stay"))?;
        for secret in open_parts(cx) {
            objects::delete_owned(&argocd.kube, &secret, &argocd.namespace, &cx.id).await?;
        }
        Ok(())
    }
}
