//! `k8tre shared`: what an administrator of a shared Argo CD does for developers.

use serde_json::json;

use crate::cli::{RbacArgs, Shared};
use crate::commands::App;
use crate::error::Result;
use crate::gitops::environment::yaml;
use crate::report::SCHEMA;
use crate::shared::policy::policy;
use crate::shared::rights::{Subject, rbac};

pub fn run(app: &App, command: &Shared) -> Result<u8> {
    match command {
        Shared::Rbac(args) => print(app, args),
    }
}

fn print(app: &App, args: &RbacArgs) -> Result<u8> {
    let subject = match (&args.user, &args.group) {
        (Some(user), _) => Subject::User(user.clone()),
        (None, group) => Subject::Group(group.clone().unwrap_or_default()),
    };
    let mut objects = rbac(&args.name, &args.namespace, &subject, args.probe);
    if args.policy {
        objects.extend(policy(&args.name, &args.namespace, &subject));
    }
    if app.ui.is_json() {
        app.ui.json(&json!({"schema": SCHEMA, "environment": args.name, "objects": objects}))?;
        return Ok(0);
    }
    let documents = objects.iter().map(yaml).collect::<Result<Vec<String>>>()?;
    app.ui.data(documents.join("---\n").trim_end());
    Ok(0)
}
