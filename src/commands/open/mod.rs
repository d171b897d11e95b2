//! `k8tre dev open`: Argo CD's UI or Applications in the browser, and Argo CD's password.

mod answer;
mod ways;

use std::net::IpAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::argocd::side::ArgoCd;
use crate::cli::{NameArgs, OpenArgs};
use crate::commands::application::{answer, find, sides};
use crate::commands::{App, select};
use crate::error::{Error, Result, ResultExt};
use crate::names::EnvName;
use crate::ports::docker::{Docker, HostPort};
use crate::ports::forward;
use crate::ports::kube::{Kube, Type};
use crate::ports::process::Program;
use crate::report::SCHEMA;
use crate::steps::argocd::admin_password;
use answer::answers;
use ways::Way;

const ARGOCD: &str = "argocd";
/// A name that does not resolve by then is not opened.
const RESOLVE: Duration = Duration::from_secs(2);

pub async fn password(app: &App, args: &NameArgs) -> Result<u8> {
    let name = select::existing_name(app, args)?;
    let (argocd, _) = sides(app, &name).await?;
    if let Some(shared) = select::journal_of(app, &name)?.spec.argocd.shared() {
        return Err(Error::usage(format!(
            "the Argo CD of {name} is shared, in {}: its administrators know how to log in",
            shared.place()
        ))
        .hint(format!("its UI: k8tre dev open --name {name}")));
    }
    let password = answer(&name, admin_password(&argocd.kube)).await?;
    match app.ui.is_json() {
        true => app.ui.json(&serde_json::json!({"username": "admin", "password": password}))?,
        false => app.ui.data(&password),
    }
    Ok(0)
}

pub async fn run(app: &App, args: &OpenArgs) -> Result<u8> {
    let name = select::existing_name(app, &args.name.args())?;
    let (argocd, kube) = sides(app, &name).await?;
    let published = published(&name).await;
    let mut found = Vec::new();
    for target in &args.targets {
        let ways = answer(&name, ways_to(app, (&argocd, &kube), &name, target, &published)).await?;
        found.extend(ways.into_iter().map(|way| (target.clone(), way)));
    }
    let forwards = found.iter().filter(|(_, way)| matches!(way, Way::Forward { .. })).count();
    if args.port.is_some() && forwards != 1 {
        return Err(Error::usage(format!("--port is for one connection, and here are {forwards}"))
            .hint("without --port free ones are taken"));
    }
    let (mut held, mut opened) = (JoinSet::new(), Vec::new());
    for (name_of_target, way) in found {
        let (url, through) = match way {
            Way::Direct { url, through } => (url, through),
            Way::Forward { scheme, service, target } => {
                let port = args.port.unwrap_or(0);
                let listener = TcpListener::bind(("127.0.0.1", port))
                    .await
                    .with_context(|| format!("cannot listen on port {port}"))
                    .hint("without --port a free one is taken")?;
                let url = format!("{scheme}://{}/", listener.local_addr()?);
                let kube = if name_of_target == ARGOCD { argocd.kube.clone() } else { kube.clone() };
                let (ui, shown) = (app.ui.clone(), service.clone());
                let failed = move |error: Error| ui.warn(&format!("{shown}: {error}"));
                held.spawn(async move { forward::serve(&kube, listener, target, failed).await });
                (url, format!("Service {service}"))
            }
        };
        opened.push((name_of_target, url, through));
    }
    show(app, &name, &opened)?;
    if !args.print {
        for (_, url, _) in &opened {
            browse(url).await;
        }
    }
    if !held.is_empty() {
        app.ui.say("Ctrl-C ends the connections");
        app.cancel.cancelled().await;
    }
    Ok(0)
}

fn show(app: &App, name: &EnvName, opened: &[(String, String, String)]) -> Result<()> {
    if app.ui.is_json() {
        let all: Vec<Value> = opened
            .iter()
            .map(|(target, url, through)| serde_json::json!({"target": target, "url": url, "through": through}))
            .collect();
        app.ui.json_line(&serde_json::json!({"schema": SCHEMA, "environment": name, "opened": all}));
        return Ok(());
    }
    for (target, url, through) in opened {
        app.ui.data(url);
        app.ui.say(&format!("  {target}, through {through}"));
        if target == ARGOCD {
            app.ui.say(&format!("  user admin, password: k8tre dev password {name}"));
        }
    }
    Ok(())
}

