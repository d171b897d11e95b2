//! The cluster Secret by which a shared Argo CD reaches this environment's cluster: its address, its authority, and a
//! token that ends. The token is nowhere else.

use std::time::Duration;

use async_trait::async_trait;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::{Error, Result};
use crate::expiry;
use crate::ports::kube::{Kube, Right, Token, secret_text};
use crate::ports::kubeconfig;
use crate::shared::check::secret_type;
use crate::shared::probe;
use crate::shared::remains::{Remains, called};
use crate::shared::{answering, marked, rights, role};
use crate::spec::SharedArgoCd;
use crate::steps::{BRANCH, IDENTITY, REGISTRATION, objects};

/// From when to when the token is valid that is in the Secret.
const ISSUED: &str = "k8tre.dev/token-issued";
pub const EXPIRES: &str = "k8tre.dev/token-expires";

/// Argo CD has noticed by then that the Secret is another one.
const NOTICED: SignedDuration = SignedDuration::from_secs(2);

pub struct SharedRegistration {
    pub shared: SharedArgoCd,
}

/// What the Secret says of the cluster.
#[derive(Debug, Default)]
struct Registered {
    authority: Option<String>,
    token: Option<SecretString>,
    issued: Option<Timestamp>,
    expires: Option<Timestamp>,
}

impl Registered {
    fn of(secret: &Value) -> Registered {
        let config = secret_text(secret, "config").and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let config = config.unwrap_or(Value::Null);
        let time = |key: &str| secret["metadata"]["annotations"][key].as_str()?.parse().ok();
        Registered {
            authority: config["tlsClientConfig"]["caData"].as_str().map(str::to_owned),
            token: config["bearerToken"].as_str().map(SecretString::from),
            issued: time(ISSUED),
            expires: time(EXPIRES),
        }
    }
}

impl SharedRegistration {
    /// The Secret without what is secret in it.
    async fn open_part(&self, cx: &Context) -> Result<Value> {
        let mut labels = json!(cx.overlay().await?.labels);
        labels["argocd.argoproj.io/secret-type"] = json!("cluster");
        let encoded = |text: &str| BASE64_STANDARD.encode(text);
        // With namespaces, Argo CD looks at nothing else, for which it has no rights either. Without, the fields are empty,
        // and not absent: they may have had values before.
        let names: Vec<&str> = self.shared.namespaces.iter().map(String::as_str).collect();
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": rights::secret_name(&cx.spec.name), "labels": labels},
            "data": {
                "name": encoded(&cx.cluster_name()), "server": encoded(&self.shared.server),
                "namespaces": encoded(&names.join(",")),
                "clusterResources": if names.is_empty() { String::new() } else { encoded("false") },
            },
        });
        Ok(expiry::stamped(marked(cx, secret), cx.spec.expires))
    }

    /// Why the token in the Secret does not do; none if it does.
    async fn fault(&self, cx: &Context, registered: &Registered) -> Result<Option<String>> {
        let Some(token) = &registered.token else { return Ok(Some("it holds no token".into())) };
        let Some(expires) = registered.expires else { return Ok(Some("it does not say when its token ends".into())) };
        let left = expires.duration_since(Timestamp::now());
        if left.as_secs() <= 0 {
            return Ok(Some(format!("its token ended at {expires}")));
        }
        // The API server may have given less than was asked for.
        let half = registered.issued.map(|issued| expires.duration_since(issued) / 2);
        if cx.options.renew && half.is_none_or(|half| left < half) {
            return Ok(Some(format!("its token ends at {expires}")));
        }
        // A cluster that does not answer says nothing of the token.
        Ok(try_token(cx, token.clone()).await.unwrap_or_default())
    }
}

/// What a token may do in the cluster that does not agree with what the Secret says; none if all is well.
async fn try_token(cx: &Context, token: SecretString) -> Result<Option<String>> {
    const LIST: Right = Right::new("list", "", "pods");
    const MAKE: Right = Right::new("create", "apps", "deployments");
    let kube = Kube::with_token(&cx.kubeconfig(), token).await?;
    let namespaces = cx.spec.argocd.namespaces();
    let Some(everywhere) = kube.may("", &LIST).await? else {
        return Ok(Some("the cluster does not take its token".into()));
    };
    if namespaces.is_empty() {
        return Ok((!everywhere).then(|| "its token may not list all pods".into()));
    }
    if everywhere || kube.may("", &Right::new("create", "", "namespaces")).await? == Some(true) {
        return Ok(Some("its token may do more than in its namespaces".into()));
    }
    for namespace in namespaces {
        for right in [LIST, MAKE] {
            if kube.may(namespace, &right).await? != Some(true) {
                return Ok(Some(format!("its token may not {} {} in {namespace}", right.verb, right.resource)));
            }
        }
    }
    Ok(None)
}

