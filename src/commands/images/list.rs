//! `k8tre images list`.

use serde::Serialize;

use crate::cli::UpArgs;
use crate::commands::{App, up};
use crate::error::Result;
use crate::gitops::unseen::Unseen;
use crate::needed::{self, Image};
use crate::report::{SCHEMA, table};

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    environment: String,
    images: Vec<Row<'a>>,
    files: Vec<FileRow<'a>>,
    unknown: &'a [Unseen],
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    image: &'a Image,
    /// Whether this machine's Docker holds it; null if there is none to ask.
    here: Option<bool>,
}

#[derive(Serialize)]
struct FileRow<'a> {
    name: &'a str,
    #[serde(rename = "for")]
    use_of_it: &'a str,
    url: &'a str,
    here: bool,
}

pub async fn run(app: &App, args: &UpArgs) -> Result<u8> {
    let cx = up::looking(app, args).await?;
    let needed = needed::of(&cx).await?;
    let docker = cx.docker().await;
    if let Err(error) = &docker {
        app.ui.warn(&format!("which images are here is not known: {error}"));
    }
    let mut images = Vec::new();
    for image in &needed.images {
        let here = match docker.is_ok() {
            true => Some(cx.held(&image.reference).await?.is_some()),
            false => None,
        };
        images.push(Row { image, here });
    }
    let mut files = Vec::new();
    for file in &needed.files {
        let here = match &file.given {
            Some(path) => path.exists(),
            None => cx.fetcher().kept(&file.wanted).await?.is_some(),
        };
        let (name, url) = (file.wanted.name.as_str(), file.wanted.url.as_str());
        files.push(FileRow { name, use_of_it: file.use_of_it, url, here });
    }
    let environment = cx.spec.name.to_string();
    let report = Report { schema: SCHEMA, environment, images, files, unknown: &needed.unknown };
    match app.ui.is_json() {
        true => app.ui.json(&report)?,
        false => show(app, &report),
    }
    Ok(0)
}

fn show(app: &App, report: &Report) {
    let word = |here: Option<bool>| here.map_or("?", |here| if here { "yes" } else { "no" }).to_owned();
    let images = report.images.iter().map(|row| {
        let mut uses = row.image.uses.join(", ");
        if row.image.always_pulled {
            uses.push_str(" (pulled at every start)");
        }
        vec![row.image.reference.clone(), word(row.here), uses]
    });
    let files = report
        .files
        .iter()
        .map(|file| vec![file.name.to_owned(), word(Some(file.here)), format!("{}: {}", file.use_of_it, file.url)]);
    app.ui.data(&table(&["IMAGE OR FILE", "HERE", "FOR"], images.chain(files)));
    if !report.unknown.is_empty() {
        app.ui.data("");
        app.ui.data(&table(
            &["NOT KNOWN", "BECAUSE OF"],
            report.unknown.iter().map(|one| vec![one.what.clone(), one.why.clone()]),
        ));
    }
    app.ui.say("what operators make of their own objects is in no file, and not in this list");
}
