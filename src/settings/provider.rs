//! What makes the cluster, from flags, the journal and files. Pure.

use std::path::PathBuf;

use super::{FileSettings, ProviderKind};
use crate::cli::{Storage, UpArgs, VclusterArgs};
use crate::error::{Error, Result};
use crate::names::EnvName;
use crate::spec::{
    ExistingSpec, Expose, PodSecurity, ProviderSpec, Spec, VCLUSTER_KUBERNETES, VCLUSTER_VERSION, VclusterSpec,
};

/// As it is given: the file of a context, and what only a cluster can tell, are found out afterwards.
pub fn provider(name: &EnvName, args: &UpArgs, saved: Option<&Spec>, files: &[FileSettings]) -> Result<ProviderSpec> {
    let saved = saved.map(|saved| &saved.provider);
    let recorded = saved.map(|saved| match saved {
        ProviderSpec::Kind => ProviderKind::Kind,
        ProviderSpec::Existing(_) => ProviderKind::Existing,
        ProviderSpec::Vcluster(_) => ProviderKind::Vcluster,
    });
    // That an environment cannot move is said where both are known.
    let kind = args.provider.or(recorded).or_else(|| files.iter().find_map(|file| file.provider));
    let kind = kind.unwrap_or(ProviderKind::Kind);
    if kind != ProviderKind::Existing && args.kubeconfig.is_some() {
        // A variable or a file may name a context for other environments.
        return Err(Error::usage("--kubeconfig is for a cluster that is there already")
            .hint("say so: --provider existing --context CONTEXT"));
    }
    if kind != ProviderKind::Existing && args.adjust_argocd {
        return Err(Error::usage("--adjust-argocd is for an Argo CD that is in a cluster which is there already")
            .hint("say so: --provider existing --context CONTEXT"));
    }
    if kind != ProviderKind::Vcluster {
        refuse_flags(&args.vcluster, saved.is_some())?;
    }
    match (kind, saved) {
        (ProviderKind::Kind, _) => Ok(ProviderSpec::Kind),
        (ProviderKind::Existing, Some(ProviderSpec::Existing(saved))) => Ok(ProviderSpec::Existing(ExistingSpec {
            adjust_argocd: saved.adjust_argocd || args.adjust_argocd,
            ..saved.clone()
        })),
        (ProviderKind::Existing, _) => existing(args, files),
        (ProviderKind::Vcluster, Some(ProviderSpec::Vcluster(saved))) => {
            vcluster(name, &args.vcluster, Some(saved), files).map(ProviderSpec::Vcluster)
        }
        (ProviderKind::Vcluster, _) => vcluster(name, &args.vcluster, None, files).map(ProviderSpec::Vcluster),
    }
}

fn existing(args: &UpArgs, files: &[FileSettings]) -> Result<ProviderSpec> {
    let context = args.context.clone().or_else(|| files.iter().find_map(|file| file.context.clone()));
    let context = context.ok_or_else(|| {
        Error::usage("which cluster is meant is not said").hint("a context of your kubeconfig: --context CONTEXT")
    })?;
    Ok(ProviderSpec::Existing(ExistingSpec {
        context,
        kubeconfig: PathBuf::new(),
        flavour: String::new(),
        has_argocd: false,
        adjust_argocd: args.adjust_argocd,
    }))
}

