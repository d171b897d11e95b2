//! Argo CD in the environment's own cluster, in three steps: what its parts read when they start,
//! the parts that Applications wait for, and the API server with its UI, which none waits for.

use std::time::Duration;

use async_trait::async_trait;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use crate::argocd::NAMESPACE;
use crate::argocd::manifest::Install;
use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::{Error, Result};
use crate::ports::kube::{Kube, Type, condition, name_of, secret_value};
use crate::steps::{ARGOCD, ARGOCD_CONFIG, ARGOCD_UI, CLUSTER, IMAGES, PREREQUISITES, ROOT, objects, rollout};

/// On the namespace: digest of what was applied as a whole.
const APPLIED: &str = "k8tre.dev/argocd";
/// Label of all that is in Argo CD's manifest.
const PARTS: &str = "app.kubernetes.io/part-of=argocd";
const POLL: Duration = Duration::from_millis(150);
/// A cluster that pulls its images itself may take its time.
const ROLLOUT: Duration = Duration::from_secs(600);

pub struct ArgoCdConfig {
    pub after_prerequisites: bool,
}

#[async_trait]
impl Step<Context> for ArgoCdConfig {
    fn id(&self) -> StepId {
        ARGOCD_CONFIG
    }

    fn needs(&self) -> &[StepId] {
        if self.after_prerequisites { &[CLUSTER, PREREQUISITES] } else { &[CLUSTER] }
    }

    fn inside(&self) -> Option<StepId> {
        Some(CLUSTER)
    }

    fn describe(&self) -> String {
        "Argo CD's types, accounts and settings".into()
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        let Some(kube) = cx.kube().await? else { return Ok(Context::needs_cluster()) };
        let Some(namespace) = kube.get(&Type::new("v1", "Namespace"), "", NAMESPACE).await? else {
            return Ok(State::Absent);
        };
        let wanted = &cx.install().await?.digest;
        Ok(match namespace["metadata"]["annotations"][APPLIED].as_str() {
            Some(applied) if applied == wanted => State::Ready,
            Some(_) => State::Drifted("other settings or another version".into()),
            None => State::Drifted("applied only in part".into()),
        })
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        let kube = cx.require_kube().await?;
        let install = cx.install().await?;
        let crds = install.crds()?;
        kube.apply(&namespace(cx, None), "").await?;
        // The types first, and known to the server, before anything of these types can exist.
        // Marked, so that they can be told from others' where the cluster outlives them.
        let mine = |objects: &[Value]| -> Vec<Value> {
            objects.iter().map(|object| objects::owned(object.clone(), &cx.id)).collect()
        };
        objects::apply_all(&kube, &mine(&crds), NAMESPACE).await?;
        let (rest, types) = futures::join!(
            async {
                secrets(&kube).await?;
                objects::apply_all(&kube, &mine(&install.config), NAMESPACE).await
            },
            established(&kube, &crds)
        );
        rest.and(types)?;
        default_project(&kube).await?;
        kube.apply(&namespace(cx, Some(&install.digest)), "").await.map(drop)
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        let Some(kube) = cx.kube().await? else { return Ok(()) };
        if let Some(others) = others(&kube).await? {
            return Err(Error::failed(format!("Argo CD and its types stay while there are: {others}"))
                .hint("kubectl get applications,applicationsets,appprojects -A"));
        }
        let namespace = namespace(cx, None);
        objects::delete_owned(&kube, &namespace, "", &cx.id).await?;
        let kinds = [
            ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
            ("rbac.authorization.k8s.io/v1", "ClusterRole"),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ];
        for (api_version, kind) in kinds {
            let ours = kube.list(&Type::new(api_version, kind), "", PARTS).await?;
            for object in ours.iter().filter(|object| objects::owner(object) == Some(&cx.id)) {
                kube.delete(&Type::new(api_version, kind), "", name_of(object)?).await?;
                objects::await_deletion(&kube, object, "", |text| cx.detail(ARGOCD_CONFIG, text)).await?;
            }
        }
        objects::await_deletion(&kube, &namespace, "", |text| cx.detail(ARGOCD_CONFIG, text)).await
    }
}

/// What needs Argo CD, or only its types, and is not the environment's, which is gone by then.
async fn others(kube: &Kube) -> Result<Option<String>> {
    let mut names = Vec::new();
    for kind in ["Application", "ApplicationSet", "AppProject"] {
        for object in kube.list(&Type::new("argoproj.io/v1alpha1", kind), "", "").await? {
            let name = name_of(&object)?;
            if (kind, name) != ("AppProject", "default") {
                names.push(format!("{kind} {name}"));
            }
        }
    }
    Ok((!names.is_empty()).then(|| crate::text::one_line(&names.join(", "), 300)))
}

fn namespace(cx: &Context, applied: Option<&str>) -> Value {
    let mut namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    if let Some(digest) = applied {
        namespace["metadata"]["annotations"][APPLIED] = json!(digest);
    }
    objects::owned(namespace, &cx.id)
}

