//! A Kubernetes API server, spoken to with an explicit kubeconfig and context: never with whatever
//! the user's current context happens to be.

mod access;
mod exec;

use std::path::Path;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use futures::io::AsyncBufRead;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, LogParams, Patch, PatchParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;

use crate::error::{Error, Result, ResultExt};
pub use access::{Right, Token};

/// Field manager of everything that k8tre applies, and prefix of its annotations.
pub const MANAGER: &str = "k8tre";
/// Annotation that carries the random id of the environment which owns the object.
pub const OWNER: &str = "k8tre.dev/environment-id";

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const READ_LIMIT: Duration = Duration::from_secs(30);

/// A kind of object: enough to build its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    resource: ApiResource,
    namespaced: bool,
}

impl Type {
    pub fn new(api_version: &str, kind: &str) -> Type {
        Type::scoped(api_version, kind, !CLUSTER_SCOPED.contains(&kind))
    }

    /// Of any kind, by one who knows whether it lives in namespaces.
    pub fn scoped(api_version: &str, kind: &str, namespaced: bool) -> Type {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Type { resource: ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)), namespaced }
    }

    pub fn of(object: &Value) -> Result<Type> {
        match (object["apiVersion"].as_str(), object["kind"].as_str()) {
            (Some(api_version), Some(kind)) => Ok(Type::new(api_version, kind)),
            _ => Err(Error::failed("an object has no apiVersion or kind")),
        }
    }

    pub fn kind(&self) -> &str {
        &self.resource.kind
    }

    pub fn is_namespaced(&self) -> bool {
        self.namespaced
    }
}

/// Kinds without a namespace among those that k8tre handles by name. Anything else that it meets
/// comes from discovery.
const CLUSTER_SCOPED: [&str; 8] = [
    "Namespace",
    "Node",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "StorageClass",
    "PersistentVolume",
    "GatewayClass",
];

/// Which part of a log is wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogOptions {
    pub follow: bool,
    /// The container's run before this one.
    pub previous: bool,
    /// Last lines only.
    pub tail: Option<i64>,
    /// Only what is younger, in seconds.
    pub since: Option<i64>,
    /// Only what comes after this moment.
    pub after: Option<jiff::Timestamp>,
}

#[derive(Clone)]
pub struct Kube {
    client: Client,
    server: String,
}

impl Kube {
    /// A client for one context of a kubeconfig file; without a context, for the file's only one.
    pub async fn open(kubeconfig: &Path, context: Option<&str>) -> Result<Kube> {
        let mut config = configured(kubeconfig, context).await?;
        config.read_timeout = Some(READ_LIMIT);
        config.reset_reader_on_write = true;
        // A retry on our side of every step; the client's own would hide how long a server is away.
        config.default_retry = false;
        Kube::new(config)
    }

    /// The same without limits on reading, for streams that last: exec, logs, port-forward.
    pub async fn open_for_streams(kubeconfig: &Path, context: Option<&str>) -> Result<Kube> {
        Kube::new(configured(kubeconfig, context).await?)
    }

    fn new(config: Config) -> Result<Kube> {
        let server = config.cluster_url.to_string();
        Ok(Kube { client: Client::try_from(config)?, server })
    }