/// What was meant for a vCluster must not be forgotten in silence. Variables may say so for other environments.
fn refuse_flags(flags: &VclusterArgs, recorded: bool) -> Result<()> {
    let given = [
        ("--host-namespace", flags.host_namespace.is_some()),
        ("--vcluster-values", flags.vcluster_values.is_some()),
        ("--vcluster-kubernetes", flags.vcluster_kubernetes.is_some()),
        ("--vcluster-network-policy", flags.vcluster_network_policy),
        ("--vcluster-pod-security", flags.vcluster_pod_security.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given).filter(|_| !recorded) {
        None => Ok(()),
        Some((flag, _)) => Err(Error::usage(format!("{flag} is for a vCluster"))
            .hint("say so: --provider vcluster --host-context CONTEXT")),
    }
}

fn vcluster(
    name: &EnvName,
    flags: &VclusterArgs,
    saved: Option<&VclusterSpec>,
    files: &[FileSettings],
) -> Result<VclusterSpec> {
    let file = |get: fn(&FileSettings) -> Option<String>| files.iter().find_map(get);
    let context = match saved {
        Some(saved) => saved.host_context.clone(),
        None => flags.host_context.clone().or_else(|| file(|f| f.vcluster.host_context.clone())).ok_or_else(|| {
            Error::usage("a vCluster needs a cluster that carries it").hint("name it: --host-context CONTEXT")
        })?,
    };
    if let (Some(saved), Some(given)) = (saved, &flags.host_namespace)
        && saved.namespace != *given
    {
        return Err(Error::usage(format!("{name} is in the namespace {}, and cannot move", saved.namespace))
            .hint(format!("remove it first: k8tre dev down {name}")));
    }
    let namespace = match saved {
        Some(saved) => saved.namespace.clone(),
        None => flags.host_namespace.clone().unwrap_or_else(|| name.cluster()),
    };
    let version = flags.vcluster_version.clone().or_else(|| saved.map(|s| s.version.clone()));
    let version = version.or_else(|| file(|f| f.vcluster.version.clone())).unwrap_or_else(|| VCLUSTER_VERSION.into());
    let kubernetes = flags.vcluster_kubernetes.clone().or_else(|| saved.map(|s| s.kubernetes.clone()));
    let kubernetes =
        kubernetes.or_else(|| file(|f| f.vcluster.kubernetes.clone())).unwrap_or_else(|| VCLUSTER_KUBERNETES.into());
    check_version("vCluster", &version, VCLUSTER_VERSION, "--vcluster-version")?;
    check_version("Kubernetes", kubernetes.trim_start_matches('v'), VCLUSTER_KUBERNETES, "--vcluster-kubernetes")?;
    let path = |flag: &Option<PathBuf>, saved: Option<&PathBuf>, file: fn(&FileSettings) -> Option<PathBuf>| {
        let given = flag.clone().or(saved.cloned());
        given.or_else(|| files.iter().find_map(file)).map(std::path::absolute).transpose()
    };
    let storage = flags.vcluster_storage.map(|storage| storage == Storage::Volume);
    if let (Some(given), Some(was)) = (storage, saved.and_then(|saved| saved.persistent))
        && given != was
    {
        return Err(Error::usage(format!("the contents of {name} cannot move between a volume and its pod"))
            .hint(format!("remove it first: k8tre dev down {name}")));
    }
    let storage = storage.or_else(|| saved.and_then(|saved| saved.persistent));
    let storage = storage.or_else(|| files.iter().find_map(|f| f.vcluster.storage).map(|s| s == Storage::Volume));
    Ok(VclusterSpec {
        host_context: context,
        host_kubeconfig: saved.map(|saved| saved.host_kubeconfig.clone()).unwrap_or_default(),
        namespace,
        version,
        chart: path(&flags.vcluster_chart, saved.and_then(|s| s.chart.as_ref()), |f| f.vcluster.chart.clone())?,
        kubernetes: format!("v{}", kubernetes.trim_start_matches('v')),
        values: path(&flags.vcluster_values, saved.and_then(|s| s.values.as_ref()), |f| f.vcluster.values.clone())?,
        persistent: storage,
        expose: pick(flags.vcluster_expose, saved.map(|s| s.expose), files.iter().find_map(|f| f.vcluster.expose)),
        node_address: flags
            .vcluster_node_address
            .clone()
            .or_else(|| saved.and_then(|s| s.node_address.clone()))
            .or_else(|| file(|f| f.vcluster.node_address.clone())),
        network_policy: flags.vcluster_network_policy
            || saved.map_or_else(
                || files.iter().find_map(|f| f.vcluster.network_policy) == Some(true),
                |s| s.network_policy,
            ),
        pod_security: pick(
            flags.vcluster_pod_security,
            saved.map(|s| s.pod_security),
            files.iter().find_map(|f| f.vcluster.pod_security),
        ),
    })
}

fn pick<T: Default>(flag: Option<T>, saved: Option<T>, file: Option<T>) -> T {
    flag.or(saved).or(file).unwrap_or_default()
}

fn check_version(of: &str, version: &str, example: &str, flag: &str) -> Result<()> {
    match semver::Version::parse(version) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::usage(format!("\"{}\" is no version of {of}", crate::text::one_line(version, 60)))
            .hint(format!("versions are written like {example}: {flag} {example}"))),
    }
}

/// `vcluster` in a settings file.
#[derive(Debug, Clone, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct VclusterFile {
    /// The cluster that carries vClusters: a context of the kubeconfig.
    pub host_context: Option<String>,
    pub version: Option<String>,
    pub chart: Option<PathBuf>,
    pub values: Option<PathBuf>,
    pub kubernetes: Option<String>,
    pub storage: Option<Storage>,
    pub expose: Option<Expose>,
    pub node_address: Option<String>,
    pub network_policy: Option<bool>,
    pub pod_security: Option<PodSecurity>,
}
