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
use crate::error::Result;
use crate::ports::kube::Type;
use crate::ports::transport;
use crate::steps::{ARGOCD_CONFIG, CLUSTER, GIT_SERVER, IMAGES, objects, rollout};

const NAME: &str = "k8tre-git";
const ROLLOUT: Duration = Duration::from_secs(600);

/// What Argo CD reads.
pub fn url() -> String {
    format!("git://{NAME}.{NAMESPACE}.svc/{}", transport::REPOSITORY)
}

pub struct GitServer;

impl GitServer {
    async fn objects(&self, cx: &Context) -> Result<Vec<Value>> {
        let image = cx.install().await?.argocd_image()?;
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
                        // The repository lives on one node's disk, so the pod stays on that node.
                        "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
                        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}],
                        "containers": [{
                            "name": "git",
                            "image": image,
                            "imagePullPolicy": "IfNotPresent",
                            "command": ["sh", "-c", serve],
                            "ports": [{"containerPort": 9418, "name": "git", "protocol": "TCP"}],
                            "readinessProbe": {"tcpSocket": {"port": 9418}, "periodSeconds": 1, "failureThreshold": 30},
                            "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
                            // Root owns the folder on the node; without capabilities it is no more than that.
                            "securityContext": {
                                "runAsUser": 0, "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                                "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}
                            },
                            "volumeMounts": [{"name": "repositories", "mountPath": transport::ROOT}]
                        }],
                        "volumes": [{"name": "repositories", "hostPath": {"path": "/var/lib/k8tre/git", "type": "DirectoryOrCreate"}}]
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
        objects::apply_all(&kube, &desired, NAMESPACE).await?;
        rollout::wait(&kube, &desired[1..], NAMESPACE, ROLLOUT, |text| cx.detail(GIT_SERVER, text)).await
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        let Some(kube) = cx.kube().await? else { return Ok(()) };
        for object in self.objects(cx).await? {
            objects::delete_owned(&kube, &object, NAMESPACE, &cx.id).await?;
        }
        Ok(())
    }
}