    #[cfg(test)]
    pub fn with_client(client: Client) -> Kube {
        Kube { client, server: "https://test".into() }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn server(&self) -> &str {
        &self.server
    }

    pub fn api(&self, of: &Type, namespace: &str) -> Api<DynamicObject> {
        match of.namespaced {
            true => Api::namespaced_with(self.client.clone(), namespace, &of.resource),
            false => Api::all_with(self.client.clone(), &of.resource),
        }
    }

    /// Whether the server answers as ready, and what it says if not.
    pub async fn ready(&self) -> Result<()> {
        let request = http::Request::get("/readyz").body(Vec::new())?;
        let answer = self.client.request_text(request).await.map_err(|e| self.explain(e))?;
        match answer.trim() {
            "ok" => Ok(()),
            other => Err(Error::failed(format!("the API server {} is not ready: {other}", self.server))),
        }
    }

    /// Server-side apply of one object, whose namespace is the given one unless it names its own.
    pub async fn apply(&self, object: &Value, namespace: &str) -> Result<Value> {
        self.apply_as(&Type::of(object)?, object, namespace).await
    }

    /// The same for an object whose type had to be asked for.
    pub async fn apply_as(&self, of: &Type, object: &Value, namespace: &str) -> Result<Value> {
        let name = name_of(object)?;
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(namespace);
        let params = PatchParams::apply(MANAGER).force();
        let applied = self
            .api(of, namespace)
            .patch(name, &params, &Patch::Apply(object))
            .await
            .map_err(|e| self.explain(e))
            .with_context(|| format!("cannot apply {} {name}", of.kind()))?;
        Ok(serde_json::to_value(applied)?)
    }

    /// The type of an object of any kind, as the server knows it; `None` when it does not.
    pub async fn discover(&self, object: &Value) -> Result<Option<Type>> {
        let of = Type::of(object)?;
        let resource = &of.resource;
        let kind = GroupVersionKind::gvk(&resource.group, &resource.version, &resource.kind);
        match kube::discovery::pinned_kind(&self.client, &kind).await {
            Ok((resource, found)) => {
                Ok(Some(Type { resource, namespaced: found.scope == kube::discovery::Scope::Namespaced }))
            }
            Err(kube::Error::Discovery(_)) => Ok(None),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(e) => Err(self.explain(e)).with_context(|| format!("cannot ask for the kind {}", of.kind())),
        }
    }

    pub async fn get(&self, of: &Type, namespace: &str, name: &str) -> Result<Option<Value>> {
        let found = self.api(of, namespace).get_opt(name).await;
        match found {
            Ok(object) => Ok(object.map(serde_json::to_value).transpose()?),
            // Of a type that the server does not know there is nothing.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(e) => Err(self.explain(e)).with_context(|| format!("cannot read {} {name}", of.kind())),
        }
    }

    /// All objects of a type in a namespace, read page by page. A type that the server does not know
    /// has none.
    pub async fn list(&self, of: &Type, namespace: &str, selector: &str) -> Result<Vec<Value>> {
        let api = match namespace {
            "" => Api::all_with(self.client.clone(), &of.resource),
            _ => self.api(of, namespace),
        };
        let mut params = ListParams::default().labels(selector).limit(500);
        let mut objects = Vec::new();
        loop {
            let page = match api.list(&params).await {
                Ok(page) => page,
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(objects),
                Err(e) => return Err(self.explain(e)).with_context(|| format!("cannot list {}", of.resource.plural)),
            };
            for object in page.items {
                objects.push(typed(of, object)?);
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(objects),
            }
        }
    }

    /// The first objects of a type, at most `limit`, chosen by a field selector. A type that the server
    /// does not know has none.
    pub async fn page(&self, of: &Type, namespace: &str, fields: &str, limit: u32) -> Result<Vec<Value>> {
        let api = match namespace {
            "" => Api::all_with(self.client.clone(), &of.resource),
            _ => self.api(of, namespace),
        };
        match api.list(&ListParams::default().fields(fields).limit(limit)).await {
            Ok(page) => page.items.into_iter().map(|object| typed(of, object)).collect(),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
            Err(e) => Err(self.explain(e)).with_context(|| format!("cannot list {}", of.resource.plural)),
        }
    }

    /// The last lines of a container's log; with `previous`, of its run before this one.
    pub async fn logs(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        previous: bool,
        lines: i64,
    ) -> Result<String> {
        let params = LogParams {
            container: Some(container.to_owned()),
            previous,
            tail_lines: Some(lines),
            limit_bytes: Some(64 * 1024),
            ..LogParams::default()
        };
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        pods.logs(pod, &params)
            .await
            .map_err(|e| self.explain(e))
            .with_context(|| format!("cannot read the log of {pod}"))
    }

    /// A container's log as it comes, each line with its time in front.
    pub async fn log_stream(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        options: LogOptions,
    ) -> Result<impl AsyncBufRead + Unpin + use<>> {
        let params = LogParams {
            container: Some(container.to_owned()),
            follow: options.follow,
            previous: options.previous,
            timestamps: true,
            tail_lines: options.tail,
            since_seconds: options.since,
            since_time: options.after,
            ..LogParams::default()
        };
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let stream = pods.log_stream(pod, &params).await.map_err(|e| self.explain(e));
        Ok(Box::pin(stream.with_context(|| format!("cannot read the log of {pod}"))?))
    }

    pub async fn merge(&self, of: &Type, namespace: &str, name: &str, patch: &Value) -> Result<()> {
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let patched = self.api(of, namespace).patch(name, &params, &Patch::Merge(patch)).await;
        patched.map(drop).map_err(|e| self.explain(e)).with_context(|| format!("cannot change {} {name}", of.kind()))
    }

    /// Deletes one object; fine when it is not there.
    pub async fn delete(&self, of: &Type, namespace: &str, name: &str) -> Result<()> {
        match self.api(of, namespace).delete(name, &DeleteParams::background()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(e) => Err(self.explain(e)).with_context(|| format!("cannot delete {} {name}", of.kind())),
        }
    }

    /// The client's error with the server's address where it could not be reached at all.
    fn explain(&self, error: kube::Error) -> Error {
        match error {
            kube::Error::Api(status) => Error::failed(status.message.clone()),
            other => Error::from(other).context(format!("the API server {} does not answer", self.server)),
        }
    }
}

/// An object of a list, which does not say its type itself.
fn typed(of: &Type, mut object: DynamicObject) -> Result<Value> {
    // Who wrote which field: a third of the object, and nobody here asks.
    object.metadata.managed_fields = None;
    object.types.get_or_insert_with(|| kube::api::TypeMeta {
        api_version: of.resource.api_version.clone(),
        kind: of.resource.kind.clone(),
    });
    Ok(serde_json::to_value(object)?)
}

/// What every client of ours has: a bound on connecting, and no proxy to this very machine.
async fn configured(kubeconfig: &Path, context: Option<&str>) -> Result<Config> {
    let shown = kubeconfig.display();
    let file = Kubeconfig::read_from(kubeconfig).with_context(|| format!("cannot read the kubeconfig {shown}"))?;
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..Default::default() };
    let mut config = Config::from_custom_kubeconfig(file, &options)
        .await
        .with_context(|| format!("cannot use the kubeconfig {shown}"))?;
    config.connect_timeout = Some(CONNECT_LIMIT);
    if config.cluster_url.host().is_some_and(is_loopback) {
        config.proxy_url = None;
    }
    Ok(config)
}

/// A condition of that type which is true.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().find(|condition| condition["type"] == kind && condition["status"] == "True")
}

/// A value of a Secret, decoded; none if it is no value of a Secret.
pub fn secret_value(value: &Value) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(value.as_str()?).ok()
}

/// A key of a Secret as text; none where it has no such key, or no text in it.
pub fn secret_text(secret: &Value, key: &str) -> Option<String> {
    String::from_utf8(secret_value(&secret["data"][key])?).ok()
}

pub fn name_of(object: &Value) -> Result<&str> {
    object["metadata"]["name"].as_str().ok_or_else(|| Error::failed("an object has no name"))
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
