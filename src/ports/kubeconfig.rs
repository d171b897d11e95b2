//! The user's own kubeconfig, touched only when asked, and then by kubectl, whose file it is.
//!
//! kubectl locks it, keeps what it does not know, and leaves the current context alone.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use kube::config::Kubeconfig;
use secrecy::ExposeSecret;
use serde_json::json;

use crate::error::{Error, Result, ResultExt};
use crate::ports::process::Program;
use crate::ports::{dirs, environment};

/// The file that kubectl would write to.
pub fn users() -> Result<PathBuf> {
    if let Some(list) = environment::var("KUBECONFIG") {
        let first = list.split(':').find(|path| !path.is_empty());
        return first.map(PathBuf::from).ok_or_else(|| Error::usage("KUBECONFIG names no file"));
    }
    let home = directories::BaseDirs::new()
        .ok_or_else(|| Error::usage("there is no home folder with a kubeconfig").hint("set HOME or KUBECONFIG"))?;
    Ok(home.home_dir().join(".kube").join("config"))
}

/// Where Kubernetes puts what a pod needs to be the account that it runs as.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Name of the context for the cluster around a pod.
pub const IN_CLUSTER: &str = "in-cluster";

/// Writes a kubeconfig for the cluster around this pod. It names the files of the pod's account, and holds nothing secret.
pub fn in_cluster(folder: &Path) -> Result<PathBuf> {
    let (host, port) = (environment::var("KUBERNETES_SERVICE_HOST"), environment::var("KUBERNETES_SERVICE_PORT"));
    let (Some(host), Some(port), true) = (host, port, Path::new(ACCOUNT).join("token").exists()) else {
        return Err(Error::usage("--in-cluster is for a pod of the cluster, with a ServiceAccount")
            .hint("print what runs it there: k8tre shared gc-manifest --image IMAGE")
            .hint("from here: k8tre dev gc --host CONTEXT"));
    };
    let path = folder.join("in-cluster");
    dirs::write_private(&path, of_account(&host, &port).as_bytes()).map(|()| path)
}

fn of_account(host: &str, port: &str) -> String {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    // JSON is YAML, and nothing in it can be misread.
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": IN_CLUSTER,
        "clusters": [{"name": IN_CLUSTER, "cluster": {
            "server": format!("https://{host}:{port}"), "certificate-authority": format!("{ACCOUNT}/ca.crt"),
        }}],
        "users": [{"name": IN_CLUSTER, "user": {"tokenFile": format!("{ACCOUNT}/token")}}],
        "contexts": [{"name": IN_CLUSTER, "context": {"cluster": IN_CLUSTER, "user": IN_CLUSTER}}],
    })
    .to_string()
}

/// The first of the user's files that has a context, as kubectl looks through them.
pub fn with_context(context: &str) -> Result<Option<PathBuf>> {
    Ok(users_files()?.into_iter().find(|file| mentions(context, file)))
}

/// The error for a context that none of the user's files has.
pub fn unknown_context(context: &str) -> Result<Error> {
    let contexts = contexts()?;
    let error = Error::usage(format!("your kubeconfig has no context {}", crate::text::one_line(context, 100)));
    Ok(match contexts.is_empty() {
        true => error.hint("export KUBECONFIG=FILE"),
        false => error.hint(format!("there are: {}", crate::text::one_line(&contexts.join(", "), 300))),
    })
}

/// Names of the contexts in the user's files.
pub fn contexts() -> Result<Vec<String>> {
    let files = users_files()?.into_iter().filter(|file| file.exists());
    let mut names = Vec::new();
    for file in files {
        names.extend(read(&file)?.contexts.into_iter().map(|context| context.name));
    }
    Ok(names)
}

fn users_files() -> Result<Vec<PathBuf>> {
    match environment::var("KUBECONFIG") {
        Some(list) => Ok(list.split(':').filter(|path| !path.is_empty()).map(PathBuf::from).collect()),
        None => Ok(vec![users()?]),
    }
}

/// The certificate of the authority by which a cluster is known, as base64 of PEM.
pub fn authority(file: &Path) -> Result<Option<String>> {
    let cluster = read(file)?.clusters.into_iter().next().and_then(|named| named.cluster);
    Ok(cluster.and_then(|cluster| cluster.certificate_authority_data))
}

/// Address of the API server that a context leads to; without a context, the current one. None if nobody says.
pub fn server(file: &Path, context: Option<&str>) -> Option<String> {
    let config = read(file).ok()?;
    let wanted = context.or(config.current_context.as_deref())?;
    let context = config.contexts.iter().find(|one| one.name == wanted)?.context.as_ref()?;
    let cluster = config.clusters.iter().find(|one| one.name == context.cluster)?.cluster.as_ref()?;
    cluster.server.as_deref().map(|server| server.trim_end_matches('/').to_owned())
}

