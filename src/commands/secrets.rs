//! `k8tre dev secrets`: which secrets the environment made, and their values when asked for.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::cli::SecretsArgs;
use crate::commands::{App, select};
use crate::error::{Error, Result, ResultExt};
use crate::ports::kube::{Kube, secret_value};
use crate::report::{SCHEMA, table};
use crate::steps::secrets::made;

#[derive(Serialize)]
struct Row {
    namespace: String,
    name: String,
    keys: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<BTreeMap<String, String>>,
}

pub async fn run(app: &App, args: &SecretsArgs) -> Result<u8> {
    let name = select::existing_name(app, &args.name)?;
    let journal = select::journal_of(app, &name)?;
    let kubeconfig = app.dirs.kubeconfig(name.as_str());
    let again = format!("k8tre dev up {name}");
    let kube = Kube::open(&kubeconfig, None).await.hint(&again)?;
    let secrets = made(&kube, &journal.id).await.hint(format!("k8tre dev status {name}"))?;
    if let Some(wanted) = args.reveal.as_deref().filter(|wanted| !wanted.is_empty()) {
        return reveal(app, wanted, &secrets);
    }
    let rows: Vec<Row> = secrets.iter().map(|secret| row(secret, args.reveal.is_some())).collect();
    if app.ui.is_json() {
        app.ui.json(&serde_json::json!({"schema": SCHEMA, "environment": name, "secrets": rows}))?;
    } else if rows.is_empty() {
        app.ui.say("no secrets: the repository lists none in ci/ci-secrets.yaml, or they are not made yet");
        app.ui.say(&format!("make them: {again}"));
    } else if args.reveal.is_some() {
        let lines = rows.iter().flat_map(|row| {
            let values = row.values.iter().flatten();
            values.map(|(key, value)| vec![row.name.clone(), key.clone(), crate::text::printable(value)])
        });
        app.ui.data(&table(&["SECRET", "KEY", "VALUE"], lines));
    } else {
        let lines = rows.iter().map(|row| vec![row.namespace.clone(), row.name.clone(), row.keys.join(", ")]);
        app.ui.data(&table(&["NAMESPACE", "SECRET", "KEYS"], lines));
        app.ui.say("");
        app.ui.say(&format!("  see a value: k8tre dev secrets {name} --reveal=SECRET/KEY"));
    }
    Ok(0)
}

/// One secret or one key of it; a key's value alone, so that a script can use it.
fn reveal(app: &App, wanted: &str, secrets: &[Value]) -> Result<u8> {
    let (name, key) = match wanted.split_once('/') {
        Some((name, key)) => (name, Some(key)),
        None => (wanted, None),
    };
    let named = |secret: &&Value| secret["metadata"]["name"] == name;
    let secret = secrets.iter().find(named).map(|secret| row(secret, true)).ok_or_else(|| {
        let names: Vec<&str> = secrets.iter().filter_map(|secret| secret["metadata"]["name"].as_str()).collect();
        Error::not_found(format!("there is no secret {name}")).hint(format!("there are: {}", names.join(", ")))
    })?;
    let values = secret.values.unwrap_or_default();
    match key {
        _ if app.ui.is_json() && key.is_none_or(|key| values.contains_key(key)) => {
            let chosen: BTreeMap<_, _> =
                values.iter().filter(|(known, _)| key.is_none_or(|key| key == *known)).collect();
            app.ui.json(&serde_json::json!({"schema": SCHEMA, "secret": name, "values": chosen}))?;
        }
        Some(key) => match values.get(key) {
            Some(value) => app.ui.data(value),
            None => {
                return Err(Error::not_found(format!("the secret {name} has no key {key}"))
                    .hint(format!("it has: {}", secret.keys.join(", "))));
            }
        },
        None => {
            let lines = values.iter().map(|(key, value)| vec![key.clone(), crate::text::printable(value)]);
            app.ui.data(&table(&["KEY", "VALUE"], lines));
        }
    }
    Ok(0)
}

fn row(secret: &Value, with_values: bool) -> Row {
    let text = |key: &str| secret["metadata"][key].as_str().unwrap_or_default().to_owned();
    let data: BTreeMap<String, String> = secret["data"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| {
            let bytes = secret_value(value).unwrap_or_default();
            (key.clone(), String::from_utf8_lossy(&bytes).into_owned())
        })
        .collect();
    Row {
        namespace: text("namespace"),
        name: text("name"),
        keys: data.keys().cloned().collect(),
        values: with_values.then_some(data),
    }
}
