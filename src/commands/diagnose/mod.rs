//! `k8tre dev diagnose`: one archive for a bug report, without secrets, however much is broken.

mod archive;
mod cluster;
mod scope;
mod shared;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use crate::cli::DiagnoseArgs;
use crate::commands::status::{gather, show};
use crate::commands::{App, select};
use crate::context::{Context, Options, Record};
use crate::error::{Error, Result, ResultExt};
use crate::journal::{self, Journal};
use crate::names::EnvName;
use crate::ports::docker::Docker;
use crate::ports::kube::Kube;
use crate::ports::process::Program;
use crate::redact::Redactor;
use crate::report::SCHEMA;
use archive::Archive;
use scope::Scope;

/// All that the cluster is asked, and kind's own export.
const CLUSTER: Duration = Duration::from_secs(90);
const EXPORT: Duration = Duration::from_secs(60);
const VERSION: Duration = Duration::from_secs(5);
/// Files of kind's export, and the most that is read of each.
const FILES: usize = 500;
const READ: u64 = 8 << 20;

pub async fn run(app: &App, args: &DiagnoseArgs) -> Result<u8> {
    let name = select::existing_name(app, &args.name)?;
    let stamp = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    let folder = format!("k8tre-diagnose-{name}-{stamp}");
    let path = args.file.clone().unwrap_or_else(|| PathBuf::from(format!("{folder}.tar.gz")));
    // A damaged journal is one more thing to report, and no reason to stop.
    let recorded = journal::read(&app.dirs, &name);
    if let Ok(None) = recorded {
        select::journal_of(app, &name)?;
    }
    let mut archive = Archive::create(&path, &folder)?;
    let gather = gather_all(app, &name, recorded, &mut archive);
    tokio::select! {
        () = app.cancel.cancelled() => return Err(Error::interrupted()),
        gathered = gather => gathered?,
    }
    let missing = archive.finish()?;
    if app.ui.is_json() {
        app.ui.json(&json!({"schema": SCHEMA, "environment": name, "file": path, "missing": missing}))?;
        return Ok(0);
    }
    app.ui.data(&path.display().to_string());
    for what in &missing {
        app.ui.say(&format!("  not in it: {}", crate::text::one_line(&what.replace('\n', " "), 200)));
    }
    app.ui.say("  Secrets, tokens and passwords are taken out; look through it before you give it away");
    Ok(0)
}

async fn gather_all(app: &App, name: &EnvName, recorded: Result<Option<Journal>>, archive: &mut Archive) -> Result<()> {
    let kubeconfig = app.dirs.kubeconfig(name.as_str());
    let kube = Kube::open(&kubeconfig, None).await;
    // First what is secret, so that nothing that follows can show it.
    let mut values = own_secrets(&kubeconfig);
    if let Ok(kube) = &kube {
        app.ui.say("reading the cluster's Secrets, to leave out their values");
        values.extend(archive.attempt("values of Secrets", cluster::secret_values(kube).await).unwrap_or_default());
    }
    let shared = match &recorded {
        Ok(Some(journal)) => archive.attempt("shared", shared::read(journal, &kubeconfig).await).flatten(),
        _ => None,
    };
    values.extend(shared.iter().flat_map(shared::secret_values));
    archive.redactor = Redactor::knowing(values);

    let scope = match &recorded {
        Ok(Some(journal)) => {
            let scope = archive.attempt("the environment's part of the cluster", Scope::of(journal, &kubeconfig).await);
            scope.unwrap_or_else(|| Scope::marked(journal))
        }
        // Without a journal there is no cluster but one of k8tre's own making.
        _ => Scope::Everything,
    };
    let has_nodes = match &recorded {
        Ok(Some(journal)) => crate::providers::of(&journal.spec).loads_images(),
        // Most have.
        _ => true,
    };
    archive.json("versions.json", &versions().await)?;
    if let Some(Some(journal)) = archive.attempt("journal.json", recorded) {
        archive.json("journal.json", &journal)?;
        plan(app, &journal, archive)?;
        app.ui.say("looking at the environment");
        if let Some(report) = archive.attempt("status.json", gather::look(app, &journal, false).await) {
            archive.json("status.json", &report)?;
            let text = show::text(&report, app.ui.is_unicode());
            archive.text("status.txt", &text)?;
        }
    }
    if let Some(shared) = &shared {
        shared::add(shared, archive)?;
    }
    docker(name, archive).await?;
    if let Some(kube) = archive.attempt("kubernetes", kube) {
        app.ui.say("asking the cluster for objects, events and logs");
        match tokio::time::timeout(CLUSTER, cluster::add(archive, &kube, &scope)).await {
            Ok(added) => added?,
            Err(_) => archive.missing("kubernetes", &Error::failed(format!("not all within {} s", CLUSTER.as_secs()))),
        }
    }
    if has_nodes {
        app.ui.say("asking kind for its logs");
        let exported = export(name, archive).await;
        archive.attempt("kind", exported);
    }
    Ok(())
}

