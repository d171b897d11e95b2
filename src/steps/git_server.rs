//! The git server inside the cluster, from which Argo CD reads the developer's branch.
//!
//! A read-only `git daemon` from the Argo CD image, which is on the node already. Nothing listens
//! for pushes: they arrive through the Kubernetes exec API (`ports::transport`), so that pushing
//! needs the rights of an administrator of the cluster.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::argocd::NAMESPACE;
use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::{Error, Result};
use crate::ports::kube::Type;
use crate::ports::transport;
use crate::steps::{ARGOCD_CONFIG, CLUSTER, GIT_SERVER, IMAGES, objects, rollout};

const NAME: &str = "k8tre-git";
const ROLLOUT: Duration = Duration::from_secs(600);

/// What Argo CD reads.
pub fn url() -> String {
    format!("git://{NAME}.{NAMESPACE}.svc/{}", transport::REPOSITORY)
}

/// Its objects by kind and name alone.
pub fn names() -> [Value; 2] {
    let named =
        |api_version: &str, kind: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": NAME}});
    [named("v1", "Service"), named("apps/v1", "Deployment")]
}

/// Argo CD's own image, which is on the nodes already: that of an Argo CD which was there before, or of k8tre's.
async fn image(cx: &Context) -> Result<String> {
    if cx.spec.installs_argocd() {
        return cx.install().await?.argocd_image();
    }
    let argocd = cx.require_argocd().await?;
    let pods = argocd.list(&Type::new("v1", "Pod"), "app.kubernetes.io/name=argocd-repo-server").await?;
    let containers = pods.first().and_then(|pod| pod["spec"]["containers"].as_array()).into_iter().flatten();
    let named = |container: &&Value| container["name"].as_str().is_some_and(|name| name.ends_with("repo-server"));
    let image = containers.into_iter().find(named).and_then(|container| container["image"].as_str());
    image.map(str::to_owned).ok_or_else(|| {
        Error::failed("the repository server of the Argo CD in the cluster does not run")
            .hint("kubectl -n argocd get pods")
    })
}

/// Where the repository lives.
struct Place {
    nodes: Value,
    user: u32,
    pod: Value,
    volume: Value,
}

impl Place {
    fn of(cx: &Context) -> Place {
        if cx.provider().owns_cluster() {
            // On one node's disk, so that the pod stays on that node, and it outlives the pod. Root owns the folder
            // there; without capabilities it is no more than that.
            let folder = json!({"path": "/var/lib/k8tre/git", "type": "DirectoryOrCreate"});
            return Place {
                nodes: json!({"node-role.kubernetes.io/control-plane": ""}),
                user: 0,
                pod: json!({}),
                volume: json!({"name": "repositories", "hostPath": folder}),
            };
        }
        // Nothing may remain on somebody else's disks. A new pod is empty until the next `up`.
        Place {
            nodes: json!({}),
            user: 999,
            pod: json!({"runAsNonRoot": true, "fsGroup": 999}),
            volume: json!({"name": "repositories", "emptyDir": {}}),
        }
    }
}

pub struct GitServer;

impl GitServer {
    async fn objects(&self, cx: &Context) -> Result<Vec<Value>> {
        let image = image(cx).await?;
        let place = Place::of(cx);
        let labels = json!({"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": "k8tre"});
        let serve = format!(
            "test -d {path} || git init --quiet --bare --initial-branch=main {path}; \
             git --git-dir={path} config receive.shallowUpdate true; \
             exec git daemon --reuseaddr --base-path={root} --export-all {root}",
            path = transport::repository_path(),
            root = transport::ROOT,
        );
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels},
            "spec": {
                "replicas": 1,
                "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": {"app.kubernetes.io/name": NAME}},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "automountServiceAccountToken": false,
                        "enableServiceLinks": false,
                        "terminationGracePeriodSeconds": 1,
                        "nodeSelector": place.nodes,
                        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}],
                        "containers": [{
                            "name": "git",
                            "image": image,
                            "imagePullPolicy": "IfNotPresent",
                            "command": ["sh", "-c", serve],
                            "ports": [{"containerPort": 9418, "name": "git", "protocol": "TCP"}],
                            "readinessProbe": {"tcpSocket": {"port": 9418}, "periodSeconds": 1, "failureThreshold": 30},
                            "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
                            "securityContext": {
                                "runAsUser": place.user, "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                                "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}
                            },
                            "volumeMounts": [{"name": "repositories", "mountPath": transport::ROOT}]
                        }],
                        "securityContext": place.pod,
                        "volumes": [place.volume]
                    }
                }
            }
        });
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels},
            "spec": {"selector": {"app.kubernetes.io/name": NAME}, "ports": [{"name": "git", "port": 9418, "protocol": "TCP"}]}
        });
        Ok([service, deployment].into_iter().map(|object| objects::owned(object, &cx.id)).collect())
    }
}

#[async_trait]
impl Step<Context> for GitServer {
    fn id(&self) -> StepId {
        GIT_SERVER
    }

    fn needs(&self) -> &[StepId] {
        &[ARGOCD_CONFIG, IMAGES]
    }

    fn inside(&self) -> Option<StepId> {
        Some(CLUSTER)
    }

    fn describe(&self) -> String {
        format!("read-only git server {}", url())
    }

    fn limit(&self) -> Duration {
        ROLLOUT + Duration::from_secs(60)
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        let Some(kube) = cx.kube().await? else { return Ok(Context::needs_cluster()) };
        for object in self.objects(cx).await? {
            let state = objects::observe(&kube, &object, NAMESPACE, &cx.id).await?;
            if state != State::Ready {
                return Ok(state);
            }
        }
        let running = kube.get(&Type::new("apps/v1", "Deployment"), NAMESPACE, NAME).await?;
        Ok(match running.is_some_and(|deployment| rollout::is_done(&deployment)) {
            true => State::Ready,
            false => State::Drifted("its pod is not ready".into()),
        })
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        let kube = cx.require_kube().await?;
        let desired = self.objects(cx).await?;
        for object in &desired {
            objects::refuse_foreign(&kube, object, NAMESPACE, &cx.id).await?;
        }
        objects::apply_all(&kube, &desired, NAMESPACE).await?;
        rollout::wait(&kube, &desired[1..], NAMESPACE, ROLLOUT, |text| cx.detail(GIT_SERVER, text)).await
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        let Some(kube) = cx.kube().await? else { return Ok(()) };
        for object in names() {
            objects::delete_owned(&kube, &object, NAMESPACE, &cx.id).await?;
        }
        Ok(())
    }
}
