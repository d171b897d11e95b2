//! `k8tre dev list`: every environment of this user on this machine.

use futures::future::join_all;
use serde::Serialize;

use crate::commands::App;
use crate::context::{Context, Options, Record};
use crate::error::Result;
use crate::journal;
use crate::providers::ClusterState;
use crate::report::{SCHEMA, age, expires, table};

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<&'static str>,
    cluster: String,
    state: String,
    /// What it takes of the cluster that carries it.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<String>,
    repository: String,
    branch: String,
    created: Option<jiff::Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<jiff::Timestamp>,
}

pub async fn run(app: &App) -> Result<u8> {
    let names = journal::names(&app.dirs)?;
    let rows: Vec<Row> = join_all(names.iter().map(|name| async move {
        let journal = match journal::read(&app.dirs, name) {
            Ok(Some(journal)) => journal,
            Ok(None) => return row_without_journal(name, "nothing recorded"),
            Err(error) => return row_without_journal(name, &error.to_string()),
        };
        let facts = Box::new(journal.facts.clone());
        let cx = Context::new(&journal, Record::Reading(facts), app.dirs.clone(), Options::default(), app.ui.clone());
        let (state, usage) = match cx.provider().survey(&cx).await {
            Ok((ClusterState::Stopped(_), usage)) if journal.facts.paused_at.is_some() => ("paused".to_owned(), usage),
            Ok((state, usage)) => (state.to_string(), usage),
            Err(error) => (format!("unknown: {}", error.message()), None),
        };
        Row {
            name: name.to_string(),
            provider: Some(cx.provider().name()),
            cluster: cx.provider().cluster(&journal.spec.name),
            state,
            usage,
            repository: journal.spec.repo.display().to_string(),
            branch: journal.spec.name.branch(),
            created: Some(journal.created),
            expires: journal.spec.expires,
        }
    }))
    .await;
    if app.ui.is_json() {
        app.ui.json(&serde_json::json!({"schema": SCHEMA, "environments": rows}))?;
    } else if rows.is_empty() {
        app.ui.say("no environments; make one: k8tre dev up --sample");
    } else {
        // Only of clusters that several share does it matter.
        let shared = rows.iter().any(|row| row.usage.is_some());
        let lines = rows.iter().map(|row| {
            let created = row.created.map(age).unwrap_or_default();
            let expires = row.expires.map(expires).unwrap_or_else(|| "-".into());
            let mut cells = vec![row.name.clone(), row.state.clone(), created, expires, row.branch.clone()];
            cells.extend(shared.then(|| row.usage.clone().unwrap_or_else(|| "-".into())));
            cells.push(row.repository.clone());
            cells
        });
        let mut header = vec!["NAME", "CLUSTER", "AGE", "EXPIRES", "BRANCH"];
        header.extend(shared.then_some("ASKS FOR"));
        header.push("REPOSITORY");
        app.ui.data(&table(&header, lines));
    }
    Ok(0)
}

fn row_without_journal(name: &crate::names::EnvName, state: &str) -> Row {
    Row {
        name: name.to_string(),
        provider: None,
        cluster: name.cluster(),
        state: state.to_owned(),
        usage: None,
        repository: String::new(),
        branch: name.branch(),
        created: None,
        expires: None,
    }
}
