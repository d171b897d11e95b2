//! Who may do what, asked of the API server itself; and tokens that end.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use kube::config::AuthInfo;
use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Kube, READ_LIMIT, configured};
use crate::error::{Error, Result, ResultExt};

/// Something that somebody may do, or may not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Right {
    pub verb: &'static str,
    pub group: &'static str,
    /// A subresource follows a slash.
    pub resource: &'static str,
    /// The only object meant; none means any.
    pub name: Option<String>,
}

impl Right {
    pub const fn new(verb: &'static str, group: &'static str, resource: &'static str) -> Right {
        Right { verb, group, resource, name: None }
    }

    pub fn named(self, name: &str) -> Right {
        Right { name: Some(name.to_owned()), ..self }
    }
}

/// A token, and when it ends.
pub struct Token {
    pub secret: SecretString,
    pub expires: Timestamp,
}

impl Kube {
    /// The same API server, spoken to with a token alone.
    pub async fn with_token(kubeconfig: &Path, token: SecretString) -> Result<Kube> {
        let mut config = configured(kubeconfig, None).await?;
        config.auth_info = AuthInfo { token: Some(token), ..AuthInfo::default() };
        config.read_timeout = Some(READ_LIMIT);
        config.default_retry = false;
        Kube::new(config)
    }

    /// Whether this user may do something in a namespace; `None` when it is not known as a user at all.
    pub async fn may(&self, namespace: &str, right: &Right) -> Result<Option<bool>> {
        let (resource, subresource) = right.resource.split_once('/').unwrap_or((right.resource, ""));
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "namespace": namespace, "verb": right.verb, "group": right.group, "resource": resource,
                "subresource": subresource, "name": right.name.as_deref().unwrap_or_default(),
            }},
        });
        match self.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).await {
            Ok(answer) => Ok(Some(answer["status"]["allowed"] == true)),
            Err(kube::Error::Api(status)) if status.code == 401 => Ok(None),
            Err(error) => Err(self.explain(error)).context("cannot ask what you may do there"),
        }
    }

    /// A token of a ServiceAccount that ends after that time.
    pub async fn token(&self, namespace: &str, account: &str, ttl: Duration) -> Result<Token> {
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"audiences": [], "expirationSeconds": ttl.as_secs()},
        });
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let what = || format!("cannot get a token for the ServiceAccount {account}");
        let answer = self.post(&path, &request).await.map_err(|e| self.explain(e)).with_context(what)?;
        let text = |key: &str| answer["status"][key].as_str();
        match (text("token"), text("expirationTimestamp").and_then(|at| at.parse().ok())) {
            (Some(token), Some(expires)) => Ok(Token { secret: token.into(), expires }),
            _ => Err(Error::failed("the answer holds none")).with_context(what),
        }
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value, kube::Error> {
        let bytes = serde_json::to_vec(body).map_err(kube::Error::SerdeError)?;
        let request = http::Request::post(path).header(http::header::CONTENT_TYPE, "application/json").body(bytes);
        self.client.request(request.map_err(kube::Error::HttpError)?).await
    }
}