#[async_trait]
impl Step<Context> for SharedRegistration {
    fn id(&self) -> StepId {
        REGISTRATION
    }

    fn needs(&self) -> &[StepId] {
        // The labels follow from the repository, which the branch's step has seen.
        &[IDENTITY, BRANCH]
    }

    fn describe(&self) -> String {
        format!("cluster Secret in {}, with a token that ends", self.shared.place())
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        let argocd = cx.require_argocd().await?;
        let wanted = self.open_part(cx).await?;
        match objects::observe(&argocd.kube, &wanted, &argocd.namespace, &cx.id).await? {
            State::Ready => {}
            other => return Ok(other),
        }
        let name = rights::secret_name(&cx.spec.name);
        let Some(secret) = argocd.get(&secret_type(), &name).await? else { return Ok(State::Absent) };
        let registered = Registered::of(&secret);
        let kubeconfig = cx.kubeconfig();
        if kubeconfig.exists() && kubeconfig::authority(&kubeconfig)? != registered.authority {
            return Ok(State::Drifted(format!("Secret {name} holds the certificate of another cluster")));
        }
        Ok(match self.fault(cx, &registered).await? {
            None => State::Ready,
            Some(fault) => State::Drifted(format!("Secret {name}: {fault}")),
        })
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        let (argocd, kube) = (answering(cx).await?, cx.require_kube().await?);
        let mut secret = self.open_part(cx).await?;
        objects::refuse_foreign(&argocd.kube, &secret, &argocd.namespace, &cx.id).await?;
        cx.detail(REGISTRATION, "getting a token for Argo CD, and trying it");
        let ttl = Duration::from_secs(self.shared.token_ttl);
        let issued = Timestamp::now();
        let Token { secret: token, expires } = kube.token(role::NAMESPACE, role::ACCOUNT, ttl).await?;
        if let Some(fault) = try_token(cx, token.clone()).await? {
            return Err(Error::failed(format!("the token of {} is of no use: {fault}", role::ACCOUNT)));
        }
        let authority = kubeconfig::authority(&cx.kubeconfig())?;
        let there = argocd.get(&secret_type(), &rights::secret_name(&cx.spec.name)).await?;
        let same = there.as_ref().is_some_and(|there| {
            Registered::of(there).authority == authority
                && secret_text(there, "server").as_deref() == Some(&self.shared.server)
        });
        if !same {
            cx.detail(REGISTRATION, &format!("asking from Argo CD's network whether {} answers", self.shared.server));
            let pem = BASE64_STANDARD.decode(authority.as_deref().unwrap_or_default()).unwrap_or_default();
            probe::probe(cx, &argocd, &self.shared, &String::from_utf8_lossy(&pem)).await?;
        }
        let config = json!({
            "bearerToken": token.expose_secret(),
            "tlsClientConfig": {"insecure": false, "caData": authority},
        });
        // Address, authority and token in one write: Argo CD never has half of it.
        secret["data"]["config"] = json!(BASE64_STANDARD.encode(config.to_string()));
        secret["metadata"]["annotations"][ISSUED] = json!(issued.to_string());
        secret["metadata"]["annotations"][EXPIRES] = json!(expires.to_string());
        argocd.apply(&secret).await?;
        cx.note(|facts| {
            facts.token_expires = Some(expires);
            if there.is_some() && !same {
                facts.registered_at = Some(Timestamp::now() + NOTICED);
            }
        })
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        let argocd = answering(cx).await.map_err(|error| error.context("the cluster Secret stays"))?;
        let remains = Remains::read(cx, &argocd).await?;
        if remains.has_applications() {
            return Err(Error::failed(format!("the cluster Secret stays while there are: {}", remains.shown())));
        }
        match remains.secret {
            Some(secret) => argocd.delete(&secret_type(), called(&secret)).await,
            None => Ok(()),
        }
    }
}
