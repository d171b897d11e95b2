//! Every environment that has something on a shared Argo CD, whoever's it is: read from there alone.

use std::collections::BTreeMap;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use jiff::Timestamp;
use serde_json::Value;

use crate::argocd::side::ArgoCd;
use crate::error::Result;
use crate::expiry;
use crate::gitops::world::IN_CLUSTER;
use crate::names::EnvName;
use crate::ports::kube::{Right, secret_text};
use crate::shared::check::{CLUSTERS, project_type, secret_type};
use crate::shared::{DEVELOPER, rights};
use crate::steps::look::application_type;
use crate::steps::objects;
use crate::steps::registration_shared::EXPIRES as TOKEN_EXPIRES;

/// What one environment has there.
#[derive(Debug, Clone, PartialEq)]
pub struct Registered {
    pub name: EnvName,
    pub id: String,
    /// When the oldest of its objects was made.
    pub created: Option<Timestamp>,
    pub expires: Option<Timestamp>,
    pub token_expires: Option<Timestamp>,
    /// Address of its cluster, as the cluster Secret says, or else its AppProject.
    pub server: Option<String>,
    /// Authority of its cluster; none without its cluster Secret.
    pub authority: Option<String>,
    /// Where Argo CD reads its branch.
    pub repository: Option<String>,
    pub applications: usize,
    pub healthy: usize,
}

/// All of them. Who may not list Secrets sees those whose Secrets they may read by name.
pub async fn all(argocd: &ArgoCd) -> Result<Vec<Registered>> {
    let applications = argocd.list(&application_type(), "").await?;
    let listed = rights::missing(argocd, vec![Right::new("list", "", "secrets")]).await?.is_empty();
    if listed {
        let secrets = argocd.list(&secret_type(), CLUSTERS).await?;
        let projects = argocd.list(&project_type(), "").await?;
        return Ok(found(&applications, &secrets, &projects));
    }
    let (mut secrets, mut projects) = (Vec::new(), Vec::new());
    for (name, _) in applications.iter().filter_map(whose) {
        secrets.extend(argocd.get(&secret_type(), &rights::secret_name(&name)).await.unwrap_or_default());
        projects.extend(argocd.get(&project_type(), &name.project()).await.unwrap_or_default());
    }
    let mut seen = found(&applications, &secrets, &projects);
    // Nothing can be said of one whose Secret is not to be seen.
    seen.retain(|one| one.authority.is_some());
    Ok(seen)
}

/// The environment that an object belongs to, by its marks.
fn whose(object: &Value) -> Option<(EnvName, String)> {
    let name = object["metadata"]["labels"][DEVELOPER].as_str()?.parse().ok()?;
    Some((name, objects::owner(object)?.to_owned()))
}

fn found(applications: &[Value], secrets: &[Value], projects: &[Value]) -> Vec<Registered> {
    let mut all: BTreeMap<(EnvName, String), Registered> = BTreeMap::new();
    for object in secrets.iter().chain(projects).chain(applications) {
        let Some((name, id)) = whose(object) else { continue };
        let at = all.entry((name.clone(), id.clone())).or_insert_with(|| empty(name.clone(), id));
        let created = object["metadata"]["creationTimestamp"].as_str().and_then(|at| at.parse().ok());
        at.created = [at.created, created].into_iter().flatten().min();
        if object["metadata"]["name"] == *rights::secret_name(&name) {
            let (server, authority) = cluster(object);
            (at.server, at.authority) = (server.or(at.server.take()), Some(authority));
            at.expires = expiry::of(object);
            at.token_expires = object["metadata"]["annotations"][TOKEN_EXPIRES].as_str().and_then(|at| at.parse().ok());
        }
        if object["metadata"]["name"] == *name.project() {
            at.repository = object["spec"]["sourceRepos"][0].as_str().map(str::to_owned);
            let server = object["spec"]["destinations"][0]["server"].as_str().map(str::to_owned);
            at.server = at.server.take().or(server);
        }
    }
    // The environment that an Argo CD itself belongs to is co-located, and no guest.
    all.retain(|_, one| one.server.as_deref() != Some(IN_CLUSTER));
    let mut all: Vec<Registered> = all.into_values().collect();
    for one in &mut all {
        let project = one.name.project();
        let of: Vec<&Value> = applications.iter().filter(|app| app["spec"]["project"] == *project).collect();
        one.applications = of.len();
        one.healthy = of.iter().filter(|app| app["status"]["health"]["status"] == "Healthy").count();
    }
    all
}

fn empty(name: EnvName, id: String) -> Registered {
    Registered {
        name,
        id,
        created: None,
        expires: None,
        token_expires: None,
        server: None,
        authority: None,
        repository: None,
        applications: 0,
        healthy: 0,
    }
}

/// Address and authority in a cluster Secret.
fn cluster(secret: &Value) -> (Option<String>, String) {
    let config: Value =
        secret_text(secret, "config").and_then(|text| serde_json::from_str(&text).ok()).unwrap_or(Value::Null);
    let pem = config["tlsClientConfig"]["caData"].as_str().and_then(|data| BASE64_STANDARD.decode(data).ok());
    (secret_text(secret, "server"), String::from_utf8_lossy(&pem.unwrap_or_default()).into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, developer: &str, id: Option<&str>) -> Value {
        json!({"metadata": {
            "name": name, "labels": {"developer": developer}, "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {"k8tre.dev/environment-id": id, "k8tre.dev/expires": "2026-01-02T00:00:00Z"},
        }})
    }

    fn secret(developer: &str, id: Option<&str>, server: &str) -> Value {
        let mut secret = object(&format!("k8tre-cluster-{developer}"), developer, id);
        secret["data"] = json!({"server": BASE64_STANDARD.encode(server)});
        secret
    }

    #[test]
    fn environments_are_known_by_their_marks_and_the_argo_cds_own_is_none() {
        let app = |health: &str| json!({"metadata": {"name": "a"}, "spec": {"project": "dev-alice"}, "status": {"health": {"status": health}}});
        let secrets = [
            secret("alice", Some("1"), "https://alice:6443"),
            secret("hub", Some("2"), IN_CLUSTER),
            secret("by-hand", None, "https://other:6443"),
        ];
        let mut projects = [object("dev-alice", "alice", Some("1")), object("dev-bob", "bob", Some("3"))];
        projects[1]["spec"] = json!({"destinations": [{"server": "https://bob:6443"}]});
        let all = found(&[app("Healthy"), app("Degraded")], &secrets, &projects);
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["alice", "bob"]);
        assert_eq!((all[0].applications, all[0].healthy), (2, 1));
        assert_eq!(all[0].expires.unwrap().to_string(), "2026-01-02T00:00:00Z");
        assert_eq!(all[0].server.as_deref(), Some("https://alice:6443"));
        assert!(all[1].authority.is_none() && all[1].expires.is_none(), "a project without its Secret");
        assert_eq!(all[1].server.as_deref(), Some("https://bob:6443"));
    }
}
