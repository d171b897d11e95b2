//! What of a vCluster's spec only the user's kubeconfig and the host can tell: settled before anything is recorded.

use serde_json::Value;

use super::host::open;
use crate::error::{Error, Result};
use crate::ports::kube::{Type, name_of};
use crate::ports::kubeconfig;
use crate::spec::{ProviderSpec, Spec, VclusterSpec};

/// A class of this provisioner makes no volumes: somebody does it by hand.
const BY_HAND: &str = "kubernetes.io/no-provisioner";

/// Completes what was given: the file that has the context, and whether the host provides volumes.
pub async fn settle(spec: &mut Spec) -> Result<()> {
    let ProviderSpec::Vcluster(spec) = &mut spec.provider else { return Ok(()) };
    if spec.host_kubeconfig.as_os_str().is_empty() {
        let Some(file) = kubeconfig::with_context(&spec.host_context)? else {
            return Err(kubeconfig::unknown_context(&spec.host_context)?);
        };
        spec.host_kubeconfig = std::path::absolute(file)?;
    }
    if spec.persistent.is_none() {
        let kube = open(spec).await.map_err(|error| error.with_kind(crate::error::Kind::Preflight))?;
        let classes = kube.list(&Type::new("storage.k8s.io/v1", "StorageClass"), "", "").await;
        spec.persistent = Some(provides(spec, classes)?);
    }
    Ok(())
}

/// Whether a claim would get its volume.
fn provides(spec: &VclusterSpec, classes: Result<Vec<Value>>) -> Result<bool> {
    let refused = |why: String| {
        Err(Error::preflight(format!(
            "{why}, and without a volume a vCluster loses all that is in it when its pod restarts"
        ))
        .hint("if that is fine: --vcluster-storage none")
        .hint("if there are volumes for it all the same: --vcluster-storage volume"))
    };
    let host = &spec.host_context;
    let classes = match classes {
        Ok(classes) => classes,
        Err(error) => return refused(format!("whether {host} provides volumes cannot be known ({error})")),
    };
    let is_default =
        |class: &&Value| class["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] == "true";
    match classes.iter().find(is_default) {
        Some(class) if class["provisioner"] != BY_HAND => Ok(true),
        Some(class) => refused(format!(
            "the default StorageClass {} of {host} makes no volumes by itself",
            name_of(class).unwrap_or_default()
        )),
        None => refused(format!("{host} has no default StorageClass")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::providers::vcluster::testing::spec;

    #[test]
    fn a_volume_is_taken_where_the_host_makes_one_and_else_the_user_is_asked() {
        let class = |default: &str, provisioner: &str| {
            json!({"metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": default}},
                "provisioner": provisioner})
        };
        assert!(provides(&spec(), Ok(vec![class("true", "rancher.io/local-path")])).unwrap());
        for (classes, said) in [
            (Ok(vec![class("true", BY_HAND)]), "by itself"),
            (Ok(vec![class("false", "rancher.io/local-path")]), "no default StorageClass"),
            (Ok(Vec::new()), "no default StorageClass"),
            (Err(Error::failed("forbidden")), "forbidden"),
        ] {
            let error = provides(&spec(), classes).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
            assert!(error.hints()[0].contains("--vcluster-storage none"));
        }
    }
}
