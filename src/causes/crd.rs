//! Kinds that the cluster does not know.

use super::view::View;
use super::words::{group, pattern};
use super::{Cause, Family};

pub const FAMILY: Family = Family { codes: &["crd-missing"], explain };

fn explain(view: &View) -> Option<Cause> {
    let said = view.refusals.iter().map(|refusal| (Some(refusal.link()), refusal.message));
    let whole = view.sync_failed().then(|| (None, view.operation_message()));
    let compared = view.comparison_errors().map(|message| (None, message));
    said.chain(whole).chain(compared).find_map(|(object, message)| {
        let kind = unknown(message)?;
        let cause = Cause::new("crd-missing").because_all(object);
        let cause = cause.because(format!("the cluster does not know {kind}: no such CRD"));
        let (_, name) = kind.rsplit_once('/').unwrap_or(("", &kind));
        Some(cause.hint(format!("kubectl get crd | grep -i {}", name.to_lowercase())))
    })
}

/// `cilium.io/CiliumNetworkPolicy`, or the group and version if that is all that is said.
fn unknown(message: &str) -> Option<String> {
    let group_and_kind = group(pattern!(r"The Kubernetes API could not find (\S+) for requested resource"), message);
    if let Some(kind) = group_and_kind {
        return Some(kind.to_owned());
    }
    if let Some(found) = pattern!(r#"no matches for kind "([^"]+)" in version "([^"]+)""#).captures(message) {
        return Some(format!("{}/{}", &found[2], &found[1]));
    }
    group(pattern!(r"for group version ([^:\s]+): the server could not find the requested resource"), message)
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_found_in_each_wording() {
        let mapped = r#"error: unable to map: no matches for kind "Cluster" in version "postgresql.cnpg.io/v1""#;
        assert_eq!(unknown(mapped).as_deref(), Some("postgresql.cnpg.io/v1/Cluster"));
        assert_eq!(unknown("failed to get server version: the server could not find the requested resource"), None);
    }
}
