//! vCluster: a cluster in a namespace of another one, which carries its pods.
//!
//! The namespace carries the owner mark, and all of it is this environment's: Helm installs into it, and with it everything
//! goes. Whatever is asked, the host is asked first: a host that does not answer is never taken for an empty one.

mod access;
pub mod chart;
mod create;
mod delete;
mod helm;
mod host;
pub mod hosted;
mod preflight;
mod provider;
pub mod settle;
mod values;

pub use provider::VclusterProvider;

use crate::names::EnvName;
use crate::spec::VclusterSpec;

/// What things are called on the host.
pub struct Names {
    /// The release, and with it the control plane and its Service.
    pub release: String,
    pub namespace: String,
}

impl Names {
    pub fn new(name: &EnvName, spec: &VclusterSpec) -> Names {
        Names { release: name.cluster(), namespace: spec.namespace.clone() }
    }

    /// The name by which pods of the host reach it; in its certificate.
    pub fn inside(&self) -> String {
        format!("{}.{}.svc", self.release, self.namespace)
    }

    /// Names for the certificate, besides those that vCluster puts there.
    fn certificate(&self) -> [String; 2] {
        [self.inside(), format!("{}.cluster.local", self.inside())]
    }

    /// Secret with the administrator's kubeconfig.
    fn secret(&self) -> String {
        format!("vc-{}", self.release)
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use crate::spec::{Expose, PodSecurity, VclusterSpec};

    pub fn spec() -> VclusterSpec {
        VclusterSpec {
            host_context: "team".into(),
            host_kubeconfig: "/home/alice/.kube/config".into(),
            namespace: "vc-alice".into(),
            version: "0.36.1".into(),
            chart: None,
            kubernetes: "v1.34.4".into(),
            values: None,
            persistent: None,
            expose: Expose::NodePort,
            node_address: None,
            network_policy: false,
            pod_security: PodSecurity::Privileged,
        }
    }
}
