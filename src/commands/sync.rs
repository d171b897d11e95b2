//! `k8tre dev sync`: the work tree as it is, live in the cluster; with `--watch` after each change.

mod report;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::cli::{self, SyncArgs};
use crate::commands::change::Change;
use crate::commands::{App, select};
use crate::error::{Error, Kind, Result};
use crate::journal::Lock;
use crate::names::EnvName;
use crate::ports::git::Checkout;
use crate::ports::kube::Kube;
use crate::settings::{self, FileSettings};
use crate::spec::{Source, Spec};
use crate::sync::live::{End, Settled, Wait};
use crate::sync::watch::Watcher;
use crate::sync::{Memory, SIZE_LIMIT, change, publish};
use report::Report;

/// How often a command that is at work on the environment is looked at whether it has ended.
const BUSY: Duration = Duration::from_millis(500);

pub async fn run(app: &App, args: &SyncArgs) -> Result<u8> {
    let name = select::existing_name(app, &args.name)?;
    let journal = select::journal_of(app, &name)?;
    refuse_remote(&journal.spec)?;
    let repo = journal.spec.repo;
    let limit = match args.max_file_size {
        Some(limit) => limit,
        None => configured_limit(app, &repo)?.unwrap_or(SIZE_LIMIT),
    };
    let mut session = Session {
        app,
        args,
        name,
        limit,
        memory: Memory::default(),
        under_way: None,
        unsettled: BTreeSet::new(),
        kube: None,
    };
    if args.watch {
        return session.watch(&Checkout::open(&repo)?).await;
    }
    let report = tokio::select! {
        biased;
        () = app.cancel.cancelled() => Err(Error::interrupted()),
        report = session.sync(std::future::pending()) => report,
    };
    let name = &session.name;
    let report = report.map_err(|error| error.way_on(&format!("k8tre dev sync {name}")))?;
    report.show(app)?;
    if report.is_fine() {
        return Ok(0);
    }
    app.ui.hint(&format!("see what is wrong: k8tre dev status {name}; try again: k8tre dev sync {name}"));
    Ok(Kind::Unhealthy.exit_code())
}

/// Argo CD reads the branch from a remote, where only commits go: other people see it there.
fn refuse_remote(spec: &Spec) -> Result<()> {
    let Source::Remote { remote, .. } = &spec.source else { return Ok(()) };
    let (name, branch) = (&spec.name, spec.name.branch());
    let error = Error::usage(format!("{name} reads {branch} from {remote}, so an edit needs a commit and a push"))
        .hint(format!("commit on the branch: git switch {branch} && git commit --all"))
        .hint(format!("then push and deploy it: k8tre dev up {name}"));
    Err(match spec.argocd.shared() {
        None => error.hint(
            "or make an environment that reads from the cluster, which needs neither: k8tre dev up NAME --source cluster",
        ),
        Some(_) => error.hint(
            "or make an environment with an Argo CD of its own, which needs neither: k8tre dev up NAME, without --argocd",
        ),
    })
}

fn configured_limit(app: &App, repo: &std::path::Path) -> Result<Option<u64>> {
    for path in [repo.join(settings::FILE), app.dirs.config.join("config.toml")] {
        if let Some(text) = FileSettings::read(&path)?.max_file_size {
            let limit = cli::size(&text);
            return limit
                .map(Some)
                .map_err(|why| Error::usage(format!("{}: max-file-size \"{text}\": {why}", path.display())));
        }
    }
    Ok(None)
}

/// One sync after another of one environment.
struct Session<'a> {
    app: &'a App,
    args: &'a SyncArgs,
    name: EnvName,
    limit: u64,
    memory: Memory,
    /// Applications that an earlier change touched and that have not taken it yet.
    unsettled: BTreeSet<String>,
    /// A change whose wait was left for another that turned out to be none.
    under_way: Option<(Wait, Report, Instant)>,
    kube: Option<Kube>,
}