/// Keys and tokens of the environment's kubeconfig.
fn own_secrets(kubeconfig: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(kubeconfig).unwrap_or_default();
    let of_line = |line: &str| {
        let (key, value) = line.trim().trim_start_matches("- ").split_once(':')?;
        matches!(key, "client-key-data" | "token" | "password").then(|| value.trim().trim_matches('"').to_owned())
    };
    text.lines().filter_map(of_line).collect()
}

async fn versions() -> serde_json::Value {
    let ask = |program: &'static str, args: &'static [&'static str]| async move {
        match Program::new(program).args(args).limit(VERSION).output().await {
            Ok(output) => output.text(),
            Err(error) => error.to_string(),
        }
    };
    let (git, kind, kubectl) =
        tokio::join!(ask("git", &["--version"]), ask("kind", &["version"]), ask("kubectl", &["version", "--client"]));
    let system = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    json!({"k8tre": env!("CARGO_PKG_VERSION"), "system": system, "git": git, "kind": kind, "kubectl": kubectl})
}

fn plan(app: &App, journal: &Journal, archive: &mut Archive) -> Result<()> {
    let facts = Box::new(journal.facts.clone());
    let cx = Context::new(journal, Record::Reading(facts), app.dirs.clone(), Options::default(), app.ui.clone());
    let steps = crate::plan::steps(&cx.spec);
    let lines: Vec<String> = steps.iter().map(|step| format!("{:<15} {}", step.id(), step.describe())).collect();
    archive.text("plan.txt", &lines.join("\n"))
}

async fn docker(name: &EnvName, archive: &mut Archive) -> Result<()> {
    let look = async {
        let docker = Docker::open().await?;
        let info = docker.info().await?;
        let label = format!("io.x-k8s.kind.cluster={}", name.cluster());
        let containers = docker.containers(&[&label]).await?;
        Ok::<_, Error>(format!("{}\n\n{info:#?}\n\n{containers:#?}\n", docker.endpoint()))
    };
    match archive.attempt("docker.txt", look.await) {
        Some(text) => archive.text("docker.txt", &text),
        None => Ok(()),
    }
}

/// kind's own export: what its nodes' kubelets, runtimes and pods have logged.
async fn export(name: &EnvName, archive: &mut Archive) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("k8tre-diagnose-").tempdir()?;
    let docker = Docker::open().await?;
    let mut program = Program::new("kind").args(["export", "logs"]).arg(folder.path());
    program = program.args(["--name", &name.cluster()]).limit(EXPORT).own_group();
    for (variable, value) in docker.child_env() {
        program = match value {
            Some(value) => program.env(variable, value),
            None => program.env_remove(variable),
        };
    }
    let ended = program.run().await;
    // What it wrote before it failed counts.
    let mut files = Vec::new();
    walk(folder.path(), &mut files)?;
    files.sort();
    for path in files.into_iter().take(FILES) {
        let name = path.strip_prefix(folder.path())?.display().to_string();
        // The same logs as under pods/.
        if name.contains("/containers/") {
            continue;
        }
        let text = tail(&path).with_context(|| format!("cannot read {name}"));
        if let Some(text) = archive.attempt(&format!("kind/{name}"), text) {
            archive.text(&format!("kind/{name}"), &text)?;
        }
    }
    ended.map(drop)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        // Links lead to files that are there by themselves, or out of the folder.
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// The end of a file. One that is cut begins with a whole line.
fn tail(path: &Path) -> Result<String> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = std::fs::File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(READ)))?;
    let mut bytes = Vec::new();
    file.take(READ).read_to_end(&mut bytes)?;
    // In what is no text nobody could find a secret.
    if bytes.contains(&0) {
        return Err(Error::failed("it is not text"));
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(match size > READ {
        true => text.split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap_or_default(),
        false => text,
    })
}
