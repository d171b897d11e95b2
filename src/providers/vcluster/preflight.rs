//! What would make a vCluster fail later and can be known of its host now.

use futures::{StreamExt, TryStreamExt, stream};

use super::host::{Host, pod_type};
use super::{helm, values};
use crate::capacity::{Amount, left, requested_by};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::ports::kube::{Right, Type};
use crate::preflight::Finding;
use crate::spec::{Expose, VclusterSpec};

const AT_ONCE: usize = 8;
/// What its name server asks for, with the pods of both; and each pod of Argo CD by the namespace's LimitRange.
const NAME_SERVER: Amount = Amount { millicores: 20, memory: 64 << 20, pods: 2 };
const ARGOCD: Amount = Amount { millicores: 120, memory: 384 << 20, pods: 6 };

pub async fn findings(cx: &Context, host: &Host<'_>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    if let Err(error) = helm::program() {
        let fix = error.hints().first().cloned().unwrap_or_default();
        findings.push(Finding::blocker("helm-missing", error.to_string()).fix(fix));
    }
    findings.extend(rights(host).await?);
    let own = values::users(host.spec)?.map(|(_, values)| values).unwrap_or_default();
    let mut needed = values::requests(&own);
    needed += NAME_SERVER;
    if cx.spec.argocd.shared().is_none() {
        needed += ARGOCD;
    }
    findings.extend(room(host, needed).await);
    Ok(findings)
}

/// All that is done in the namespace, and the namespace itself.
fn needed(spec: &VclusterSpec) -> Vec<(String, Right)> {
    let mut rights: Vec<(String, Right)> =
        ["get", "create", "patch", "delete"].map(|verb| (String::new(), Right::new(verb, "", "namespaces"))).to_vec();
    let mut all = |group: &'static str, resources: &[&'static str]| {
        for resource in resources {
            for verb in ["get", "list", "create", "patch", "delete"] {
                rights.push((spec.namespace.clone(), Right::new(verb, group, resource)));
            }
        }
    };
    all("", &["pods", "services", "secrets", "configmaps", "serviceaccounts", "resourcequotas", "limitranges"]);
    all("apps", &["statefulsets", "deployments"]);
    all("rbac.authorization.k8s.io", &["roles", "rolebindings"]);
    if spec.network_policy {
        all("networking.k8s.io", &["networkpolicies"]);
    }
    if spec.persistent == Some(true) {
        all("", &["persistentvolumeclaims"]);
    }
    if spec.expose == Expose::NodePort && spec.node_address.is_none() {
        rights.push((String::new(), Right::new("list", "", "nodes")));
    }
    rights
}

async fn rights(host: &Host<'_>) -> Result<Option<Finding>> {
    let asked = needed(host.spec).into_iter().map(|(namespace, right)| async move {
        match host.kube.may(&namespace, &right).await? {
            Some(allowed) => Ok((right, allowed)),
            None => Err(Error::preflight("the API server of the host does not know you")
                .hint("log in again, as you do before you use kubectl there")),
        }
    });
    let answers: Vec<(Right, bool)> = stream::iter(asked).buffered(AT_ONCE).try_collect().await?;
    let missing: Vec<String> = answers
        .into_iter()
        .filter(|(_, allowed)| !allowed)
        .map(|(right, _)| format!("{} {}", right.verb, right.resource))
        .collect();
    if missing.is_empty() {
        return Ok(None);
    }
    let what = format!(
        "you may not do all that a vCluster needs in the namespace {} of {}: {}",
        host.names.namespace,
        host.spec.host_context,
        missing.join(", ")
    );
    let fix = if missing == ["list nodes"] {
        "name a node as it is reached from here: --vcluster-node-address HOST".to_owned()
    } else {
        format!("ask an administrator of {} for these rights", host.spec.host_context)
    };
    Ok(Some(Finding::blocker("host-rights", what).fix(fix)))
}

/// Whether the host can carry one more.
async fn room(host: &Host<'_>, needed: Amount) -> Vec<Finding> {
    let nodes = host.kube.list(&Type::new("v1", "Node"), "", "").await;
    let pods = host.kube.list(&pod_type(), "", "").await;
    let (Ok(nodes), Ok(pods)) = (nodes, pods) else {
        let what =
            format!("what {} has left cannot be known: you may not list its nodes and pods", host.spec.host_context);
        return vec![Finding::info("host-room-unknown", what)];
    };
    let left = left(&nodes, &pods);
    let Some(missing) = left.lacking(needed) else { return Vec::new() };
    let what = format!(
        "{} cannot carry another vCluster: {missing} more are needed (left: {left}; all of it asks for {})",
        host.spec.host_context,
        requested_by(&pods)
    );
    vec![
        Finding::blocker("host-full", what)
            .why(format!("an empty vCluster asks for {needed}"))
            .fix("remove or pause one: k8tre dev list, k8tre dev pause NAME"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::vcluster::testing::spec;

    #[test]
    fn rights_follow_what_is_asked_for() {
        let has =
            |spec: &VclusterSpec, resource: &str| needed(spec).iter().any(|(_, right)| right.resource == resource);
        assert!(has(&spec(), "nodes") && !has(&spec(), "networkpolicies"));
        let other =
            VclusterSpec { node_address: Some("gw".into()), network_policy: true, persistent: Some(true), ..spec() };
        assert!(!has(&other, "nodes") && has(&other, "networkpolicies") && has(&other, "persistentvolumeclaims"));
    }
}