impl Session<'_> {
    /// Brings the work tree to the cluster. The wait for it ends early when `superseded` does.
    async fn sync(&mut self, superseded: impl Future<Output = Result<()>>) -> Result<Report> {
        let began = Instant::now();
        self.unsettled.extend(self.under_way.iter().flat_map(|(wait, ..)| wait.unsettled()));
        let (mut wait, mut report, began) = match (self.publish().await?, self.under_way.take()) {
            (Some((wait, report)), None) => (wait, report, began),
            (Some((wait, report)), Some((_, mut other, _))) => {
                other.superseded = true;
                other.show_line(self.app);
                (wait, report, began)
            }
            (None, Some(under_way)) => under_way,
            (None, None) => {
                let mut report = Report::new(&self.name);
                report.seconds = began.elapsed().as_secs_f64();
                return Ok(report);
            }
        };
        report.seconds = began.elapsed().as_secs_f64();
        if self.args.no_wait {
            return Ok(report);
        }
        let settled = tokio::select! {
            biased;
            settled = wait.settle(self.args.timeout, |_| {}) => settled?,
            begun = superseded => {
                begun?;
                // Whether it is another change is known when the work tree is read again.
                let nothing = Report::new(&self.name);
                self.under_way = Some((wait, report, began));
                return Ok(nothing);
            }
        };
        let bad = settled.iter().filter(|one| matches!(one.end, End::Failed(..) | End::Late(..)));
        self.unsettled = bad.map(|one: &Settled| one.name.clone()).collect();
        report.settle(settled);
        report.seconds = began.elapsed().as_secs_f64();
        Ok(report)
    }

    /// Gives the git server the work tree and has Argo CD look; none if it has that already.
    async fn publish(&mut self) -> Result<Option<(Wait, Report)>> {
        // Held only while something is written: the wait after it needs no lock.
        let locked = Change::begin(self.app, self.name.clone(), "dev sync")?;
        locked.drop_ended_holds(self.args.timeout).await?;
        let cx = locked.context(self.args.timeout);
        if let Some(kube) = &self.kube {
            cx.lend_kube(kube.clone());
        }
        let Some(change) = change(&cx, &mut self.memory, self.limit, self.args.reset).await? else { return Ok(None) };
        let mut report = Report::new(&self.name);
        report.describe(&change);
        let mut wait = Wait::begin(&cx, &change, &self.unsettled).await?;
        let pushing = Instant::now();
        tokio::try_join!(publish(&cx, &change), wait.look_before())?;
        report.pushed = pushing.elapsed().as_secs_f64();
        wait.ask().await?;
        self.kube = cx.kube().await?;
        self.memory.keep(&Checkout::open(&cx.spec.repo)?, change)?;
        Ok(Some((wait, report)))
    }

    /// Syncs now and after each change, until Ctrl-C. A sync that fails is told and does not end it.
    async fn watch(&mut self, checkout: &Checkout) -> Result<u8> {
        let app = self.app;
        // Before the first sync, so that no change between the two is missed.
        let watcher = Watcher::start(checkout.clone())?;
        app.ui.say(&format!("watching {}; Ctrl-C ends it", checkout.root().display()));
        loop {
            let result = tokio::select! {
                biased;
                () = app.cancel.cancelled() => return Ok(0),
                result = self.sync(watcher.begun()) => result,
            };
            match result {
                Ok(report) => report.show_line(app),
                Err(error) if error.kind() == Kind::NotFound => return Err(error),
                Err(error) => {
                    // The cluster may have got another address meanwhile.
                    self.kube = None;
                    report::failed(app, &self.name, &error);
                    if Lock::is_held(&app.dirs, &self.name) {
                        self.wait_for_others().await;
                        continue;
                    }
                }
            }
            tokio::select! {
                biased;
                () = app.cancel.cancelled() => return Ok(0),
                changed = watcher.changed(|text| app.ui.say(text)) => changed?,
            }
        }
    }

    async fn wait_for_others(&self) {
        while Lock::is_held(&self.app.dirs, &self.name) && !self.app.cancel.is_cancelled() {
            tokio::time::sleep(BUSY).await;
        }
    }
}
