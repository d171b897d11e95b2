//! `k8tre onboard`: from nothing to a healthy environment and a first edit in it, by questions that each have a default.
//!
//! Nothing of the settings is written before the plan was shown and agreed to. What a run that was interrupted left is
//! found by the next one: a clone is used, an environment is gone on with.

mod answers;
mod apps;
mod edit;
mod phases;
mod place;
mod save;

use std::time::Instant;

use crate::cli::OnboardArgs;
use crate::commands::{App, plan, select, up};
use crate::error::{Error, Result, ResultExt};
use crate::journal::{self, Journal};
use crate::names::EnvName;
use crate::ports::git::{self, Checkout};
use crate::spec::Spec;
use crate::ui::ask::Asking;
use answers::Answers;
use phases::Phases;

pub async fn run(app: &App, args: &OnboardArgs) -> Result<u8> {
    if app.ui.is_json() {
        return Err(Error::usage("onboard speaks to a person").hint("for programs: k8tre dev up -o json"));
    }
    let asking = Asking::new(&app.ui, args.up.run.yes)?;
    let mut phases = Phases::default();
    let begun = Instant::now();
    let name = who(app, args, &asking).await?;
    let answers = match journal::read(&app.dirs, &name)? {
        Some(saved) => {
            resumed(app, args, &saved)?;
            Answers::of(args.up.clone().named(&name))
        }
        None => answers::ask(app, args, &asking, &name, &mut phases).await?,
    };
    phases.add_rest("questions", begun.elapsed());
    app.ui.say("");
    plan::run(app, &answers.up).await?;
    if args.up.run.dry_run {
        return Ok(0);
    }
    app.ui.say("");
    if !asking.yes_or_no("Shall it be made?", true)? {
        app.ui.say("nothing was made; the same with other answers: k8tre onboard");
        return Ok(0);
    }
    save::keep(app, &asking, args, &answers)?;

    let begun = Instant::now();
    up::run(app, &answers.up).await.hint(format!("go on where it stopped: k8tre onboard {name}"))?;
    phases.add("environment", begun.elapsed());
    let spec = select::journal_of(app, &name)?.spec;
    if !args.no_edit {
        let begun = Instant::now();
        if edit::first(app, &asking, &spec).await? {
            phases.add("first edit", begun.elapsed());
        }
    }
    phases.keep(app, &name, asking.asked())?;
    close(app, &spec, &phases, asking.asked());
    Ok(0)
}

/// The name of the environment: the developer's, unless they want another.
async fn who(app: &App, args: &OnboardArgs, asking: &Asking<'_>) -> Result<EnvName> {
    if let Some(name) = args.up.name.get() {
        return Ok(name.clone());
    }
    let there = journal::names(&app.dirs)?;
    let here = std::env::current_dir().ok().and_then(|here| Checkout::open(&here).ok());
    let default = match (there.as_slice(), git::user().await) {
        ([only], _) => Some(only.clone()),
        (_, Some(user)) if here.is_none() => Some(user.proposal()),
        _ => select::proposed(here.as_ref()).await,
    };
    let default = default.map(|name| name.to_string()).unwrap_or_default();
    let question = "Name of your environment, and of its branch dev/NAME";
    let check = |text: &str| text.parse::<EnvName>().map(drop).map_err(|error| error.to_string());
    asking.text(question, &default, check)?.parse()
}

/// An environment cannot move, so what was answered for it is not asked again.
fn resumed(app: &App, args: &OnboardArgs, saved: &Journal) -> Result<()> {
    let spec = &saved.spec;
    if args.clone.is_some() {
        return Err(Error::usage(format!("the environment {} was made from {}", spec.name, spec.repo.display()))
            .hint("another one: k8tre onboard ANOTHER-NAME --clone …"));
    }
    app.ui.say(&format!("{} is there already, from {}; going on with it", spec.name, spec.repo.display()));
    Ok(())
}

/// Where the time went, and where each answer can be changed.
fn close(app: &App, spec: &Spec, phases: &Phases, asked: u32) {
    let name = &spec.name;
    app.ui.say("");
    app.ui.say(&format!("{} onboard: {} ({asked} questions)", app.ui.tick(), phases.shown()));
    app.ui.say("");
    let lines = [
        ("again", "each edit: k8tre dev sync, or at each save: k8tre dev sync --watch".to_owned()),
        ("apps", format!("k8tre dev up {name} --skip APP,… or --with APP,…")),
        ("domain", format!("k8tre dev up {name} --domain DOMAIN")),
        ("the rest", format!("cluster, repository and Argo CD stay: k8tre dev down {name}, then k8tre onboard")),
        ("the time", format!("k8tre dev timings {name}")),
    ];
    for (what, how) in lines {
        app.ui.say(&format!("  {what:<10} {how}"));
    }
}
