//! `k8tre dev up --ephemeral`: an environment for one job of a CI. Nobody is there to answer or to clean up, so it has a name
//! of its own, an end, and is taken away when it did not come up or when the command that it was for has ended.

mod markdown;
mod name;
mod told;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::audit::Audit;
use crate::cli::{DownArgs, NameArgs, UpArgs, UpCommand};
use crate::commands::up::Made;
use crate::commands::{App, down, plan, status, up};
use crate::error::{Error, Kind, Result, ResultExt};
use crate::journal;
use crate::names::EnvName;
use crate::ports::environment;
use crate::ports::git::Checkout;
use crate::ports::process::Program;
use status::gather;
use told::{CommandReport, Document, Failure, Place, Told};

/// Longer than a job takes; after it, `gc` removes what nobody else could.
const LIFE: Duration = Duration::from_secs(2 * 3600);
/// A second look helps where a server was busy. More would only take the job's time.
const REMOVALS: usize = 2;

pub async fn run(app: &App, args: &UpCommand) -> Result<u8> {
    let mut up = args.up.clone();
    let name = up.name.get().cloned().unwrap_or_else(|| name::unique(environment::var));
    up.name = NameArgs { environment: Some(name.clone()), name: None };
    up.run.yes = true;
    up.ttl.get_or_insert(LIFE);
    on_a_bare_checkout(&mut up).await?;
    if up.run.dry_run {
        return plan::run(app, &up).await;
    }
    if journal::read(&app.dirs, &name)?.is_some() {
        return Err(Error::usage(format!("the environment {name} is there already, and --ephemeral would remove it"))
            .hint("leave the name out: each one gets a name of its own")
            .hint(format!("or remove it first: k8tre dev down {name}")));
    }
    let outputs = environment::var_os("GITHUB_OUTPUT").map(Into::into);
    let told = Told { app, summary: args.ephemeral.summary.clone(), outputs };
    // Before anything is made, so that a later step can take away what this one was killed over.
    told.output("name", name.as_str());
    Job { app, name, up, told }.run(args).await
}

/// A CI checks out a commit, not a branch, and tells git nobody's name.
async fn on_a_bare_checkout(up: &mut UpArgs) -> Result<()> {
    if up.sample.is_some() {
        return Ok(());
    }
    let folder = up.repo.clone().map_or_else(std::env::current_dir, Ok).context("cannot tell the current folder")?;
    let Ok(checkout) = Checkout::open(&folder) else { return Ok(()) };
    if up.base.is_none() && checkout.head_branch().is_none() {
        up.base = Some(checkout.head()?.to_string());
    }
    if checkout.identity().await.is_err() {
        let program = std::env::current_exe().context("cannot tell which program this is")?;
        let mut again = Program::new(program).args(std::env::args_os().skip(1));
        for role in ["AUTHOR", "COMMITTER"] {
            again = again.env(format!("GIT_{role}_NAME"), "k8tre").env(format!("GIT_{role}_EMAIL"), "k8tre@localhost");
        }
        return Err(again.replace());
    }
    Ok(())
}

struct Job<'a> {
    app: &'a App,
    name: EnvName,
    up: UpArgs,
    told: Told<'a>,
}

