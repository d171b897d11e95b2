//! What the chart is told. Pure, but for the user's own file.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Names;
use crate::capacity::{Amount, amount};
use crate::error::{Result, ResultExt};
use crate::spec::{Expose, VclusterSpec};

/// Of every vCluster that k8tre makes.
pub const COMMON: &str = include_str!("../../../vcluster-configs/values.yaml");

/// What the environment settles; the user's own values come over these.
pub fn settled(spec: &VclusterSpec) -> Value {
    let kind = match spec.expose {
        Expose::NodePort => "NodePort",
        Expose::LoadBalancer => "LoadBalancer",
    };
    json!({
        "controlPlane": {
            "distro": {"k8s": {"version": spec.kubernetes}},
            "service": {"spec": {"type": kind}},
            "statefulSet": {"persistence": {"volumeClaim": {"enabled": spec.persistent == Some(true)}}},
        },
        "policies": {"networkPolicy": {"enabled": spec.network_policy}},
        // An init container of StatefulSets' pods. The chart would take another image for it, from another registry.
        "sync": {"toHost": {"pods": {"rewriteHosts": {"initContainer": {"image": {
            "registry": "ghcr.io", "repository": "loft-sh/vcluster-oss", "tag": spec.version,
        }}}}}},
    })
}

/// Names that the certificate has to be for: those of its Service, those that the user's values list, and those by which a
/// node or an Argo CD elsewhere is told to reach it.
pub fn certificate<'a>(names: &Names, users: &'a Value, others: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let listed = users.pointer("/controlPlane/proxy/extraSANs").and_then(Value::as_array).into_iter().flatten();
    let listed = listed.filter_map(Value::as_str).chain(others).map(str::to_owned);
    names.certificate().into_iter().chain(listed).collect()
}

/// What the control plane asks for by these values.
pub fn requests(users: &Value) -> Amount {
    let common: Value = serde_saphyr::from_str(COMMON).unwrap_or_default();
    let at = "/controlPlane/statefulSet/resources/requests";
    let of = |values: &Value| values.pointer(at).cloned().unwrap_or_default();
    amount(&merged(of(&common), of(users)))
}

fn merged(mut below: Value, above: Value) -> Value {
    for (key, value) in above.as_object().into_iter().flatten() {
        below[key.as_str()] = value.clone();
    }
    below
}

/// The user's own values.
pub fn users(spec: &VclusterSpec) -> Result<Option<(String, Value)>> {
    let Some(path) = &spec.values else { return Ok(None) };
    let shown = path.display();
    let content = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the values {shown}"))
        .hint("--vcluster-values FILE")?;
    let values = serde_saphyr::from_str(&content).with_context(|| format!("cannot use the values {shown}"))?;
    Ok(Some((content, values)))
}

/// What k8tre could not work without, over everything else.
pub fn demanded(names: &Names, certificate: &BTreeSet<String>) -> Value {
    json!({
        "controlPlane": {"proxy": {"extraSANs": certificate}},
        "exportKubeConfig": {"context": names.release, "server": ""},
        // It would send what is typed and where; nobody was asked.
        "telemetry": {"enabled": false},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::vcluster::testing::spec;

    #[test]
    fn the_common_values_are_yaml_and_name_the_open_source_image() {
        let values: Value = serde_saphyr::from_str(COMMON).unwrap();
        assert_eq!(values.pointer("/controlPlane/statefulSet/image/repository").unwrap(), "loft-sh/vcluster-oss");
    }

    #[test]
    fn storage_and_service_follow_the_spec_and_telemetry_is_off_whatever_it_says() {
        let on = VclusterSpec { persistent: Some(true), expose: Expose::LoadBalancer, network_policy: true, ..spec() };
        let values = settled(&on);
        assert_eq!(values.pointer("/controlPlane/statefulSet/persistence/volumeClaim/enabled").unwrap(), true);
        assert_eq!(values.pointer("/controlPlane/service/spec/type").unwrap(), "LoadBalancer");
        assert_eq!(values.pointer("/policies/networkPolicy/enabled").unwrap(), true);
        assert_eq!(settled(&spec()).pointer("/controlPlane/service/spec/type").unwrap(), "NodePort");
        let names = Names::new(&"alice".parse().unwrap(), &spec());
        let users =
            json!({"controlPlane": {"proxy": {"extraSANs": ["mine.example.org"]}}, "telemetry": {"enabled": true}});
        let asked = requests(&json!({"controlPlane": {"statefulSet": {"resources": {"requests": {"cpu": "20m"}}}}}));
        assert_eq!(asked, Amount { millicores: 20, memory: 256 << 20, pods: 0 });
        let last = demanded(&names, &certificate(&names, &users, ["gateway.example.org"].into_iter()));
        assert_eq!(last["telemetry"]["enabled"], false);
        let listed = last["controlPlane"]["proxy"]["extraSANs"].as_array().unwrap();
        for name in ["k8tre-alice.vc-alice.svc", "mine.example.org", "gateway.example.org"] {
            assert!(listed.contains(&json!(name)), "{name}: {listed:?}");
        }
    }
}
