//! `k8tre dev plan`: what `up` would do, as data, before anything is done.

use std::time::Duration;

use serde::Serialize;

use crate::cli::UpArgs;
use crate::commands::{App, up};
use crate::context::Context;
use crate::engine::{Engine, State};
use crate::error::{Error, Result};
use crate::report::{SCHEMA, table};
use crate::text::one_line;

const LIMIT: Duration = Duration::from_secs(10);

#[derive(Serialize)]
struct Row {
    step: &'static str,
    state: &'static str,
    detail: String,
    action: String,
}

pub async fn run(app: &App, args: &UpArgs) -> Result<u8> {
    let cx = up::looking(app, args).await?;
    let name = &cx.spec.name;
    let steps = crate::plan::steps(&cx.spec);
    let engine = Engine { steps: &steps, ledger: &Nothing, events: &(), cancel: app.cancel.clone() };
    let states = engine.observe(&cx, LIMIT).await;
    let rows: Vec<Row> = states
        .into_iter()
        .zip(&steps)
        .map(|((step, state), described)| {
            let (state, detail) = words(&state);
            let action = if state == "ready" { "nothing".to_owned() } else { described.describe() };
            Row { step, state, detail, action }
        })
        .collect();
    if app.ui.is_json() {
        app.ui.json(&serde_json::json!({"schema": SCHEMA, "environment": name, "steps": rows}))?;
        return Ok(0);
    }
    app.ui.say(&format!("environment {name}: {}", target(&cx)));
    let lines = rows.iter().map(|row| {
        let state = if row.detail.is_empty() {
            row.state.to_owned()
        } else {
            format!("{}: {}", row.state, one_line(&row.detail, 50))
        };
        vec![row.step.to_owned(), state, row.action.clone()]
    });
    let whole = table(&["STEP", "NOW", "UP WOULD MAKE"], lines);
    let width = app.ui.width();
    if !app.ui.is_screen() || whole.lines().all(|line| line.chars().count() <= width) {
        app.ui.data(&whole);
        return Ok(0);
    }
    // On a narrow screen what matters most: broken lines are no table.
    let room = width.saturating_sub(rows.iter().map(|row| row.step.len()).max().unwrap_or_default() + 3);
    let short = rows.iter().map(|row| vec![row.step.to_owned(), one_line(&row.action, room)]);
    app.ui.data(&table(&["STEP", "UP WOULD MAKE"], short));
    Ok(0)
}

/// Where things would be made, said before they are.
pub fn target(cx: &Context) -> String {
    format!(
        "{} cluster {}, branch {} on {} in {}",
        cx.provider().name(),
        cx.provider().cluster(&cx.spec.name),
        cx.spec.name.branch(),
        cx.spec.base,
        cx.spec.repo.display()
    )
}

pub fn words(state: &State) -> (&'static str, String) {
    match state {
        State::Absent => ("absent", String::new()),
        State::Ready => ("ready", String::new()),
        State::Drifted(why) => ("drifted", why.clone()),
        State::Foreign => ("foreign", String::new()),
        State::Unknown(why) => ("unknown", why.clone()),
    }
}

/// The ledger of a walk that only looks.
pub struct Nothing;

impl crate::engine::Ledger for Nothing {
    fn intend(&self, id: crate::engine::StepId) -> Result<()> {
        Err(Error::failed(format!("a command that only looks tried to make {id}")))
    }
    fn done(&self, _: crate::engine::StepId) -> Result<()> {
        Ok(())
    }
    fn forget(&self, _: crate::engine::StepId) -> Result<()> {
        Ok(())
    }
    fn owns(&self, _: crate::engine::StepId) -> bool {
        false
    }
}
