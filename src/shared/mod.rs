//! An Argo CD that others use too: what the environment needs there, what it finds, and what it leaves.

pub mod address;
pub mod check;
pub mod credentials;
pub mod environments;
pub mod fence;
pub mod guest;
pub mod janitor;
pub mod needs;
pub mod place;
pub mod policy;
pub mod probe;
pub mod readable;
pub mod remains;
pub mod removal;
pub mod rights;
pub mod role;

use serde_json::{Value, json};

use crate::argocd::side::ArgoCd;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::ports::kube::Type;
use crate::spec::SharedArgoCd;
use crate::steps::objects;

/// Label by which an administrator finds what belongs to a developer's environment.
pub const DEVELOPER: &str = "developer";

/// The object with this environment's mark, and findable among those of others.
pub fn marked(cx: &Context, mut object: Value) -> Value {
    object["metadata"]["labels"][DEVELOPER] = json!(cx.spec.name);
    objects::owned(object, &cx.id)
}

/// The shared Argo CD, if it answers. That is asked once: what a silent one takes, each further question would take.
pub async fn answering(cx: &Context) -> Result<ArgoCd> {
    let argocd = cx.require_argocd().await?;
    match cx.silence_of_argocd(&argocd).await {
        None => Ok(argocd),
        Some(why) => Err(Error::failed(format!("{} does not answer: {why}", called(cx)))),
    }
}

fn called(cx: &Context) -> String {
    match cx.spec.argocd.shared() {
        Some(shared) => format!("the shared Argo CD in {}", shared.place()),
        None => format!("Argo CD in the cluster {}", cx.provider().cluster(&cx.spec.name)),
    }
}

/// Whether an object of that name there is somebody else's.
pub async fn is_foreign(cx: &Context, argocd: &ArgoCd, of: &Type, name: &str) -> Result<bool> {
    let found = argocd.get(of, name).await?;
    Ok(found.is_some_and(|found| objects::owner(&found) != Some(&cx.id)))
}

/// A command that shows what an environment has there.
pub fn search(shared: &SharedArgoCd, name: &crate::names::EnvName) -> String {
    format!(
        "kubectl --context {} -n {} get applications,appprojects,secrets -l {DEVELOPER}={name}",
        shared.context, shared.namespace
    )
}
