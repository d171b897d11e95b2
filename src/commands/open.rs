//! `k8tre dev open`: Argo CD's UI on a local port, and the password that opens it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use tokio::net::TcpListener;

use crate::argocd::NAMESPACE;
use crate::cli::{NameArgs, OpenArgs};
use crate::commands::{App, select};
use crate::error::{Error, Result, ResultExt};
use crate::names::EnvName;
use crate::ports::kube::Kube;
use crate::ports::process::Program;
use crate::steps::argocd::admin_password;

/// Port of Argo CD's API server in its pod.
const SERVER_PORT: u16 = 8080;
const FIND_LIMIT: Duration = Duration::from_secs(15);

pub async fn password(app: &App, args: &NameArgs) -> Result<u8> {
    let name = select::existing_name(app, args)?;
    let kube = cluster(app, &name).await?;
    let password = answer(&name, admin_password(&kube)).await?;
    match app.ui.is_json() {
        true => app.ui.json(&serde_json::json!({"username": "admin", "password": password}))?,
        false => app.ui.data(&password),
    }
    Ok(0)
}

pub async fn run(app: &App, args: &OpenArgs) -> Result<u8> {
    let name = select::existing_name(app, &args.name)?;
    let kube = cluster(app, &name).await?;
    let pods: Api<Pod> = Api::namespaced(kube.client().clone(), NAMESPACE);
    let pod = answer(&name, server_pod(&pods)).await?;
    let port = args.port.unwrap_or(0);
    let listener = TcpListener::bind(("127.0.0.1", port))
        .await
        .with_context(|| format!("cannot listen on port {port}"))
        .hint("without --port a free one is taken")?;
    let url = format!("http://{}/", listener.local_addr()?);
    app.ui.data(&url);
    app.ui.say(&format!("user admin, password: k8tre dev password {name}; Ctrl-C ends the connection"));
    if !args.print {
        browse(&url).await;
    }
    loop {
        let (mut socket, _) = tokio::select! {
            () = app.cancel.cancelled() => return Ok(0),
            accepted = listener.accept() => accepted.context("cannot accept a connection")?,
        };
        let (pods, pod) = (pods.clone(), pod.clone());
        tokio::spawn(async move {
            let Ok(mut forward) = pods.portforward(&pod, &[SERVER_PORT]).await else { return };
            if let Some(mut stream) = forward.take_stream(SERVER_PORT) {
                // A browser that closes its tab is no error.
                let _ = tokio::io::copy_bidirectional(&mut socket, &mut stream).await;
            }
        });
    }
}

async fn cluster(app: &App, name: &EnvName) -> Result<Kube> {
    select::journal_of(app, name)?;
    let kubeconfig = app.dirs.environment(name.as_str()).join("kubeconfig");
    Kube::open_for_streams(&kubeconfig, None).await.hint(format!("k8tre dev up {name}"))
}

/// A connection for streams has no limits of its own.
async fn answer<T>(name: &EnvName, question: impl Future<Output = Result<T>>) -> Result<T> {
    let answered = tokio::time::timeout(FIND_LIMIT, question).await;
    answered.unwrap_or_else(|_| Err(Error::failed("the cluster does not answer"))).hint(format!("k8tre dev status {name}"))
}

async fn server_pod(pods: &Api<Pod>) -> Result<String> {
    let list = pods.list(&ListParams::default().labels("app.kubernetes.io/name=argocd-server")).await?;
    let running = list.items.into_iter().find(|pod| {
        pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running") && pod.metadata.deletion_timestamp.is_none()
    });
    running.and_then(|pod| pod.metadata.name).ok_or_else(|| Error::failed("Argo CD's API server is not running"))
}

/// Opens the user's browser where there is one; the address is printed in any case.
async fn browse(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    if which::which(program).is_ok() {
        let _ = Program::new(program).arg(url).limit(Duration::from_secs(5)).output().await;
    }
}
