//! Reads from the cluster what an explanation needs: only the namespaces in question, page by page
//! at most once, and never longer than `TOTAL`. What does not answer in time is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::application_set::holds_sets;
use super::deletion::doomed;
use super::evidence::{Evidence, items, name_of};
use super::reported::blamed;
use super::view::{View, in_trouble};
use super::{Cause, explain};
use crate::argocd::side::Sides;
use crate::ports::kube::Type;

const TOTAL: Duration = Duration::from_secs(5);
const CALL: Duration = Duration::from_secs(2);
/// Past so many namespaces, all of them are read at once instead of one after the other.
const NAMESPACES: usize = 4;
/// Objects of a kind that are looked at.
const PAGE: u32 = 500;
/// Containers whose logs, and objects whose states are read one by one.
const SINGLE: usize = 16;
const LINES: i64 = 30;

/// The causes of unhealthy Applications by name, from one look at Argo CD and at the cluster that they are
/// deployed to. One that is not there is given as its `metadata.name` alone.
pub async fn causes(sides: &Sides, applications: &[&Value]) -> BTreeMap<String, Cause> {
    if applications.is_empty() {
        return BTreeMap::new();
    }
    let evidence = gather(sides, applications).await;
    let explained = applications.iter().filter_map(|app| Some((name_of(app).to_owned(), explain(app, &evidence)?)));
    explained.collect()
}

/// Everything that bears on why these Applications are not healthy.
pub async fn gather(sides: &Sides, applications: &[&Value]) -> Evidence {
    let reader = Reader { sides, deadline: Instant::now() + TOTAL };
    let scopes = scopes(applications);
    let mut evidence = reader.first(applications, &scopes).await;
    reader.second(applications, &scopes, &mut evidence).await;
    evidence
}

struct Reader<'a> {
    sides: &'a Sides,
    deadline: Instant,
}

