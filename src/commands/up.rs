//! `k8tre dev up`: settle what is meant, check that it can be done, then walk the steps.

mod report;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cli::UpArgs;
use crate::commands::{App, plan, select, shared, source, use_app};
use crate::context::{Context, Options, Record};
use crate::engine::{Engine, Walk};
use crate::error::{Error, Kind, Result, ResultExt};
use crate::gitops::tree::Tree;
use crate::gitops::windows;
use crate::journal::{self, Journal, Lock, Writer};
use crate::names::EnvName;
use crate::ports::git::{Checkout, Login};
use crate::preflight::{self, Severity};
use crate::providers::{existing, vcluster};
use crate::settings::{self, FileSettings, Found};
use crate::shared::{credentials, place};
use crate::spec::Spec;
use crate::steps::{branch, secrets};
use crate::{gitops, overlay, sample};
pub use report::Report;

pub async fn run(app: &App, args: &UpArgs) -> Result<u8> {
    if args.run.dry_run {
        return plan::run(app, args).await;
    }
    let made = make(app, args).await?;
    match app.ui.is_json() {
        true => app.ui.json(&made.report())?,
        false => made.say(app),
    }
    Ok(0)
}

/// An environment that came up.
pub struct Made {
    pub cx: Context,
    walk: Walk,
    took: Duration,
    applications: Vec<String>,
}

/// Brings it up, and tells how it goes; what came of it is told by whoever asked.
pub async fn make(app: &App, args: &UpArgs) -> Result<Made> {
    let (name, spec) = settle(app, args).await?;
    // Locked before anything is looked at: what another command is taking away meanwhile would look broken.
    let lock = Lock::take(&app.dirs, &name, "dev up")?;
    let checked = prepare(app, args, spec).await;
    if checked.is_err() {
        lock.abandon();
    }
    let (journal, looking) = checked?;
    if args.rebase {
        rebase(app, &looking).await?;
    }
    let login = login(args, &looking).await;
    if login.is_err() {
        lock.abandon();
    }
    let login = login?;
    let writer = Arc::new(Writer::new(&lock, journal.clone()));
    if journal::read(&app.dirs, &name)?.as_ref() != Some(&journal)
        && let Err(error) = writer.update(|_| {})
    {
        lock.abandon();
        return Err(error);
    }
    let cx = Context::new(
        &journal,
        Record::Writing(Arc::clone(&writer)),
        app.dirs.clone(),
        Options { login, ..options(args) },
        app.ui.clone(),
    );
    let steps = crate::plan::steps(&cx.spec);
    app.ui.expect(steps.iter().map(|step| (step.id(), step.describe())));
    let engine = Engine { steps: &steps, ledger: &*writer, events: &*app.ui, cancel: app.cancel.clone() };

    let start = Instant::now();
    let walk = engine.up(&cx).await.map_err(|error| explain(error, &name))?;
    if cx.spec.uses.values().any(|used| used.back) {
        // They are the base's again, and that is all there is to remember.
        writer.update(|journal| journal.spec.uses.retain(|_, used| !used.back))?;
    }
    if walk.changed() {
        writer.update(|journal| journal.facts.timings = timings(&walk))?;
    }
    let overlay = cx.overlay().await?;
    let applications = overlay.prediction.applications.iter().map(|app| app.name.to_string()).collect();
    Ok(Made { cx, walk, took: start.elapsed(), applications })
}

/// The journal to begin with. Everything that can be refused is refused here, before anything is made or recorded.
async fn prepare(app: &App, args: &UpArgs, spec: Spec) -> Result<(Journal, Context)> {
    let journal = match journal::read(&app.dirs, &spec.name)? {
        // What other commands keep in it may have changed until the lock was taken.
        Some(saved) => {
            let expires = if args.ttl.is_some() { spec.expires } else { saved.spec.expires };
            let mut spec = Spec { holds: saved.spec.holds, uses: saved.spec.uses, expires, ..spec };
            windows::forget_ended(&mut spec.holds, jiff::Timestamp::now());
            Journal { spec, ..saved }
        }
        None => Journal::new(spec),
    };
    let facts = Box::new(journal.facts.clone());
    let looking = Context::new(&journal, Record::Reading(facts), app.dirs.clone(), options(args), app.ui.clone());
    let changes = check(app, &looking, args).await?;
    shared::confirm(app, &journal, changes, args.run.yes)?;
    Ok((journal, looking))
}