/// Secrets that Argo CD would make in an init container (Redis) or before its other parts can use
/// them (the session key). Made once, never changed.
async fn secrets(kube: &Kube) -> Result<()> {
    let of = Type::new("v1", "Secret");
    for (name, key) in [("argocd-redis", "auth"), ("argocd-secret", "server.secretkey")] {
        if kube.get(&of, NAMESPACE, name).await?.is_some() {
            continue;
        }
        let random: [u8; 32] = rand::random();
        // The value itself is text, as Argo CD's own is; the API wants it encoded once more.
        let value = BASE64_STANDARD.encode(BASE64_STANDARD.encode(random));
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": name, "labels": {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "argocd"}},
            "data": {key: value}
        });
        kube.apply(&secret, NAMESPACE).await?;
    }
    Ok(())
}

/// The project that Argo CD's API server would make, which starts last here: without it no
/// Application is valid.
async fn default_project(kube: &Kube) -> Result<()> {
    let project = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "default", "namespace": NAMESPACE},
        "spec": {
            "sourceRepos": ["*"],
            "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]
        }
    });
    kube.apply(&project, NAMESPACE).await.map(drop)
}

async fn established(kube: &Kube, crds: &[Value]) -> Result<()> {
    for crd in crds {
        let (of, name) = (Type::of(crd)?, name_of(crd)?);
        loop {
            let found = kube.get(&of, "", name).await?.unwrap_or_default();
            if condition(&found, "Established").is_some() {
                break;
            }
            tokio::time::sleep(POLL).await;
        }
    }
    Ok(())
}

/// A set of Argo CD's workloads: the controllers, or the API server.
pub struct ArgoCdWorkloads {
    id: StepId,
    needs: Vec<StepId>,
    title: &'static str,
    pick: fn(&Install) -> &[Value],
}

impl ArgoCdWorkloads {
    pub fn controllers() -> Self {
        ArgoCdWorkloads {
            id: ARGOCD,
            needs: vec![ARGOCD_CONFIG, IMAGES],
            title: "Argo CD's controllers and repository server",
            pick: |install| &install.workloads,
        }
    }

    /// Started once the Applications are on their way, so that it does not take the processor from
    /// what they wait for.
    pub fn server() -> Self {
        ArgoCdWorkloads {
            id: ARGOCD_UI,
            needs: vec![ROOT],
            title: "Argo CD's API server and UI",
            pick: |install| &install.server,
        }
    }
}

#[async_trait]
impl Step<Context> for ArgoCdWorkloads {
    fn id(&self) -> StepId {
        self.id
    }

    fn needs(&self) -> &[StepId] {
        &self.needs
    }

    fn inside(&self) -> Option<StepId> {
        Some(CLUSTER)
    }

    fn describe(&self) -> String {
        self.title.into()
    }

    fn limit(&self) -> Duration {
        ROLLOUT + Duration::from_secs(60)
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        let Some(kube) = cx.kube().await? else { return Ok(Context::needs_cluster()) };
        let install = cx.install().await?;
        for workload in (self.pick)(install) {
            let name = name_of(workload)?;
            let Some(actual) = kube.get(&Type::of(workload)?, NAMESPACE, name).await? else {
                return Ok(State::Absent);
            };
            if let Some(path) = objects::difference(&actual["spec"], &essentials(workload)) {
                return Ok(State::Drifted(format!("{name} differs at spec.{path}")));
            }
            if !rollout::is_done(&actual) {
                return Ok(State::Drifted(format!("{name} is not ready")));
            }
        }
        Ok(State::Ready)
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        let kube = cx.require_kube().await?;
        let workloads = (self.pick)(cx.install().await?);
        objects::apply_all(&kube, workloads, NAMESPACE).await?;
        rollout::wait(&kube, workloads, NAMESPACE, ROLLOUT, |text| cx.detail(self.id, text)).await
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        let Some(kube) = cx.kube().await? else { return Ok(()) };
        for workload in (self.pick)(cx.install().await?) {
            kube.delete(&Type::of(workload)?, NAMESPACE, name_of(workload)?).await?;
        }
        Ok(())
    }
}

/// What makes a workload another one: its replicas, images and the settings it was started with.
/// The rest is full of defaults that the API server writes in its own way.
fn essentials(workload: &Value) -> Value {
    let template = &workload["spec"]["template"];
    let images: Vec<Value> = template["spec"]["containers"]
        .as_array()
        .map(|containers| containers.iter().map(|c| json!({"name": c["name"], "image": c["image"]})).collect())
        .unwrap_or_default();
    json!({
        "replicas": workload["spec"]["replicas"],
        "template": {"metadata": {"annotations": template["metadata"]["annotations"]}, "spec": {"containers": images}}
    })
}

/// The first password of Argo CD's `admin`, which Argo CD makes when its API server first starts.
pub async fn admin_password(kube: &Kube) -> Result<String> {
    let secret = kube.get(&Type::new("v1", "Secret"), NAMESPACE, "argocd-initial-admin-secret").await?;
    let password = secret.as_ref().and_then(|secret| secret_value(&secret["data"]["password"]));
    password.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(|| {
        Error::not_found(
            "Argo CD's first password is not there: its API server has not started yet, or the password was changed",
        )
        .hint("kubectl -n argocd get secret argocd-initial-admin-secret")
    })
}
