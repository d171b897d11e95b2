//! Whether Argo CD can reach the environment's cluster, asked from its own network before it is told of the cluster.
//!
//! Argo CD's image has no tool for this but git, which is enough: it opens the connection, checks the certificate, and
//! is then turned away by the API server, which is the answer that is hoped for.

use std::time::Duration;

use serde_json::{Value, json};

use crate::argocd::side::ArgoCd;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::ports::kube::Type;
use crate::shared::{marked, rights};
use crate::spec::SharedArgoCd;
use crate::text::one_line;

const SCRIPT: &str = r#"f=$(mktemp) || exit 1; printf %s "$1" > "$f"
GIT_TERMINAL_PROMPT=0 timeout 12 git -c http.sslCAInfo="$f" ls-remote "$2/version" 2>&1 || echo "exit $?"; rm -f "$f""#;
const EXEC_LIMIT: Duration = Duration::from_secs(20);
const POD_LIMIT: Duration = Duration::from_secs(40);
const POLL: Duration = Duration::from_millis(250);
/// Its image and its place in the network are those by which clusters are reached.
const CONTROLLER: &str = "argocd-application-controller";

/// How the question ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    Reached,
    Unreachable {
        /// Where it was tried from, and what happened.
        from: String,
        what: String,
    },
    /// Nobody may ask from there.
    NotAllowed,
}

/// How this user may ask.
enum Way {
    Exec,
    Pod,
}

async fn way(argocd: &ArgoCd) -> Result<Option<Way>> {
    if rights::missing(argocd, vec![rights::EXEC]).await?.is_empty() {
        return Ok(Some(Way::Exec));
    }
    Ok(rights::missing(argocd, rights::POD.to_vec()).await?.is_empty().then_some(Way::Pod))
}

/// What a user has to know who may not ask.
pub async fn warning(argocd: &ArgoCd, shared: &SharedArgoCd) -> Result<Option<String>> {
    Ok(match way(argocd).await? {
        Some(_) => None,
        None => Some(format!(
            "whether Argo CD can reach {} cannot be asked beforehand: you may run no pod and no command in {}; if it cannot, `k8tre dev status` will say so",
            shared.server,
            shared.place()
        )),
    })
}

/// Asks from Argo CD's network, if this user may; what stands in the way is an error that says what to do.
pub async fn probe(cx: &Context, argocd: &ArgoCd, shared: &SharedArgoCd, authority: &str) -> Result<()> {
    match ask(cx, argocd, shared, authority).await? {
        Probe::Unreachable { from, what } => Err(unreachable(cx, shared, &from, &what)),
        Probe::Reached | Probe::NotAllowed => Ok(()),
    }
}

/// Asks from Argo CD's network, if this user may.
pub async fn ask(cx: &Context, argocd: &ArgoCd, shared: &SharedArgoCd, authority: &str) -> Result<Probe> {
    let Some(way) = way(argocd).await? else { return Ok(Probe::NotAllowed) };
    let of = Type::new("v1", "Pod");
    let pods = argocd.list(&of, &format!("app.kubernetes.io/name={CONTROLLER}")).await?;
    let running = pods.iter().find(|pod| pod["status"]["phase"] == "Running");
    let Some(controller) = running else {
        return Err(Error::failed(format!("no pod of {CONTROLLER} runs in {}", shared.place()))
            .hint(format!("kubectl --context {} -n {} get pods", shared.context, shared.namespace)));
    };
    let containers = controller["spec"]["containers"].as_array().into_iter().flatten();
    let container = containers.clone().find(|one| one["name"] == CONTROLLER).or(containers.clone().next());
    let container = container.unwrap_or(&Value::Null);
    let argv = ["sh", "-c", SCRIPT, "probe", authority, &shared.server];
    let (said, from) = match way {
        Way::Exec => {
            let pod = controller["metadata"]["name"].as_str().unwrap_or_default();
            let within = container["name"].as_str().unwrap_or(CONTROLLER);
            let said = argocd.kube.exec(&argocd.namespace, pod, within, &argv, EXEC_LIMIT).await?;
            (said, format!("the pod {pod}"))
        }
        Way::Pod => {
            (in_own_pod(cx, argocd, &container["image"], &argv).await?, "a pod in Argo CD's namespace".to_owned())
        }
    };
    Ok(match failure(&said) {
        None => Probe::Reached,
        Some(what) => Probe::Unreachable { from, what },
    })
}