/// The login that a shared Argo CD is to get, read before anything is made.
async fn login(args: &UpArgs, cx: &Context) -> Result<Option<Login>> {
    let Some(from) = &args.shared.repo_credentials else { return Ok(None) };
    credentials::read(from, &Checkout::open(&cx.spec.repo)?, &cx.spec.source.url()).await.map(Some)
}

/// The spec that flags, variables, files and the journal add up to.
pub async fn settle(app: &App, args: &UpArgs) -> Result<(EnvName, Spec)> {
    let given = args.name.get().cloned();
    let here = || std::env::current_dir().context("cannot tell the current folder");
    // What is recorded decides the repository, unless this run names another.
    let recorded = match &given {
        Some(name) => journal::read(&app.dirs, name)?,
        None => match journal::names(&app.dirs)?.as_slice() {
            [only] => journal::read(&app.dirs, only)?,
            _ => None,
        },
    };
    let mut found = match (&args.sample, &args.repo, &recorded) {
        (None, None, Some(recorded)) => Found {
            repo: recorded.spec.repo.clone(),
            sample: recorded.spec.sample,
            head: None,
            vendor: recorded.spec.vendor.clone(),
            lists_secrets: false,
        },
        (Some(folder), _, _) => found_sample(app, folder.as_ref())?,
        (None, Some(repo), _) => found(repo)?,
        (None, None, None) => found(&here()?).hint("or start with the embedded sample TRE: k8tre dev up --sample")?,
    };
    let checkout = match found.sample {
        true => None,
        false => Some(Checkout::open(&found.repo)?),
    };
    let name = select::name_for_up(app, &args.name, checkout.as_ref()).await?;
    let saved = journal::read(&app.dirs, &name)?;
    if let Some(saved) = &saved
        && saved.spec.repo != found.repo
    {
        return Err(Error::usage(format!("the environment {name} was made from {}", saved.spec.repo.display()))
            .hint(format!("make another one: k8tre dev up {name}-2 …"))
            .hint(format!("or remove it first: k8tre dev down {name}")));
    }
    found.lists_secrets = checkout.as_ref().map_or(Ok(false), |checkout| lists_secrets(checkout, &name))?;
    let files = [
        FileSettings::read(&found.repo.join(settings::FILE))?,
        FileSettings::read(&app.dirs.config.join("config.toml"))?,
    ];
    let vendor_is_open = args.vendor.is_none() && saved.is_none() && files.iter().all(|file| file.vendor.is_none());
    let mut spec = settings::settle(&name, args, saved.as_ref().map(|saved| &saved.spec), &files, found)?;
    let tree = match &checkout {
        Some(checkout) => Some(checkout.tree(checkout.head()?)?),
        None => None,
    };
    let tree = tree.as_ref().map(|tree| tree as &dyn Tree);
    existing::settle::settle(&mut spec, args, saved.as_ref(), vendor_is_open, tree).await?;
    vcluster::settle::settle(&mut spec).await?;
    place::settle(&mut spec, args.shared.argocd.as_deref(), saved.as_ref()).await?;
    source::settle(&mut spec, saved.as_ref(), checkout.as_ref()).await?;
    Ok((name, spec))
}

/// The environment's branch decides, or what is checked out while there is none.
fn lists_secrets(checkout: &Checkout, name: &EnvName) -> Result<bool> {
    let commit = checkout.tip(&name.branch())?.map_or_else(|| checkout.head(), Ok)?;
    Ok(checkout.tree(commit)?.contains(gitops::ci_secrets::FILE))
}

fn found(path: &std::path::Path) -> Result<Found> {
    let checkout = Checkout::open(path)?;
    let tree = checkout.tree(checkout.head()?)?;
    Ok(Found {
        repo: checkout.root().to_owned(),
        sample: false,
        head: checkout.head_branch().filter(|branch| !branch.starts_with("dev/")),
        vendor: gitops::vendor::suggest(&tree),
        lists_secrets: false,
    })
}

fn found_sample(app: &App, folder: Option<&PathBuf>) -> Result<Found> {
    let repo = match folder {
        Some(folder) => std::path::absolute(folder)?,
        None => sample::default_folder(&app.dirs),
    };
    Ok(Found { repo, sample: true, head: Some("main".into()), vendor: "kind".into(), lists_secrets: false })
}

pub fn options(args: &UpArgs) -> Options {
    let run = &args.run;
    Options {
        timeout: run.timeout,
        no_wait: run.no_wait,
        require_synced: run.require_synced,
        keep_on_failure: run.keep_on_failure,
        offline: run.offline,
        ca_bundle: run.ca_bundle.clone(),
        keep_branch: false,
        no_prepare: run.no_prepare,
        secrets: args.secrets,
        only: None,
        login: None,
        renew: true,
    }
}

