//! `k8tre dev logs`: what all pods of an Application say, those to come included.

mod line;
mod read;
mod source;

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::argocd::side::{ArgoCd, Sides};
use crate::causes::{causes, pods_of};
use crate::cli::LogsArgs;
use crate::commands::application::{answer, find, sides};
use crate::commands::{App, select};
use crate::error::{Error, Kind, Result};
use crate::names::EnvName;
use crate::ports::kube::Kube;
use line::{Line, Printer};
use read::{Start, read};
use source::{Source, sources};

/// How often pods are looked for.
const LOOK: Duration = Duration::from_millis(1500);
/// Lines of each container to begin with.
const TAIL: i64 = 50;
/// Lines on their way to the screen; past that, reading waits.
const QUEUE: usize = 1024;
/// What a container that is only read to its end may take.
const READ_LIMIT: Duration = Duration::from_secs(30);

pub async fn run(app: &App, args: &LogsArgs) -> Result<u8> {
    let name = select::existing_name(app, &args.name.args())?;
    let (argocd, kube) = &sides(app, &name).await?;
    let from = From { argocd, kube, name: &name, args };
    let application = answer(&name, find(argocd, &name, &args.app)).await?;
    let mut printer = Printer::new(&app.ui);
    let follow = async {
        match args.no_follow {
            true => from.once(&application, &mut printer).await,
            false => from.follow(app, application, &mut printer).await,
        }
    };
    tokio::select! {
        () = app.cancel.cancelled() => Ok(0),
        ended = follow => ended.map(|()| 0),
    }
}

fn start(args: &LogsArgs) -> Start {
    let tail = args.tail.map(i64::from).or((args.since.is_none()).then_some(TAIL));
    let since = args.since.map(|since| i64::try_from(since.as_secs().max(1)).unwrap_or(i64::MAX));
    Start { tail, since, after: None }
}

/// Where is read, and what.
struct From<'a> {
    argocd: &'a ArgoCd,
    kube: &'a Kube,
    name: &'a EnvName,
    args: &'a LogsArgs,
}

impl From<'_> {
    /// Everything there is, in the order of time.
    async fn once(&self, app: &Value, printer: &mut Printer<'_>) -> Result<()> {
        let From { kube, name, args, .. } = *self;
        let sources = sources(&answer(name, pods_of(kube, app)).await?, args.container.as_deref());
        if sources.is_empty() {
            return Err(self.silence(app).await);
        }
        let mut tasks = JoinSet::new();
        for source in sources {
            let (kube, start, (sender, mut lines)) = (kube.clone(), start(args), mpsc::channel(QUEUE));
            tasks.spawn(async move {
                let collect = async {
                    let mut all = Vec::new();
                    while let Some(line) = lines.recv().await {
                        all.push(line);
                    }
                    all
                };
                let reading = tokio::time::timeout(READ_LIMIT, read(&kube, &source, start, false, sender));
                let (ended, lines) = tokio::join!(reading, collect);
                let error = match ended {
                    Ok(Ok(_)) => None,
                    Ok(Err(error)) => Some(error.to_string()),
                    Err(_) => Some(format!("its log did not end within {} s", READ_LIMIT.as_secs())),
                };
                (lines, error.map(|error| format!("{}: {error}", source.shown())))
            });
        }
        let (mut lines, mut errors): (Vec<Line>, Vec<String>) = (Vec::new(), Vec::new());
        while let Some(Ok((read, error))) = tasks.join_next().await {
            lines.extend(read);
            errors.extend(error);
        }
        lines.sort_by_key(|line| line.time);
        lines.iter().for_each(|line| printer.print(line));
        errors.iter().for_each(|error| printer.warn(error));
        Ok(())
    }

    async fn follow(&self, app: &App, mut application: Value, printer: &mut Printer<'_>) -> Result<()> {
        let From { kube, args, .. } = *self;
        let (sender, mut lines) = mpsc::channel(QUEUE);
        let mut known: HashMap<String, Progress> = HashMap::new();
        let mut tasks: JoinSet<(String, bool, Option<jiff::Timestamp>)> = JoinSet::new();
        let (mut first, mut said) = (true, String::new());
        let mut timer = tokio::time::interval(LOOK);
        timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                Some(line) = lines.recv() => printer.print(&line),
                Some(Ok((key, running, after))) = tasks.join_next() => {
                    let progress: &mut Progress = known.entry(key).or_default();
                    // What still ran when its stream ended is taken up again where it was left.
                    *progress = Progress { reading: false, ended: !running, after: after.or(progress.after) };
                }
                _ = timer.tick() => {
                    let (found, again) = match self.look(&application).await {
                        Ok(found) => found,
                        Err(error) if first => return Err(error),
                        Err(error) => {
                            repeat(app, &mut said, &error.to_string());
                            continue;
                        }
                    };
                    application = again.unwrap_or(application);
                    if found.is_empty() && known.is_empty() {
                        let error = self.silence(&application).await;
                        if error.kind() != Kind::Unhealthy {
                            return Err(error);
                        }
                        repeat(app, &mut said, &format!("{error}; waiting for its pods"));
                    }
                    for source in found {
                        let progress = known.entry(source.key()).or_default();
                        if progress.reading || progress.ended {
                            continue;
                        }
                        progress.reading = true;
                        let after = progress.after;
                        // Pods that come while following are read from their start.
                        let from = if first { start(args) } else { Start::default() };
                        let from = if after.is_some() { Start { after, ..Start::default() } } else { from };
                        let (kube, sender) = (kube.clone(), sender.clone());
                        tasks.spawn(async move {
                            let read = read(&kube, &source, from, true, sender).await;
                            (source.key(), source.running, read.ok().flatten().or(after))
                        });
                    }
                    first = false;
                }
            }
        }
    }

    /// What can be read now, and the Application as it is now if it is still there.
    async fn look(&self, app: &Value) -> Result<(Vec<Source>, Option<Value>)> {
        let From { argocd, kube, name, args } = *self;
        answer(name, async {
            let again = find(argocd, name, app["metadata"]["name"].as_str().unwrap_or(&args.app)).await.ok();
            let pods = pods_of(kube, again.as_ref().unwrap_or(app)).await?;
            Ok((sources(&pods, args.container.as_deref()), again))
        })
        .await
    }

    /// Why there is nothing to read.
    async fn silence(&self, app: &Value) -> Error {
        let args = self.args;
        let sides = Sides { argocd: self.argocd.clone(), workloads: Some(self.kube.clone()) };
        let name = app["metadata"]["name"].as_str().unwrap_or(&args.app);
        let which =
            args.container.as_ref().map(|container| format!(" with a container {container}")).unwrap_or_default();
        let healthy = app["status"]["health"]["status"] == "Healthy";
        match causes(&sides, &[app]).await.remove(name).filter(|_| !healthy || app["status"]["conditions"].is_array()) {
            Some(cause) => {
                let error =
                    Error::new(Kind::Unhealthy, format!("no pod of {name}{which} can log: {cause}  [{}]", cause.code));
                cause.hint.iter().fold(error, |error, hint| error.hint(hint.clone()))
            }
            None if healthy => Error::failed(format!("{name} has no pods{which}")),
            None => Error::new(Kind::Unhealthy, format!("{name} has no pods{which} yet")),
        }
    }
}

/// One container's run, and how far it was read.
#[derive(Default)]
struct Progress {
    reading: bool,
    after: Option<jiff::Timestamp>,
    ended: bool,
}

/// A line that does not change is said once.
fn repeat(app: &App, said: &mut String, text: &str) {
    if said != text {
        app.ui.warn(text);
        *said = text.to_owned();
    }
}
