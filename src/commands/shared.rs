//! An Argo CD that others use too: what `up` checks and asks before it writes there, and `k8tre shared`, which is for its
//! administrators.

use futures::{StreamExt, stream};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::argocd::side::ArgoCd;
use crate::cli::{GcManifestArgs, RbacArgs, Shared, SharedListArgs};
use crate::commands::App;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::gitops::environment::yaml;
use crate::journal::Journal;
use crate::providers;
use crate::report::{SCHEMA, age, expires, table};
use crate::shared::environments::{self, Registered};
use crate::shared::guest::{Guest, Reach};
use crate::shared::janitor::{self, Janitor};
use crate::shared::policy::policy;
use crate::shared::rights::{Subject, rbac};
use crate::shared::{check, place};
use crate::spec::SharedArgoCd;
use crate::steps::{CLUSTER, PROJECT, REGISTRATION, ROOT};

/// Questions to clusters under way at once.
const AT_ONCE: usize = 4;

pub async fn run(app: &App, command: &Shared) -> Result<u8> {
    match command {
        Shared::Rbac(args) => print(app, args),
        Shared::GcManifest(args) => {
            let GcManifestArgs { image, namespace, schedule, argocd, probe, without_end } = args;
            let (argocd, probe, without_end) = (argocd.as_deref(), *probe, *without_end);
            write(
                app,
                json!({}),
                &janitor::objects(&Janitor { image, namespace, schedule, argocd, probe, without_end }),
            )
        }
        Shared::List(args) => tokio::select! {
            () = app.cancel.cancelled() => Err(Error::interrupted()),
            listed = list(app, args) => listed,
        },
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    developer: String,
    id: String,
    created: Option<Timestamp>,
    expires: Option<Timestamp>,
    token_expires: Option<Timestamp>,
    server: Option<String>,
    /// Whether Argo CD reaches the cluster; null if nobody asked.
    reachable: Option<bool>,
    /// Why it does not, or why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    applications: usize,
    healthy: usize,
    repository: Option<String>,
}

async fn list(app: &App, args: &SharedListArgs) -> Result<u8> {
    let place = place::named(&args.argocd)?;
    let argocd = place::open(&place).await?;
    argocd.kube.ready().await?;
    let all = environments::all(&argocd).await?;
    let rows = all.into_iter().map(|one| row(app, args, &place, &argocd, one));
    let rows: Vec<Result<Row>> = stream::iter(rows).buffered(AT_ONCE).collect().await;
    let rows = rows.into_iter().collect::<Result<Vec<Row>>>()?;
    if app.ui.is_json() {
        app.ui.json(&json!({
            "schema": SCHEMA, "context": place.context, "namespace": place.namespace, "environments": rows,
        }))?;
    } else if rows.is_empty() {
        app.ui.say(&format!("no developer's environment is registered in {}", place.place()));
    } else {
        let header = ["DEVELOPER", "AGE", "EXPIRES", "HEALTHY", "REACHABLE", "SERVER"];
        app.ui.data(&table(&header, rows.iter().map(cells)));
    }
    Ok(0)
}

async fn row(app: &App, args: &SharedListArgs, place: &SharedArgoCd, argocd: &ArgoCd, one: Registered) -> Result<Row> {
    let (reachable, why) = match args.no_probe {
        true => (None, None),
        false => match Guest::new(&one, place, &app.dirs, app.ui.clone())?.reach(argocd).await {
            Reach::Yes => (Some(true), None),
            Reach::No(why) => (Some(false), Some(why)),
            Reach::Unknown(why) => (None, Some(why)),
        },
    };
    Ok(Row {
        developer: one.name.to_string(),
        id: one.id,
        created: one.created,
        expires: one.expires,
        token_expires: one.token_expires,
        server: one.server,
        reachable,
        why,
        applications: one.applications,
        healthy: one.healthy,
        repository: one.repository,
    })
}

fn cells(row: &Row) -> Vec<String> {
    let reachable = match (row.reachable, &row.why) {
        (Some(true), _) => "yes".to_owned(),
        (Some(false), why) => format!("no: {}", why.as_deref().unwrap_or_default()),
        (None, Some(why)) => format!("unknown: {why}"),
        (None, None) => "-".to_owned(),
    };
    let dash = || "-".to_owned();
    vec![
        row.developer.clone(),
        row.created.map(age).unwrap_or_else(dash),
        row.expires.map(expires).unwrap_or_else(dash),
        format!("{}/{}", row.healthy, row.applications),
        reachable,
        row.server.clone().unwrap_or_else(dash),
    ]
}

fn print(app: &App, args: &RbacArgs) -> Result<u8> {
    let subject = match (&args.user, &args.group) {
        (Some(user), _) => Subject::User(user.clone()),
        (None, group) => Subject::Group(group.clone().unwrap_or_default()),
    };
    let mut objects = rbac(&args.name, &args.namespace, &subject, args.probe, args.repo_credentials);
    if args.policy {
        objects.extend(policy(&args.name, &args.namespace, &subject));
    }
    write(app, json!({"environment": args.name}), &objects)
}

/// Objects for an administrator to apply.
fn write(app: &App, of: Value, objects: &[Value]) -> Result<u8> {
    if app.ui.is_json() {
        let mut document = of;
        (document["schema"], document["objects"]) = (json!(SCHEMA), json!(objects));
        app.ui.json(&document)?;
        return Ok(0);
    }
    let documents = objects.iter().map(yaml).collect::<Result<Vec<String>>>()?;
    app.ui.data(documents.join("---\n").trim_end());
    Ok(0)
}

/// Refuses what cannot be or must not be on the shared side.
pub async fn check(app: &App, cx: &Context, at: &SharedArgoCd) -> Result<()> {
    let warnings = check::check(cx, at).await?;
    warnings.iter().for_each(|warning| app.ui.warn(warning));
    Ok(())
}

/// Other people's Argo CD, or cluster, is written to only after somebody said so, once.
pub fn confirm(app: &App, journal: &Journal, changes: Option<String>, yes: bool) -> Result<()> {
    let mut all = Vec::new();
    let begun = |steps: &[&str]| steps.iter().any(|id| journal.steps.contains_key(*id));
    all.extend(providers::of(&journal.spec).ground(&journal.spec.name).filter(|_| !begun(&[CLUSTER])));
    if let Some(shared) = journal.spec.argocd.shared().filter(|_| !begun(&[REGISTRATION, PROJECT, ROOT])) {
        all.push(format!(
            "{} will be registered in the Argo CD of context {}, namespace {}, as {}.",
            journal.spec.name, shared.context, shared.namespace, shared.server
        ));
    }
    all.extend(changes);
    if all.is_empty() {
        return Ok(());
    }
    let what = all.join(" ");
    if yes {
        app.ui.say(&what);
        return Ok(());
    }
    match app.ui.confirm(&format!("{what} Go on?"), "--yes")? {
        true => Ok(()),
        false => Err(Error::interrupted()),
    }
}