/// All that can be known to be wrong before anything is made; returns what will be changed of what others use.
async fn check(app: &App, cx: &Context, args: &UpArgs) -> Result<Option<String>> {
    if !cx.spec.sample || sample::is_sample(&cx.spec.repo).await? {
        let checkout = Checkout::open(&cx.spec.repo)?;
        checkout.check_branch(&cx.spec.name.branch(), &branch::owner(cx)).await?;
        checkout.identity().await?;
        cx.overlay().await?.check(&cx.spec)?;
        say_moved(app, cx, &checkout, args.rebase)?;
        use_app::say_moved(app, &cx.spec, &checkout)?;
        source::check(app, cx, &checkout).await?;
        if let Some(list) = &cx.overlay().await?.secrets
            && let [variable, ..] = secrets::missing_variables(list).as_slice()
        {
            return Err(Error::usage(format!(
                "the list of secrets asks for the variable {variable}, which is not set"
            ))
            .hint(format!("export {variable}=… and try again")));
        }
    } else {
        sample::check_empty(&cx.spec.repo)?;
        overlay::check_sample(&cx.spec, &cx.cluster_name())?;
    }
    let checked = cx.provider().check(cx).await?;
    let mut findings = checked.findings;
    if checked.absent {
        // What is there already has shown that it can be.
        findings.extend(preflight::run(&preflight::Context::of(cx, checked.nodes).await).await);
    }
    for finding in findings.iter().filter(|finding| finding.severity == Severity::Warning) {
        let fix = if finding.fix.is_empty() { String::new() } else { format!("; {}", finding.fix) };
        app.ui.warn(&format!("{}{fix}", finding.what));
    }
    preflight::verdict(&preflight::sorted(findings))?;
    if checked.absent {
        cx.provider().fetch(cx).await.map_err(|error| error.with_kind(Kind::Preflight))?;
    }
    match cx.spec.argocd.shared() {
        None if cx.spec.installs_argocd() => drop(cx.install().await?.crds()?),
        None => {}
        Some(at) => shared::check(app, cx, at).await?,
    }
    cx.prerequisites().await?;
    if cx.spec.argocd.anonymous {
        app.ui.warn("--anonymous: whoever reaches Argo CD's UI or API has all rights in this cluster, without login");
    }
    Ok(checked.changes)
}

/// Says that the base has gone on, and offers what can be done about it.
fn say_moved(app: &App, cx: &Context, checkout: &Checkout, about_to: bool) -> Result<()> {
    let (branch, base) = (cx.spec.name.branch(), &cx.spec.base);
    let Some(moved) = checkout.base_moved(&branch, checkout.resolve(base)?)? else { return Ok(()) };
    if !about_to {
        let commits = if moved.missing == 1 { "1 commit".to_owned() } else { format!("{} commits", moved.missing) };
        app.ui.warn(&format!(
            "{base} has {commits} that {branch} lacks; to take them in: k8tre dev up {} --rebase",
            cx.spec.name
        ));
    }
    Ok(())
}

async fn rebase(app: &App, cx: &Context) -> Result<()> {
    let checkout = Checkout::open(&cx.spec.repo)?;
    let base = checkout.resolve(&cx.spec.base)?;
    if let Some(done) = checkout.rebase_branch(&cx.spec.name.branch(), base, &branch::owner(cx)).await? {
        app.ui.say(&format!(
            "{} now starts at {} of {}; {} commits were carried over, before it was at {}",
            cx.spec.name.branch(),
            base.short(),
            cx.spec.base,
            done.carried,
            done.previous.short()
        ));
    }
    Ok(())
}

fn explain(error: Error, name: &EnvName) -> Error {
    match error.kind() {
        Kind::Interrupted => error
            .hint(format!("go on where it stopped: k8tre dev up {name}"))
            .hint(format!("or remove all of it: k8tre dev down {name}")),
        Kind::Failed => error
            .hint(format!("when that is mended, go on: k8tre dev up {name}"))
            .hint(format!("or remove all of it: k8tre dev down {name}")),
        _ => error,
    }
}

fn timings(walk: &Walk) -> Vec<journal::Timing> {
    walk.steps
        .iter()
        .map(|done| journal::Timing {
            step: done.id.to_owned(),
            began: done.began.as_secs_f64(),
            took: done.took.as_secs_f64(),
        })
        .collect()
}
