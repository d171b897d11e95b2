//! One file a command. A command gathers, walks the steps through the engine, and reports; what it
//! knows about clusters, git or Argo CD it asks of the steps.

mod application;
mod cache;
mod change;
mod completions;
mod diagnose;
mod doctor;
mod down;
mod ephemeral;
mod extend;
mod gc;
mod graph;
mod ground;
mod hold;
mod internal;
mod kubeconfig;
mod lint;
mod list;
mod logs;
mod onboard;
mod open;
mod pause;
mod plan;
mod preview;
mod secrets;
mod select;
mod shared;
mod shell;
mod source;
mod status;
mod sync;
mod timings;
mod up;
mod use_app;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

use crate::cli::{Cli, Command, Dev, Internal};
use crate::error::{Error, Kind, Result};
use crate::ports::dirs::Dirs;
use crate::ui::Ui;

/// What every command has at hand.
pub struct App {
    pub ui: Arc<Ui>,
    pub dirs: Dirs,
    /// Ends with Ctrl-C or a SIGTERM.
    pub cancel: CancellationToken,
    /// Set while what must not stay is taken away: no signal ends that.
    pub removing: Arc<AtomicBool>,
}

/// Runs the command line; returns the exit code.
pub fn run(cli: Cli) -> u8 {
    let ui = Arc::new(Ui::new(cli.global.output, cli.global.verbose > 0));
    trace(cli.global.verbose);
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => {
            ui.error(&Error::from(e).context("cannot start"));
            return 1;
        }
    };
    let result = runtime.block_on(dispatch(cli.command, Arc::clone(&ui)));
    // A thread that waits for standard input must not hold up the end.
    runtime.shutdown_background();
    match result {
        Ok(code) => code,
        Err(error) => {
            ui.error(&error);
            error.exit_code()
        }
    }
}

async fn dispatch(command: Command, ui: Arc<Ui>) -> Result<u8> {
    match command {
        Command::Completions { shell } => return completions::completions(&ui, shell),
        Command::Man { folder } => return completions::man(&ui, &folder),
        Command::Internal(Internal::GitTransport { host, command }) => {
            return internal::git_transport(&host, &command).await;
        }
        _ => {}
    }
    let app = App { ui, dirs: Dirs::find()?, cancel: CancellationToken::new(), removing: Arc::default() };
    listen(app.cancel.clone(), Arc::clone(&app.removing))?;
    match command {
        Command::Onboard(args) => onboard::run(&app, &args).await,
        Command::Shared(command) => shared::run(&app, &command).await,
        Command::Lint(args) => lint::run(&app, &args),
        Command::Cache(args) => cache::run(&app, &args).await,
        Command::Doctor(args) => doctor::run(&app, &args).await,
        Command::Dev(dev) => match *dev {
            Dev::Up(args) if args.ephemeral.ephemeral => ephemeral::run(&app, &args).await,
            Dev::Up(args) => up::run(&app, &args.up).await,
            Dev::Plan(args) => plan::run(&app, &args).await,
            Dev::Preview(args) => preview::run(&app, &args).await,
            Dev::Down(args) => down::run(&app, &args).await,
            Dev::Status(args) => status::run(&app, &args).await,
            Dev::Sync(args) => sync::run(&app, &args).await,
            Dev::List => list::run(&app).await,
            Dev::Password(args) => open::password(&app, &args).await,
            Dev::Pause(args) => pause::pause(&app, &args).await,
            Dev::Resume(args) => pause::resume(&app, &args).await,
            Dev::Secrets(args) => secrets::run(&app, &args).await,
            Dev::Kubeconfig(args) => kubeconfig::run(&app, &args).await,
            Dev::Open(args) => open::run(&app, &args).await,
            Dev::Logs(args) => logs::run(&app, &args).await,
            Dev::Shell(args) => shell::run(&app, &args),
            Dev::Graph(args) => graph::run(&app, &args).await,
            Dev::Timings(args) => timings::run(&app, &args),
            Dev::Extend(args) => extend::run(&app, &args).await,
            Dev::Gc(args) => gc::run(&app, &args).await,
            Dev::Hold(args) => hold::hold(&app, &args).await,
            Dev::Use(args) => use_app::run(&app, &args).await,
            Dev::Release(args) => hold::release(&app, &args).await,
            Dev::Diagnose(args) => diagnose::run(&app, &args).await,
        },
        Command::Completions { .. } | Command::Man { .. } | Command::Internal(_) => Ok(0),
    }
}

/// The first signal asks for a clean stop; the second ends the process where it stands, which `up`
/// and `down` survive as well.
fn listen(cancel: CancellationToken, removing: Arc<AtomicBool>) -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if removing.load(Ordering::Relaxed) {
                continue;
            }
            if cancel.is_cancelled() {
                #[allow(clippy::exit)] // asked for twice: now, whatever is under way
                std::process::exit(Kind::Interrupted.exit_code().into());
            }
            cancel.cancel();
        }
    });
    Ok(())
}

fn trace(verbose: u8) {
    if verbose < 2 {
        return;
    }
    let level = if verbose == 2 { "k8tre=debug" } else { "k8tre=trace,kube=debug" };
    let subscriber = tracing_subscriber::fmt().with_env_filter(level).with_writer(std::io::stderr).with_target(false);
    // Only a second call could fail, and there is none.
    let _ = subscriber.try_init();
}