async fn ways_to(
    app: &App,
    (argocd, kube): (&ArgoCd, &Kube),
    name: &EnvName,
    target: &str,
    published: &[HostPort],
) -> Result<Vec<Way>> {
    let service_type = Type::new("v1", "Service");
    if target == ARGOCD {
        let service = argocd.get(&service_type, "argocd-server").await?;
        let ways = ways::of_services(service.as_slice(), published);
        return match ways.is_empty() {
            true => Err(Error::failed("Argo CD's API server is not there").hint(format!("k8tre dev up {name}"))),
            false => Ok(ways),
        };
    }
    let application = find(argocd, name, target).await.map_err(|error| match target == name.as_str() {
        true => error.hint(format!("Argo CD's UI of the environment {name}: k8tre dev open --name {name}")),
        false => error,
    })?;
    let shown = application["metadata"]["name"].as_str().unwrap_or(target);
    let ingresses = deployed(kube, &application, &Type::new("networking.k8s.io/v1", "Ingress")).await?;
    let mut direct = Vec::new();
    for host in ways::hosts(&ingresses, published) {
        let would_be = format!("{} would be {shown}'s Ingress {}", host.url, host.ingress);
        match leads_here(&host.name).await {
            false => app.ui.say(&format!(
                "{would_be}, if that name led to this machine: echo 127.0.0.1 {} | sudo tee -a /etc/hosts",
                host.name
            )),
            true if !answers(&host).await => app.ui.say(&format!(
                "{would_be}, but nothing answers on port {}: is there an ingress controller in the cluster?",
                host.port
            )),
            true => direct.push(Way::Direct { url: host.url, through: format!("Ingress {}", host.ingress) }),
        }
    }
    if !direct.is_empty() {
        return Ok(direct);
    }
    let ways = ways::of_services(&deployed(kube, &application, &service_type).await?, published);
    match ways.is_empty() {
        true => Err(Error::failed(format!("{shown} has no Service with pods that could be opened"))
            .hint(format!("k8tre dev status {name}"))),
        false => Ok(ways),
    }
}

/// Objects of a type among those that the Application deployed.
async fn deployed(kube: &Kube, application: &Value, of: &Type) -> Result<Vec<Value>> {
    let listed = application["status"]["resources"].as_array().into_iter().flatten();
    let mut objects = Vec::new();
    for one in listed.filter(|one| one["kind"] == of.kind()) {
        if let (Some(namespace), Some(name)) = (one["namespace"].as_str(), one["name"].as_str()) {
            objects.extend(kube.get(of, namespace, name).await?);
        }
    }
    Ok(objects)
}

/// Ports of this machine that lead into the cluster's nodes; none if Docker does not say.
async fn published(name: &EnvName) -> Vec<HostPort> {
    let Ok(docker) = Docker::open().await else { return Vec::new() };
    let label = format!("io.x-k8s.kind.cluster={}", name.cluster());
    let nodes = docker.containers(&[&label]).await.unwrap_or_default();
    nodes.into_iter().flat_map(|node| node.ports).collect()
}

async fn leads_here(host: &str) -> bool {
    let lookup = tokio::time::timeout(RESOLVE, tokio::net::lookup_host((host, 0))).await;
    let Ok(Ok(mut addresses)) = lookup else { return false };
    addresses.any(|address| match address.ip() {
        IpAddr::V4(ip) => ip.is_loopback(),
        IpAddr::V6(ip) => ip.is_loopback(),
    })
}

/// Opens the user's browser where there is one; the address is printed in any case.
async fn browse(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    if which::which(program).is_ok() {
        let _ = Program::new(program).arg(url).limit(Duration::from_secs(5)).output().await;
    }
}
