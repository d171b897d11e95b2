//! Which kinds live in no namespace: what no file says, and only a cluster could tell for all of them.

/// Kinds that live in no namespace: Kubernetes' own, and those of operators that TREs use.
const OF_CLUSTER: [&str; 30] = [
    "APIService",
    "CSIDriver",
    "CSINode",
    "CertificateSigningRequest",
    "CiliumClusterwideNetworkPolicy",
    "CiliumLoadBalancerIPPool",
    "ClusterExternalSecret",
    "ClusterIssuer",
    "ClusterRole",
    "ClusterRoleBinding",
    "ClusterSecretStore",
    "CustomResourceDefinition",
    "FlowSchema",
    "GatewayClass",
    "IngressClass",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "PriorityLevelConfiguration",
    "RuntimeClass",
    "StorageClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "VolumeAttributesClass",
    "VolumeSnapshotClass",
];

/// Whether objects of that kind are in no namespace.
pub fn is_of_cluster(kind: &str) -> bool {
    OF_CLUSTER.contains(&kind)
}