/// Removes an environment's own file, and the lock that kubectl and kind put beside it.
pub fn remove(file: &Path) -> Result<()> {
    let mut lock = file.as_os_str().to_owned();
    lock.push(".lock");
    dirs::remove_file(file)?;
    dirs::remove_file(Path::new(&lock))
}

/// Whether the environment's context is in the user's file, with the same address.
pub async fn is_merged(ours: &Path, users: &Path) -> Result<bool> {
    if !users.exists() {
        return Ok(false);
    }
    let ours = read(ours)?;
    let users = read(users)?;
    Ok(ours.clusters.iter().all(|cluster| {
        let server = |named: &kube::config::NamedCluster| named.cluster.as_ref().and_then(|c| c.server.clone());
        users.clusters.iter().any(|theirs| theirs.name == cluster.name && server(theirs) == server(cluster))
    }))
}

/// Adds the environment's cluster, user and context.
pub async fn merge(ours: &Path, users: &Path) -> Result<()> {
    let config = read(ours)?;
    let name = config
        .contexts
        .first()
        .map(|context| context.name.clone())
        .ok_or_else(|| Error::failed("the environment's kubeconfig is empty"))?;
    if let Some(folder) = users.parent() {
        dirs::create_private_dir(folder)?;
    }
    // Keys travel as files that only we can read, never as arguments; in the environment's own folder,
    // so that they go with it even if this process is killed here.
    let beside = ours.parent().ok_or_else(|| Error::failed("the environment's kubeconfig has no folder"))?;
    let folder = tempfile::Builder::new().prefix(".merge-").tempdir_in(beside)?;
    let file = |file: &str, data: Option<&str>| -> Result<PathBuf> {
        let bytes =
            BASE64_STANDARD.decode(data.unwrap_or_default()).context("the environment's kubeconfig is damaged")?;
        let path = folder.path().join(file);
        dirs::write_private(&path, &bytes).map(|()| path)
    };
    let cluster = config.clusters.first().and_then(|named| named.cluster.clone()).unwrap_or_default();
    let user = config.auth_infos.first().and_then(|named| named.auth_info.clone()).unwrap_or_default();
    let authority = file("ca", cluster.certificate_authority_data.as_deref())?;
    let certificate = file("cert", user.client_certificate_data.as_deref())?;
    let key = file("key", user.client_key_data.as_ref().map(|key| key.expose_secret()))?;
    let server = cluster.server.unwrap_or_default();
    let embedded = |flag: &str, path: &Path| format!("--{flag}={}", path.display());

    kubectl(
        users,
        &[
            "set-cluster",
            &name,
            &format!("--server={server}"),
            &format!("--tls-server-name={}", cluster.tls_server_name.unwrap_or_default()),
            "--embed-certs=true",
            &embedded("certificate-authority", &authority),
        ],
    )
    .await?;
    kubectl(
        users,
        &[
            "set-credentials",
            &name,
            "--embed-certs=true",
            &embedded("client-certificate", &certificate),
            &embedded("client-key", &key),
        ],
    )
    .await?;
    kubectl(users, &["set-context", &name, &format!("--cluster={name}"), &format!("--user={name}")]).await
}

/// Takes them out again; fine when they are not there.
pub async fn unmerge(name: &str, users: &Path) -> Result<()> {
    if !users.exists() {
        return Ok(());
    }
    let config = read(users)?;
    if config.current_context.as_deref() == Some(name) {
        kubectl(users, &["unset", "current-context"]).await?;
    }
    if config.contexts.iter().any(|context| context.name == name) {
        kubectl(users, &["delete-context", name]).await?;
    }
    if config.clusters.iter().any(|cluster| cluster.name == name) {
        kubectl(users, &["delete-cluster", name]).await?;
    }
    if config.auth_infos.iter().any(|user| user.name == name) {
        kubectl(users, &["delete-user", name]).await?;
    }
    Ok(())
}

/// Whether the user's file still names the environment's context.
pub fn mentions(name: &str, users: &Path) -> bool {
    users.exists() && read(users).is_ok_and(|config| config.contexts.iter().any(|context| context.name == name))
}

fn read(path: &Path) -> Result<Kubeconfig> {
    Kubeconfig::read_from(path).with_context(|| format!("cannot read the kubeconfig {}", path.display()))
}

async fn kubectl(users: &Path, args: &[&str]) -> Result<()> {
    let run =
        Program::new("kubectl").arg("config").args(args).arg("--kubeconfig").arg(users).limit(Duration::from_secs(20));
    run.run()
        .await
        .map(drop)
        .hint("without kubectl, name both files: export KUBECONFIG=~/.kube/config:$(k8tre dev kubeconfig)")
}