impl Reader<'_> {
    async fn first(&self, applications: &[&Value], scopes: &[String]) -> Evidence {
        let all = |of: Type| async move { self.of_scopes(&of, scopes, "").await };
        let sets = async {
            match applications.iter().any(|app| holds_sets(app)) {
                true => {
                    let of = Type::new("argoproj.io/v1alpha1", "ApplicationSet");
                    let argocd = &self.sides.argocd;
                    self.limited(argocd.kube.page(&of, &argocd.namespace, "", PAGE)).await.unwrap_or_default()
                }
                false => Vec::new(),
            }
        };
        let namespaces = async {
            match scopes.is_empty() {
                true => Vec::new(),
                false => self.page(&Type::new("v1", "Namespace"), "", "").await,
            }
        };
        let warnings = async { self.of_scopes(&Type::new("v1", "Event"), scopes, "type=Warning").await };
        let workloads =
            ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"].map(|kind| all(Type::new("apps/v1", kind)));
        let (pods, events, claims, jobs, workloads, namespaces, application_sets) = tokio::join!(
            all(Type::new("v1", "Pod")),
            warnings,
            all(Type::new("v1", "PersistentVolumeClaim")),
            all(Type::new("batch/v1", "Job")),
            join_all(workloads),
            namespaces,
            sets,
        );
        let workloads = workloads.into_iter().flatten().collect();
        Evidence { pods, events, claims, jobs, workloads, namespaces, application_sets, ..Evidence::default() }
    }

    /// What is worth reading only after a first look.
    async fn second(&self, applications: &[&Value], scopes: &[String], evidence: &mut Evidence) {
        let claims = evidence.claims.iter().any(|claim| claim["status"]["phase"] == "Pending");
        let trouble = || evidence.pods.iter().filter(|pod| in_trouble(pod));
        let unscheduled =
            trouble().any(|pod| items(&pod["status"]["conditions"]).any(|c| c["reason"] == "Unschedulable"));
        let secrets = trouble().any(|pod| pod["status"]["phase"] == "Pending")
            || applications
                .iter()
                .any(|app| items(&app["status"]["resources"]).any(|one| one["kind"] == "ExternalSecret"));
        let if_so =
            |wanted: bool, of: Type| async move { if wanted { self.page(&of, "", "").await } else { Vec::new() } };
        let about_claims = async {
            match claims {
                // Much of what is said about a claim is no warning.
                true => {
                    self.of_scopes(&Type::new("v1", "Event"), scopes, "involvedObject.kind=PersistentVolumeClaim").await
                }
                false => Vec::new(),
            }
        };
        let external = async {
            match secrets {
                true => self.of_scopes(&Type::new("external-secrets.io/v1", "ExternalSecret"), scopes, "").await,
                false => Vec::new(),
            }
        };
        let (classes, events, nodes, external, logs, objects) = tokio::join!(
            if_so(claims, Type::new("storage.k8s.io/v1", "StorageClass")),
            about_claims,
            if_so(unscheduled, Type::new("v1", "Node")),
            external,
            self.logs(applications, evidence),
            self.objects(applications),
        );
        evidence.events.extend(events);
        evidence.storage_classes = classes;
        evidence.nodes = nodes;
        evidence.external_secrets = external;
        evidence.logs = logs;
        evidence.objects = objects;
    }

    async fn of_scopes(&self, of: &Type, scopes: &[String], fields: &str) -> Vec<Value> {
        let pages = join_all(scopes.iter().map(|namespace| self.page(of, namespace, fields))).await;
        pages.into_iter().flatten().collect()
    }

    async fn page(&self, of: &Type, namespace: &str, fields: &str) -> Vec<Value> {
        let Some(kube) = &self.sides.workloads else { return Vec::new() };
        self.limited(kube.page(of, namespace, fields, PAGE)).await.unwrap_or_default()
    }

    async fn limited<T>(&self, call: impl Future<Output = crate::error::Result<T>>) -> Option<T> {
        timeout_at(self.deadline.min(Instant::now() + CALL), call).await.ok()?.ok()
    }

    /// The last words of containers that ended.
    async fn logs(&self, applications: &[&Value], evidence: &Evidence) -> Vec<Value> {
        let views: Vec<View> = applications.iter().map(|app| View::new(app, evidence)).collect();
        let ended = views.iter().flat_map(|view| &view.pods).flat_map(|pod| {
            let containers = pod.containers().filter(|c| c.ended().is_some_and(|ended| ended["exitCode"] != 0));
            containers.map(move |container| {
                let previous = !container.status["state"]["terminated"].is_object();
                (pod.namespace, pod.name, container.name(), previous)
            })
        });
        let reads = ended.take(SINGLE).map(|(namespace, pod, container, previous)| async move {
            let text =
                self.limited(self.sides.workloads.as_ref()?.logs(namespace, pod, container, previous, LINES)).await?;
            Some(json!({"namespace": namespace, "pod": pod, "container": container, "text": text}))
        });
        join_all(reads).await.into_iter().flatten().collect()
    }

    /// Objects that Argo CD blames, or waits for to be gone.
    async fn objects(&self, applications: &[&Value]) -> Vec<Value> {
        let wanted = applications.iter().flat_map(|app| {
            let listed = items(&app["status"]["resources"]).filter(move |one| {
                blamed(app).is_some_and(|(group, kind, namespace, name)| {
                    one["group"].as_str().unwrap_or_default() == group
                        && one["kind"] == kind
                        && one["name"] == name
                        && one["namespace"].as_str().unwrap_or_default() == namespace
                })
            });
            listed.chain(doomed(app)).filter(|one| {
                !LISTED.contains(&one["kind"].as_str().unwrap_or_default()) || one["requiresPruning"] == true
            })
        });
        let reads = wanted.take(SINGLE).map(|one| async move {
            let version = one["version"].as_str()?;
            let api_version = match one["group"].as_str() {
                None | Some("") => version.to_owned(),
                Some(group) => format!("{group}/{version}"),
            };
            let namespace = one["namespace"].as_str().unwrap_or_default();
            let of = Type::scoped(&api_version, one["kind"].as_str()?, !namespace.is_empty());
            self.limited(self.sides.workloads.as_ref()?.get(&of, namespace, one["name"].as_str()?)).await.flatten()
        });
        join_all(reads).await.into_iter().flatten().collect()
    }
}