/// A pod of Argo CD's own image, which is removed again.
async fn in_own_pod(cx: &Context, argocd: &ArgoCd, image: &Value, argv: &[&str]) -> Result<String> {
    let name = format!("k8tre-probe-{}", cx.id);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "k8tre"}},
        "spec": {
            "restartPolicy": "Never", "activeDeadlineSeconds": 60, "automountServiceAccountToken": false,
            "enableServiceLinks": false, "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "probe", "image": image, "command": argv,
                "securityContext": {
                    "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": true,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
            }],
        },
    });
    let of = Type::new("v1", "Pod");
    let ask = async {
        // What an interrupted run left of it would not start again.
        argocd.delete(&of, &name).await?;
        while argocd.get(&of, &name).await?.is_some() {
            tokio::time::sleep(POLL).await;
        }
        argocd.apply(&marked(cx, pod)).await?;
        loop {
            let seen = argocd.get(&of, &name).await?.unwrap_or(Value::Null);
            if matches!(seen["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
                return argocd.kube.logs(&argocd.namespace, &name, "probe", false, 50).await;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    let said = tokio::time::timeout(POD_LIMIT, ask).await;
    let removed = argocd.delete(&of, &name).await;
    let said = said.unwrap_or_else(|_| {
        Err(Error::failed(format!("the pod {name} did not end within {} s", POD_LIMIT.as_secs())))
    })?;
    removed.map(|()| said)
}

/// What went wrong, in git's words; none if the API server has answered.
fn failure(said: &str) -> Option<String> {
    let answered = ["returned error: 40", "not found", "Authentication failed", "could not read Username"];
    if answered.iter().any(|words| said.contains(words)) {
        return None;
    }
    if said.contains("exit 124") {
        return Some("no answer within 12 s".into());
    }
    let line = said.lines().find(|line| line.starts_with("fatal:")).or_else(|| said.lines().next()).unwrap_or_default();
    let line = line.trim_start_matches("fatal:").trim();
    // git names the address that it was given; that is said already.
    let line =
        line.strip_prefix("unable to access").and_then(|rest| rest.split_once("': ")).map_or(line, |(_, rest)| rest);
    Some(if line.is_empty() { "git said nothing".into() } else { one_line(line, 300) })
}

fn unreachable(cx: &Context, shared: &SharedArgoCd, from: &str, what: &str) -> Error {
    let error = Error::failed(format!(
        "Argo CD in {} cannot reach the cluster of {} at {}: {what} (tried from {from})",
        shared.place(),
        cx.spec.name,
        shared.server
    ));
    let words = what.to_lowercase();
    if words.contains("resolve") {
        error
            .hint("the name means something only in one Docker network: name an address that resolves there: --server URL")
            .hint("docker network inspect kind --format '{{range .Containers}}{{.Name}} {{end}}'")
    } else if words.contains("certificate") || words.contains("ssl") {
        error.hint("the certificate of the API server has to name that host: list it as a certSAN in your --kind-config, then down and up")
    } else {
        error
            .hint("a firewall or a network policy of Argo CD's may be in the way; another address: --server URL")
            .hint(format!("kubectl --context {} -n {} get networkpolicies", shared.context, shared.namespace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn being_turned_away_by_the_api_server_is_an_answer() {
        let at = "fatal: unable to access 'https://k8tre-a-control-plane:6443/version/': ";
        assert_eq!(failure(&format!("{at}The requested URL returned error: 403\nexit 128\n")), None);
        assert_eq!(failure("fatal: repository 'https://a:6443/version/' not found\nexit 128\n"), None);
        assert_eq!(
            failure(&format!("{at}Could not resolve host: nowhere\nexit 128")).as_deref(),
            Some("Could not resolve host: nowhere")
        );
        let verify = format!("{at}server certificate verification failed. CAfile: none CRLfile: none\nexit 128");
        assert!(failure(&verify).unwrap().contains("verification failed"));
        assert_eq!(failure("exit 124\n").as_deref(), Some("no answer within 12 s"));
        assert_eq!(failure("").as_deref(), Some("git said nothing"));
    }
}