impl Job<'_> {
    async fn run(&self, args: &UpCommand) -> Result<u8> {
        let made = up::make(self.app, &self.up).await;
        let mut look = self.look().await;
        let place = match &made {
            Ok(made) => Some(self.place(made).await),
            Err(_) => None,
        };
        let failure = made.as_ref().err().map(Failure::from);
        let headline = match &made {
            Ok(made) => made.headline(),
            Err(_) => format!("{} did not come up", self.name),
        };
        self.told.came_up(&headline, look.as_ref(), failure.as_ref());
        if let Some(place) = &place {
            self.told.place(place);
        }
        let mut command = None;
        if let (Ok(made), [_, ..]) = (&made, args.ephemeral.command.as_slice()) {
            self.app.ui.say(&format!("{} {headline}", self.app.ui.tick()));
            let (report, error) = self.command(made, &args.ephemeral.command).await;
            if report.exit_code != 0 {
                look = self.look().await.or(look);
            }
            let unhealthy = look.as_ref().filter(|look| !look.healthy);
            self.told.command(&args.shown(), &report, unhealthy);
            if let Some(error) = error {
                self.app.ui.error(&error);
            }
            command = Some(report);
        }
        let stays = match &made {
            Ok(_) => args.ephemeral.command.is_empty(),
            Err(_) => self.up.run.keep_on_failure,
        };
        let audit = if stays { None } else { self.remove().await };
        if let Some(audit) = &audit {
            self.told.removed(&self.name, audit);
        }
        let gone = audit.as_ref().map(|audit| audit.as_ref().is_ok_and(|audit| audit.left.is_empty()));
        if self.app.ui.is_json() {
            self.app.ui.json(&Document {
                schema: Document::SCHEMA,
                environment: &self.name,
                healthy: made.is_ok() && look.as_ref().is_some_and(|look| look.healthy),
                place: place.as_ref(),
                up: made.as_ref().ok().map(Made::report),
                applications: look.as_ref().map_or(&[], |look| &look.applications),
                command: command.as_ref(),
                removed: if stays { None } else { Some(gone.unwrap_or(true)) },
                left: audit.iter().flatten().flat_map(|audit| &audit.left).collect(),
                error: failure.as_ref(),
            })?;
        }
        self.end(made, stays, command.map(|report| report.exit_code), audit)
    }

    /// The exit code: of what failed first.
    fn end(&self, made: Result<Made>, stays: bool, command: Option<u8>, audit: Option<Result<Audit>>) -> Result<u8> {
        let (left, removal) = match audit {
            Some(Ok(audit)) => (!audit.left.is_empty(), None),
            Some(Err(error)) => (true, Some(error)),
            None => (false, None),
        };
        if let (Some(removal), true) = (&removal, made.is_err() || command.is_some_and(|code| code != 0)) {
            self.app.ui.error(removal);
        }
        let made = made?;
        if stays && !self.app.ui.is_json() {
            made.say(self.app);
        }
        match (command.filter(|code| *code != 0), removal) {
            (Some(code), _) => Ok(code),
            (None, Some(removal)) => Err(removal),
            (None, None) => Ok(u8::from(left)),
        }
    }

    /// A look that nobody waits for when the job is being ended.
    async fn look(&self) -> Option<gather::Report> {
        if self.app.cancel.is_cancelled() {
            return None;
        }
        let journal = journal::read(&self.app.dirs, &self.name).ok().flatten()?;
        gather::look(self.app, &journal, self.up.run.require_synced).await.ok()
    }

    async fn place(&self, made: &Made) -> Place {
        let cx = &made.cx;
        let kube = cx.kube().await.ok().flatten();
        Place {
            kubeconfig: cx.kubeconfig(),
            context: cx.provider().context(&self.name),
            server: kube.map(|kube| kube.server().trim_end_matches('/').to_owned()),
            url: format!("https://{}", cx.spec.domain),
            expires: cx.spec.expires,
        }
    }

    async fn command(&self, made: &Made, words: &[std::ffi::OsString]) -> (CommandReport, Option<Error>) {
        let begun = Instant::now();
        let program = Program::new(&words[0]).args(&words[1..]);
        let left = made.cx.spec.expires.map(|end| end.duration_since(jiff::Timestamp::now()));
        let left = left.and_then(|left| Duration::try_from(left).ok()).unwrap_or(LIFE);
        let program = program.env("KUBECONFIG", made.cx.kubeconfig()).env("K8TRE_NAME", self.name.as_str()).limit(left);
        let ended = program.attached(&self.app.cancel, self.app.ui.is_json()).await;
        let seconds = begun.elapsed().as_secs_f64();
        match ended {
            Ok(ended) => (CommandReport::new(ended, seconds), None),
            // As a shell has it for what cannot be started.
            Err(error) => {
                (CommandReport { exit_code: 127, seconds, stopped: Some("it could not be started") }, Some(error))
            }
        }
    }

    /// Takes it away, whatever signals come; `None` if nothing was made.
    async fn remove(&self) -> Option<Result<Audit>> {
        self.app.removing.store(true, Ordering::Relaxed);
        let quietly = App {
            ui: Arc::clone(&self.app.ui),
            dirs: self.app.dirs.clone(),
            cancel: CancellationToken::new(),
            removing: Arc::clone(&self.app.removing),
        };
        let args = DownArgs {
            name: NameArgs { environment: Some(self.name.clone()), name: None },
            all: false,
            keep_branch: false,
            unreachable_is_gone: false,
            dry_run: false,
            yes: true,
        };
        let mut last = None;
        for _ in 0..REMOVALS {
            match journal::read(&self.app.dirs, &self.name) {
                Ok(None) => break,
                // By the owner marks, then.
                Ok(Some(_)) | Err(_) => {}
            }
            match down::down(&quietly, &args, &self.name).await {
                Ok((audit, 0)) => return Some(Ok(audit)),
                Ok((audit, _)) => last = Some(Ok(audit)),
                Err(error) if error.kind() == Kind::NotFound => break,
                Err(error) => last = Some(Err(error)),
            }
        }
        last
    }
}

impl UpCommand {
    /// The command as a person would type it.
    fn shown(&self) -> String {
        match self.ephemeral.command.split_first() {
            Some((program, args)) => Program::new(program).args(args).shown(),
            None => String::new(),
        }
    }
}