/// Kinds that are read as lists anyway.
const LISTED: [&str; 7] =
    ["Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "PersistentVolumeClaim"];

/// Namespaces to look into: those of the objects in question, or one `""` for all.
fn scopes(applications: &[&Value]) -> Vec<String> {
    let mut namespaces = BTreeSet::new();
    for app in applications.iter().filter(|app| !is_uncomparable(app)) {
        let status = &app["status"];
        let results = || items(&status["operationState"]["syncResult"]["resources"]);
        let hooks_and_failures = results().filter(|one| one["hookType"].is_string() || one["status"] == "SyncFailed");
        let of = |one: &Value| one["namespace"].as_str().unwrap_or_default().to_owned();
        namespaces.extend(hooks_and_failures.map(of));
        match blamed(app) {
            Some((_, _, namespace, _)) => _ = namespaces.insert(namespace.to_owned()),
            None => namespaces.extend(items(&status["resources"]).chain(results()).map(of)),
        }
    }
    namespaces.remove("");
    match namespaces.len() {
        0..=NAMESPACES => namespaces.into_iter().collect(),
        _ => vec![String::new()],
    }
}

/// Argo CD could not compare it: why is in its conditions, and nowhere in the cluster.
fn is_uncomparable(app: &Value) -> bool {
    items(&app["status"]["conditions"])
        .any(|c| matches!(c["type"].as_str(), Some("ComparisonError" | "InvalidSpecError")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::argocd::side::ArgoCd;
    use crate::ports::kube::Kube;

    /// A server that takes every connection and never answers.
    async fn silent() -> (tokio::net::TcpListener, Sides) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let config = kube::Config::new(address.parse().unwrap());
        let kube = Kube::with_client(kube::Client::try_from(config).unwrap());
        let argocd = ArgoCd { kube: kube.clone(), namespace: "argocd".into() };
        (listener, Sides { argocd, workloads: Some(kube) })
    }

    #[tokio::test]
    async fn a_cluster_that_hangs_costs_no_more_than_the_limit() {
        let (_listener, sides) = silent().await;
        let limit = Duration::from_millis(200);
        let reader = Reader { sides: &sides, deadline: Instant::now() + limit };
        let app = app(&["a", "b"], "");
        let began = Instant::now();
        let mut evidence = reader.first(&[&app], &["a".into(), "b".into()]).await;
        reader.second(&[&app], &["a".into(), "b".into()], &mut evidence).await;
        assert!(evidence.pods.is_empty());
        assert!(began.elapsed() < limit * 5, "took {:?}", began.elapsed());
    }

    fn app(namespaces: &[&str], health: &str) -> Value {
        let resources: Vec<Value> =
            namespaces.iter().map(|n| json!({"kind": "Service", "name": "a", "namespace": n})).collect();
        json!({"status": {"resources": resources, "health": {"message": health}}})
    }

    #[test]
    fn only_the_namespace_of_the_blamed_object_is_read() {
        let one = app(&["a", "b"], "Caused by apps/Deployment:b/web");
        assert_eq!(scopes(&[&one]), ["b"]);
        assert_eq!(scopes(&[&app(&["a", "b"], "")]), ["a", "b"]);
    }

    #[test]
    fn many_namespaces_are_read_at_once_and_uncomparable_applications_not_at_all() {
        assert_eq!(scopes(&[&app(&["a", "b", "c", "d", "e"], "")]), [""]);
        let mut broken = app(&["a"], "");
        broken["status"]["conditions"] = json!([{"type": "ComparisonError"}]);
        assert!(scopes(&[&broken]).is_empty());
    }

    #[test]
    fn namespaces_of_cluster_scoped_objects_do_not_count() {
        assert!(scopes(&[&json!({"status": {"resources": [{"kind": "ClusterRole", "name": "a"}]}})]).is_empty());
    }
}
