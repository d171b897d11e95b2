//! An Argo CD that others use too: what `up` checks and asks before it writes there, and `k8tre shared`, which is for its
//! administrators.

use serde_json::json;

use crate::cli::{RbacArgs, Shared};
use crate::commands::App;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::gitops::environment::yaml;
use crate::journal::Journal;
use crate::report::SCHEMA;
use crate::settings::{self, FileSettings};
use crate::shared::check;
use crate::shared::policy::policy;
use crate::shared::rights::{Subject, rbac};
use crate::spec::SharedArgoCd;
use crate::steps::{PROJECT, REGISTRATION, ROOT};

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

/// Refuses what cannot be or must not be on the shared side.
pub async fn check(app: &App, cx: &Context, at: &SharedArgoCd) -> Result<()> {
    let warning = check::check(cx, at, &protected(app, cx)?).await?;
    warning.iter().for_each(|warning| app.ui.warn(warning));
    Ok(())
}

/// Contexts that no environment may be registered in, by the repository's settings and the user's own.
fn protected(app: &App, cx: &Context) -> Result<Vec<String>> {
    let mut protected = FileSettings::read(&cx.spec.repo.join(settings::FILE))?.protected_contexts;
    protected.extend(FileSettings::read(&app.dirs.config.join("config.toml"))?.protected_contexts);
    Ok(protected)
}

/// Other people's Argo CD is written to only after somebody said so, once.
pub fn confirm(app: &App, journal: &Journal, yes: bool) -> Result<()> {
    let Some(shared) = journal.spec.argocd.shared() else { return Ok(()) };
    let begun = [REGISTRATION, PROJECT, ROOT].iter().any(|id| journal.steps.contains_key(*id));
    let what = format!(
        "{} will be registered in the Argo CD of context {}, namespace {}, as {}.",
        journal.spec.name, shared.context, shared.namespace, shared.server
    );
    if begun || yes {
        if !begun {
            app.ui.say(&what);
        }
        return Ok(());
    }
    match app.ui.confirm(&format!("{what} Go on?"), "--yes")? {
        true => Ok(()),
        false => Err(Error::interrupted()),
    }
}
