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
/// How long containers may say nothing until it is said that they do.
const SILENCE: Duration = Duration::from_secs(2);
/// What a container that is only read to its end may take.
const READ_LIMIT: Duration = Duration::from_secs(30);

pub async fn run(app: &App, args: &LogsArgs) -> Result<u8> {
    let name = select::existing_name(app, &args.name.args())?;
    let both = &sides(app, &name).await?;
    let application = answer(&name, find(&both.0, &name, &args.app)).await?;
    let mut printer = Printer::new(&app.ui);
    let follow = async {
        match args.no_follow || args.previous {
            true => once(both, &name, &application, args, &mut printer).await,
            false => follow(app, both, &name, application, args, &mut printer).await,
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
    Start { tail, since, after: None, previous: args.previous }
}

/// Where the Application is, and where its pods are.
type Both = (ArgoCd, Kube);

/// Everything there is, in the order of time.
async fn once(both: &Both, name: &EnvName, app: &Value, args: &LogsArgs, printer: &mut Printer<'_>) -> Result<()> {
    let (_, kube) = both;
    let pods = answer(name, pods_of(kube, app)).await?;
    let sources = sources(&pods, args.container.as_deref(), args.previous);
    if sources.is_empty() && args.previous && !pods.is_empty() {
        let name = app["metadata"]["name"].as_str().unwrap_or(&args.app);
        return Err(Error::failed(format!(
            "no container of {name} has ended a run: none crashed or was started again"
        ))
        .hint(format!("see what they say now: k8tre dev logs {}", args.app)));
    }
    if sources.is_empty() {
        return Err(silence(both, app, args).await);
    }
    let containers = shown(&sources);
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
    if lines.is_empty() && errors.is_empty() {
        printer.say(&format!("{containers}: no line{}", if args.since.is_some() { " in that time" } else { "" }));
    }
    lines.sort_by_key(|line| line.time);
    lines.iter().for_each(|line| printer.print(line));
    errors.iter().for_each(|error| printer.warn(error));
    Ok(())
}

/// One container's run, and how far it was read.
#[derive(Default)]
struct Progress {
    reading: bool,
    after: Option<jiff::Timestamp>,
    ended: bool,
}

async fn follow(
    app: &App,
    both: &Both,
    name: &EnvName,
    mut application: Value,
    args: &LogsArgs,
    printer: &mut Printer<'_>,
) -> Result<()> {
    let (sender, mut lines) = mpsc::channel(QUEUE);
    let mut known: HashMap<String, Progress> = HashMap::new();
    let mut tasks: JoinSet<(String, bool, Option<jiff::Timestamp>)> = JoinSet::new();
    let (mut first, mut said) = (true, String::new());
    // What is followed is said once if it keeps silent: else nobody knows whether anything is.
    let silence_ends = tokio::time::sleep(SILENCE);
    tokio::pin!(silence_ends);
    let (mut silent, mut followed) = (true, String::new());
    let mut timer = tokio::time::interval(LOOK);
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            Some(line) = lines.recv() => {
                silent = false;
                printer.print(&line);
            }
            () = &mut silence_ends, if silent => {
                silent = false;
                if !followed.is_empty() {
                    printer.say(&format!("{followed}: no line yet; following"));
                }
            }
            Some(Ok((key, running, after))) = tasks.join_next() => {
                let progress: &mut Progress = known.entry(key).or_default();
                // What still ran when its stream ended is taken up again where it was left.
                *progress = Progress { reading: false, ended: !running, after: after.or(progress.after) };
            }
            _ = timer.tick() => {
                let (found, again) = match look(both, name, &application, args).await {
                    Ok(found) => found,
                    Err(error) if first => return Err(error),
                    Err(error) => {
                        repeat(app, &mut said, &error.to_string());
                        continue;
                    }
                };
                application = again.unwrap_or(application);
                if found.is_empty() && known.is_empty() {
                    let error = silence(both, &application, args).await;
                    if error.kind() != Kind::Unhealthy {
                        return Err(error);
                    }
                    repeat(app, &mut said, &format!("{error}; waiting for its pods"));
                }
                followed = shown(&found);
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
                    let (kube, sender) = (both.1.clone(), sender.clone());
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
async fn look(both: &Both, name: &EnvName, app: &Value, args: &LogsArgs) -> Result<(Vec<Source>, Option<Value>)> {
    let (argocd, kube) = both;
    answer(name, async {
        let again = find(argocd, name, app["metadata"]["name"].as_str().unwrap_or(&args.app)).await.ok();
        let pods = pods_of(kube, again.as_ref().unwrap_or(app)).await?;
        Ok((sources(&pods, args.container.as_deref(), false), again))
    })
    .await
}

/// The containers, as the lines name them.
fn shown(sources: &[Source]) -> String {
    let all: Vec<String> = sources.iter().map(Source::shown).collect();
    crate::text::one_line(&all.join(", "), 200)
}

/// A line that does not change is said once.
fn repeat(app: &App, said: &mut String, text: &str) {
    if said != text {
        app.ui.warn(text);
        *said = text.to_owned();
    }
}

/// Why there is nothing to read.
async fn silence(both: &Both, app: &Value, args: &LogsArgs) -> Error {
    let name = app["metadata"]["name"].as_str().unwrap_or(&args.app);
    let which = args.container.as_ref().map(|container| format!(" with a container {container}")).unwrap_or_default();
    let healthy = app["status"]["health"]["status"] == "Healthy";
    let sides = Sides { argocd: both.0.clone(), workloads: Some(both.1.clone()) };
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
