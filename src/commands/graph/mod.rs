//! `k8tre dev graph`: the environment as a picture, from the same look that `status` takes.

mod dot;
mod mermaid;
mod model;
mod svg;
mod tree;

use crate::cli::{Drawing, GraphArgs};
use crate::commands::status::gather;
use crate::commands::{App, select};
use crate::error::Result;
use crate::report::SCHEMA;

pub async fn run(app: &App, args: &GraphArgs) -> Result<u8> {
    let name = select::existing_name(app, &args.name)?;
    let report = gather::look(app, &select::journal_of(app, &name)?, false).await?;
    let root = model::of(&report);
    if app.ui.is_json() {
        app.ui.json(&serde_json::json!({"schema": SCHEMA, "environment": name, "graph": root}))?;
        return Ok(0);
    }
    app.ui.data(&match args.format {
        Drawing::Tree => tree::draw(&root, app.ui.width(), app.ui.is_unicode()),
        Drawing::Mermaid => mermaid::draw(&root),
        Drawing::Dot => dot::draw(&root),
        Drawing::Svg => svg::draw(&root),
    });
    Ok(0)
}
