//! Which apps: all that there are, with those taken off that this machine has no room for.

use std::collections::BTreeSet;

use super::answers::Answers;
use crate::cli::UpArgs;
use crate::commands::{App, up};
use crate::context::{Context, Record};
use crate::error::Result;
use crate::gitops::overlay::app_of;
use crate::journal::Journal;
use crate::overlay::{self, EnvironmentOverlay};
use crate::preflight;
use crate::requests::{Asked, too_much};
use crate::sample;
use crate::settings::write::{Set, Setting};
use crate::ui::ask::Asking;

pub async fn ask(app: &App, asking: &Asking<'_>, answers: &mut Answers) -> Result<()> {
    if !answers.up.skip.is_empty() || !answers.up.only.is_empty() {
        return Ok(());
    }
    let (apps, out, requests) = look(app, &answers.up).await?;
    let words: Vec<String> = apps.iter().map(|app| shown(app, requests.get(app))).collect();
    let chosen: Vec<bool> = apps.iter().map(|app| !out.contains(app)).collect();
    if !out.is_empty() {
        app.ui.warn(&format!("this machine has no room for all of it; proposed to be left out: {}", out.join(", ")));
    }
    let kept = asking.any("Which apps? (space changes one, Enter takes them)", &words, &chosen)?;
    let skip: Vec<String> =
        apps.iter().enumerate().filter(|(at, _)| !kept.contains(at)).map(|(_, app)| app.clone()).collect();
    match skip.is_empty() {
        true => app.ui.say(&format!("Apps: all {}", apps.len())),
        false => app.ui.say(&format!("Apps: all but {}", skip.join(", "))),
    }
    if !skip.is_empty() {
        answers.sets.push(Set { key: "skip", value: Setting::List(skip.clone()) });
        answers.up.skip = skip;
    }
    Ok(())
}

/// All apps, those that there is no room for, and what is known of their wishes.
async fn look(app: &App, args: &UpArgs) -> Result<(Vec<String>, Vec<String>, crate::requests::ByApp)> {
    let (name, spec) = up::settle(app, args).await?;
    let journal = Journal::new(spec);
    let facts = Box::new(journal.facts.clone());
    let cx = Context::new(&journal, Record::Reading(facts), app.dirs.clone(), up::options(args), app.ui.clone());
    let prediction = match cx.spec.sample && !sample::is_sample(&cx.spec.repo).await? {
        true => overlay::of_sample(&cx.spec, name.as_str())?,
        false => EnvironmentOverlay::of(&cx.spec, name.as_str(), None, None)?.prediction,
    };
    let apps: BTreeSet<String> = prediction.applications.iter().map(|one| app_of(&one.path).to_owned()).collect();
    let around = preflight::Context::of(&cx, None).await;
    let requests = around.meant.as_ref().map(|meant| meant.requests.clone()).unwrap_or_default();
    let out = match around.nodes_here {
        true => too_much(&requests, preflight::room(&around)),
        false => Vec::new(),
    };
    Ok((apps.into_iter().collect(), out, requests))
}

fn shown(app: &str, asked: Option<&Asked>) -> String {
    match asked.filter(|asked| **asked != Asked::default()) {
        Some(asked) => format!("{app:<20} {:>5}m CPU {:>6} MiB", asked.millicores, asked.memory >> 20),
        None => app.to_owned(),
    }
}
