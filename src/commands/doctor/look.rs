//! What `doctor` looks at: the environment that `up` would make here, or only the machine.

use crate::cli::{DoctorArgs, RunArgs, UpArgs};
use crate::commands::{App, up};
use crate::context::{Context, Record};
use crate::error::{Kind, Result, ResultExt};
use crate::journal::{self, Journal};
use crate::ports::fetch::Fetcher;
use crate::ports::git::Checkout;
use crate::preflight::{self, Finding, Severity};
use crate::providers::kind::binary;
use crate::sample;

/// What is looked at, and all that is found there.
pub async fn all(app: &App, args: &DoctorArgs) -> (preflight::Context, Vec<Finding>) {
    let (around, mut findings) = gather(app, args).await;
    // What files of the machine tell, and the network.
    let around = preflight::Context { clock: Some(binary::releases()), ..around };
    findings.extend(preflight::run(&around).await);
    // The provider and the list may both have seen the same.
    findings.dedup_by(|a, b| a.code == b.code && a.what == b.what);
    (around, preflight::sorted(findings))
}

async fn gather(app: &App, args: &DoctorArgs) -> (preflight::Context, Vec<Finding>) {
    let machine = async || {
        let fetcher = Fetcher::new(&app.dirs.cache).offline(args.offline).ca_bundle(args.ca_bundle.clone());
        preflight::Context::here(fetcher, args.ca_bundle.clone()).await
    };
    let folder = match (&args.repo, args.sample) {
        (Some(repo), _) => Some(repo.clone()),
        (None, true) => None,
        (None, false) => std::env::current_dir().ok(),
    };
    let checkout = folder.map(|folder| Checkout::open(&folder)).transpose();
    let is_named = args.repo.is_some() || args.sample || args.name.get().is_some();
    let checkout = match checkout {
        Ok(checkout) => checkout,
        // Nobody said that there is one.
        Err(_) if !is_named => return (machine().await, Vec::new()),
        Err(error) => return (machine().await, vec![Finding::of("repository", &error).why(REPOSITORY)]),
    };
    match environment(app, args).await {
        Ok((around, findings)) => (around, findings),
        Err(error) => {
            let code = if error.kind() == Kind::Preflight { "not-possible" } else { "repository" };
            let finding = Finding::of(code, &error).why(REPOSITORY);
            let severity = if is_named { Severity::Blocker } else { Severity::Info };
            let around = preflight::Context { checkout, ..machine().await };
            (around, vec![Finding { severity, ..finding }])
        }
    }
}

const REPOSITORY: &str = "no environment can be made from what is here";

/// The environment that `up` with these words would make or go on with.
async fn environment(app: &App, args: &DoctorArgs) -> Result<(preflight::Context, Vec<Finding>)> {
    let run = RunArgs { offline: args.offline, ca_bundle: args.ca_bundle.clone(), ..RunArgs::default() };
    let up = UpArgs {
        name: args.name.clone(),
        repo: args.repo.clone(),
        sample: args.sample.then_some(None),
        run,
        ..UpArgs::default()
    };
    let (name, spec) = up::settle(app, &up).await?;
    let journal = match journal::read(&app.dirs, &name)? {
        Some(saved) => Journal { spec, ..saved },
        None => Journal::new(spec),
    };
    let facts = Box::new(journal.facts.clone());
    let cx = Context::new(&journal, Record::Reading(facts), app.dirs.clone(), up::options(&up), app.ui.clone());
    if !cx.spec.sample || sample::is_sample(&cx.spec.repo).await? {
        cx.overlay().await?.check(&cx.spec).hint("k8tre lint")?;
    }
    let checked = cx.provider().check(&cx).await;
    let (findings, nodes) = match checked {
        Ok(checked) => (checked.findings, checked.nodes),
        Err(error) => (vec![Finding::of("cluster", &error).why("the environment's cluster cannot be made")], None),
    };
    Ok((preflight::Context::of(&cx, nodes).await, findings))
}
