//! `git push` into the cluster without a port: git's own protocol over the Kubernetes exec API.
//!
//! git runs `k8tre internal git-transport` in place of ssh (`GIT_SSH_COMMAND`). That process starts
//! `git-receive-pack` or `git-upload-pack` in the git server's pod, on the one repository there, and
//! copies bytes both ways. Which cluster it is comes from variables that only our own git gets.

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, AttachParams, ListParams};
use tokio::io::{AsyncWriteExt, copy};

use crate::argocd::NAMESPACE;
use crate::error::{Error, Result, ResultExt};
use crate::ports::environment;
use crate::ports::kube::Kube;

/// Folder of the repositories in the git server's pod.
pub const ROOT: &str = "/git";
pub const REPOSITORY: &str = "tre.git";
/// What git is given to push to; the host is only a name, nothing resolves it.
pub const URL: &str = "ssh://k8tre/git/tre.git";

const KUBECONFIG: &str = "K8TRE_TRANSPORT_KUBECONFIG";
const CONNECT_LIMIT: Duration = Duration::from_secs(15);
/// A push of a large history is slow; one that has stopped altogether ends here.
const TRANSFER_LIMIT: Duration = Duration::from_secs(600);

pub fn repository_path() -> String {
    format!("{ROOT}/{REPOSITORY}")
}

/// What git is to run in place of ssh.
pub fn ssh_command() -> Result<String> {
    let program = std::env::current_exe().context("cannot find k8tre's own program file")?;
    // One that was replaced while it runs, as an upgrade does, is no longer at its path, but is still here.
    let program = if program.exists() { program } else { PathBuf::from(format!("/proc/{}/exe", std::process::id())) };
    let program = program.to_str().ok_or_else(|| Error::failed("the path of k8tre's program file is not UTF-8"))?;
    // git hands this to a shell.
    Ok(format!("'{}' internal git-transport", program.replace('\'', r"'\''")))
}

/// Which cluster that command is to reach.
pub fn variables(kubeconfig: &Path) -> Result<Vec<(String, String)>> {
    let kubeconfig = kubeconfig.to_str().ok_or_else(|| Error::failed("the path of the kubeconfig is not UTF-8"))?;
    Ok(vec![(KUBECONFIG.into(), kubeconfig.into())])
}

/// Serves one git connection; returns the exit code of the program in the pod.
pub async fn serve(host: &str, command: &str) -> Result<u8> {
    let service = permitted(host, command)?;
    let kubeconfig = environment::var(KUBECONFIG).map(PathBuf::from).ok_or_else(|| {
        Error::usage("this subcommand is for git, which k8tre starts itself").hint("use: k8tre dev sync")
    })?;
    let kube = Kube::open_for_streams(&kubeconfig, None).await?;
    let pods: Api<Pod> = Api::namespaced(kube.client().clone(), NAMESPACE);
    let open = async {
        let name = running_pod(&pods).await?;
        let params = AttachParams { stdin: true, stdout: true, stderr: true, ..AttachParams::default() };
        let path = repository_path();
        Ok::<_, Error>(pods.exec(&name, ["git", service, &path], &params).await?)
    };
    let mut process = tokio::time::timeout(CONNECT_LIMIT, open)
        .await
        .map_err(|_| Error::failed("the cluster did not open a connection to the git server in time"))??;

    let (mut to_pod, mut from_pod, mut errors) = match (process.stdin(), process.stdout(), process.stderr()) {
        (Some(stdin), Some(stdout), Some(stderr)) => (stdin, stdout, stderr),
        _ => return Err(Error::failed("the cluster opened no streams to the git server")),
    };
    let status = process.take_status();
    let upward = tokio::spawn(async move {
        let sent = copy(&mut tokio::io::stdin(), &mut to_pod).await;
        let _ = to_pod.shutdown().await;
        sent
    });
    let downward = async {
        let mut out = tokio::io::stdout();
        let copied = copy(&mut from_pod, &mut out).await;
        out.flush().await?;
        copied
    };
    let complaints = async { copy(&mut errors, &mut tokio::io::stderr()).await };
    let ended = tokio::time::timeout(TRANSFER_LIMIT, async {
        let (down, _) = tokio::join!(downward, complaints);
        down.context("the connection to the git server broke")?;
        Ok::<_, Error>(match status {
            Some(status) => status.await,
            None => None,
        })
    })
    .await
    .map_err(|_| Error::failed("the git server did not end the connection in time"))??;
    // Reading stdin blocks a thread until git closes it; the process ends without waiting for that.
    upward.abort();
    Ok(match ended.and_then(|status| status.status) {
        Some(word) if word == "Success" => 0,
        _ => 1,
    })
}

/// Only git's two services, only on our repository.
fn permitted(host: &str, command: &str) -> Result<&'static str> {
    let wanted = |service: &str| command == format!("git-{service} '{}'", repository_path());
    match (host, ["receive-pack", "upload-pack"].into_iter().find(|service| wanted(service))) {
        ("k8tre", Some(service)) => Ok(service),
        _ => Err(Error::usage("the git transport carries git-receive-pack and git-upload-pack of k8tre's repository, nothing else")),
    }
}

async fn running_pod(pods: &Api<Pod>) -> Result<String> {
    let list = pods.list(&ListParams::default().labels("app.kubernetes.io/name=k8tre-git")).await?;
    let ready = |pod: &Pod| {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        pod.metadata.deletion_timestamp.is_none()
            && conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
    };
    let pod = list.items.into_iter().find(ready);
    pod.and_then(|pod| pod.metadata.name).ok_or_else(|| {
        Error::failed("the git server in the cluster is not running").hint("repair the environment: k8tre dev up")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_git_on_our_repository_is_carried() {
        assert_eq!(permitted("k8tre", "git-receive-pack '/git/tre.git'").unwrap(), "receive-pack");
        assert_eq!(permitted("k8tre", "git-upload-pack '/git/tre.git'").unwrap(), "upload-pack");
        for command in ["git-receive-pack '/git/other.git'", "sh", "git-receive-pack '/git/tre.git'; rm -rf /", "git-shell"] {
            assert!(permitted("k8tre", command).is_err(), "{command}");
        }
        assert!(permitted("elsewhere", "git-receive-pack '/git/tre.git'").is_err());
    }
}
