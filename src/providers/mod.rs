//! What makes the cluster of an environment: one interface, and a folder for each that implements it.

pub mod existing;
pub mod kind;
pub mod vcluster;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::argocd::side::ArgoCd;
use crate::audit::Audit;
use crate::context::Context;
use crate::error::{Error, Result, ResultExt};
use crate::names::EnvName;
use crate::ports::kube::Kube;
use crate::preflight::{self, Finding};
use crate::spec::{ProviderSpec, SharedArgoCd, Spec};

/// What the rest of the program asks of a cluster's maker. It keeps nothing between two questions: all that it knows of an
/// environment is in the context's spec, and in the world.
#[async_trait]
pub trait Provider: Send + Sync {
    /// As it is called on the command line and in reports.
    fn name(&self) -> &'static str;

    /// What `up` makes, for the plan.
    fn describe(&self) -> String;

    /// What the cluster is called.
    fn cluster(&self, name: &EnvName) -> String {
        name.cluster()
    }

    /// Name of the context in the environment's kubeconfig.
    fn context(&self, name: &EnvName) -> String;

    /// Whether the cluster goes with the environment, and all that is in it along. If not, `down` takes out what `up` put in.
    fn owns_cluster(&self) -> bool {
        true
    }

    /// What will be made in a cluster that others use too, in a sentence; asked about before the first write.
    fn ground(&self, _name: &EnvName) -> Option<String> {
        None
    }

    /// All that can be known to be wrong before anything is made. Refuses a cluster that is not this environment's.
    async fn check(&self, cx: &Context) -> Result<Checked>;

    /// Fetches what creating needs, such as a program: without it there is no need to begin.
    async fn fetch(&self, _cx: &Context) -> Result<()> {
        Ok(())
    }

    /// What there is under the cluster's name; reads only.
    async fn observe(&self, cx: &Context) -> Result<ClusterState>;

    /// The error for a cluster of that name which is [`ClusterState::Foreign`].
    fn not_ours(&self, cx: &Context, why: &str) -> Error;

    /// Makes the cluster, from nothing or from what a creation that was cut short left. Then its kubeconfig is there and
    /// its API server answers; after a failure nothing is left, unless it is to be kept for a look inside.
    async fn create(&self, cx: &Context) -> Result<()>;

    /// Starts a stopped cluster. Then its kubeconfig is there, and what its API server says is no older than the start.
    async fn start(&self, cx: &Context) -> Result<()>;

    /// Writes the kubeconfig of a running cluster again, and waits until its API server answers.
    async fn write_kubeconfig(&self, cx: &Context) -> Result<()>;

    /// Whether the cluster can be stopped and started again; the error says why not.
    fn can_pause(&self) -> Result<()>;

    /// Stops the cluster, which keeps its contents; bounded.
    async fn stop(&self, cx: &Context) -> Result<()>;

    /// Memory in bytes that stopping it would free, if anybody knows.
    async fn memory(&self, _cx: &Context) -> Option<u64> {
        None
    }

    /// Removes all that `create` made, the kubeconfig too, and proves it; fine when nothing is there. What is not ours stays,
    /// with an error.
    async fn delete(&self, cx: &Context) -> Result<()>;

    /// Whether images that this machine's Docker holds are copied into the cluster's nodes; otherwise the cluster pulls them.
    fn loads_images(&self) -> bool {
        false
    }

    /// What there is, and what it takes of the cluster that carries it, for people.
    async fn survey(&self, cx: &Context) -> Result<(ClusterState, Option<String>)> {
        Ok((self.observe(cx).await?, None))
    }

    /// Containers of this machine's Docker that are the running nodes, for the images.
    async fn image_nodes(&self, _cx: &Context) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Whether its nodes know the authorities and mirrors of the network around them. Nodes that others made are theirs.
    async fn has_network(&self, _cx: &Context) -> Result<bool> {
        Ok(true)
    }

    async fn set_network(&self, _cx: &Context) -> Result<()> {
        Ok(())
    }

    /// What its pods reach without a proxy: ranges of addresses and names.
    fn near(&self, _cx: &Context) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Whether its network has addresses for a load balancer in the cluster, which the branch may name.
    fn has_addresses(&self) -> bool {
        false
    }

    /// Those addresses, once they are known.
    async fn address_range(&self, _cx: &Context) -> Option<String> {
        None
    }

    /// Address of the cluster as a shared Argo CD reaches it; known before the cluster is made.
    async fn server_for(&self, name: &EnvName, argocd: &ArgoCd, shared: &SharedArgoCd) -> Result<String>;

    /// Whether the cluster says of itself that the environment ends then, for who has no journal of it.
    async fn has_expiry(&self, cx: &Context, expires: Timestamp) -> Result<bool>;

    async fn set_expiry(&self, cx: &Context, expires: Timestamp) -> Result<()>;

    /// Names of things that can be found only while the cluster is there, and have to be gone after it.
    async fn belongings(&self, _cx: &Context) -> Vec<String> {
        Vec::new()
    }

    /// The proof after `delete`: looks at the world, and names what is left.
    async fn audit(&self, cx: &Context, belongings: &[String], audit: &mut Audit) -> Result<()>;
}

/// What a look before the making has found.
#[derive(Default)]
pub struct Checked {
    /// What only this provider can know; the preflight adds the rest.
    pub findings: Vec<Finding>,
    /// What will be changed of what others use too, in a sentence; asked about before.
    pub changes: Option<String>,
    /// The nodes that are to be made on this machine.
    pub nodes: Option<preflight::Plan>,
    /// Whether the cluster is still to be made.
    pub absent: bool,
}

/// A cluster that is silent for so long does not answer.
const ANSWER: Duration = Duration::from_secs(8);

/// A cluster of the user's own kubeconfig, if it answers.
async fn answering(kubeconfig: &Path, context: &str) -> Result<Kube> {
    let ready = async {
        let kube = Kube::open(kubeconfig, Some(context)).await?;
        kube.ready().await.map(|()| kube)
    };
    let opened = tokio::time::timeout(ANSWER, ready).await;
    let opened = opened.unwrap_or_else(|_| Err(Error::failed(format!("no answer within {} s", ANSWER.as_secs()))));
    opened
        .with_context(|| format!("the cluster of context {context} does not answer"))
        .hint(format!("kubectl --kubeconfig {} --context {context} get --raw /readyz", kubeconfig.display()))
}

/// The provider of an environment.
pub fn of(spec: &Spec) -> Box<dyn Provider> {
    match &spec.provider {
        ProviderSpec::Kind => Box::new(kind::KindProvider),
        ProviderSpec::Vcluster(spec) => Box::new(vcluster::VclusterProvider { spec: spec.clone() }),
        ProviderSpec::Existing(existing) => Box::new(existing::Existing { spec: existing.clone() }),
    }
}

/// What a provider finds under a cluster's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterState {
    Absent,
    Running,
    /// All nodes are there, and at least one does not run: which, and why not.
    Stopped(String),
    /// Ours, but its creation was not finished: what is wrong with it.
    Partial(String),
    /// Not ours: what shows it. Never changed, never deleted.
    Foreign(String),
}

impl fmt::Display for ClusterState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClusterState::Absent => f.write_str("absent"),
            ClusterState::Running => f.write_str("running"),
            ClusterState::Stopped(why) => write!(f, "stopped: {why}"),
            ClusterState::Partial(why) => write!(f, "not whole: {why}"),
            ClusterState::Foreign(why) => write!(f, "not ours: {why}"),
        }
    }
}
