//! What the steps share: the environment's spec and the way to each part of the world.
//!
//! Everything is opened when it is first needed, so that a plan can be made with Docker stopped and
//! a status read with the cluster gone.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::OnceCell;

use crate::argocd::application::Expected;
use crate::argocd::manifest::{self, Install, Settings};
use crate::argocd::network;
use crate::argocd::plugin;
use crate::argocd::side::{ArgoCd, Sides};
use crate::bundle;
use crate::engine::{Events, State, StepId};
use crate::error::{Error, Result};
use crate::gitops::planned::Planned;
use crate::journal::{Facts, Journal, Writer};
use crate::overlay::{self, EnvironmentOverlay};
use crate::ports::dirs::Dirs;
use crate::ports::docker::{Docker, Held};
use crate::ports::fetch::{Fetcher, Trust};
use crate::ports::git::{Checkout, Login};
use crate::ports::kube::Kube;
use crate::prerequisites::{self, Prepared};
use crate::providers::{self, Provider};
use crate::sample;
use crate::spec::{SecretsMode, Spec};
use crate::steps::publish;

/// A shared Argo CD that is silent for so long is not asked again.
const ANSWER: Duration = Duration::from_secs(8);

/// Choices of one run, which the journal does not keep.
#[derive(Debug, Clone)]
pub struct Options {
    pub timeout: Duration,
    pub no_wait: bool,
    pub require_synced: bool,
    pub keep_on_failure: bool,
    pub offline: bool,
    pub ca_bundle: Option<PathBuf>,
    pub keep_branch: bool,
    pub no_prepare: bool,
    /// What happens in this run to secrets that are there, if not what the settings say.
    pub secrets: Option<SecretsMode>,
    /// The only Application to wait for; none means all.
    pub only: Option<String>,
    /// A login for the repository, which a shared Argo CD is to get.
    pub login: Option<Login>,
    /// Whether a token that ends soon is replaced; otherwise one that has ended is enough to say so.
    pub renew: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            timeout: Duration::from_secs(600),
            no_wait: false,
            require_synced: false,
            keep_on_failure: false,
            offline: false,
            ca_bundle: None,
            keep_branch: false,
            no_prepare: false,
            secrets: None,
            only: None,
            login: None,
            renew: false,
        }
    }
}

pub struct Context {
    pub spec: Spec,
    /// Random id of the environment: part of every owner mark.
    pub id: String,
    pub dirs: Dirs,
    pub options: Options,
    provider: Box<dyn Provider>,
    record: Record,
    events: Arc<dyn Events>,
    docker: OnceCell<Docker>,
    kube: Mutex<Option<Kube>>,
    shared: OnceCell<ArgoCd>,
    silence: OnceCell<Option<String>>,
    install: OnceCell<Install>,
    overlay: OnceCell<EnvironmentOverlay>,
    planned: OnceCell<Vec<Planned>>,
    prerequisites: OnceCell<Vec<Prepared>>,
    outlined: OnceCell<Vec<Prepared>>,
}

/// The journal, to be written by `up` and `down`, or only read by `status` and `plan`.
pub enum Record {
    Writing(Arc<Writer>),
    Reading(Box<Facts>),
}

impl Context {
    pub fn new(journal: &Journal, record: Record, dirs: Dirs, options: Options, events: Arc<dyn Events>) -> Context {
        Context {
            provider: providers::of(&journal.spec),
            spec: journal.spec.clone(),
            id: journal.id.clone(),
            dirs,
            options,
            record,
            events,
            docker: OnceCell::new(),
            kube: Mutex::new(None),
            shared: OnceCell::new(),
            silence: OnceCell::new(),
            install: OnceCell::new(),
            overlay: OnceCell::new(),
            planned: OnceCell::new(),
            prerequisites: OnceCell::new(),
            outlined: OnceCell::new(),
        }
    }

    pub fn detail(&self, id: StepId, text: &str) {
        self.events.detail(id, text);
    }

    pub fn facts(&self) -> Facts {
        match &self.record {
            Record::Writing(writer) => writer.snapshot().facts,
            Record::Reading(facts) => (**facts).clone(),
        }
    }

    pub fn note(&self, change: impl FnOnce(&mut Facts)) -> Result<()> {
        match &self.record {
            Record::Writing(writer) => writer.update(|journal| change(&mut journal.facts)),
            Record::Reading(_) => Err(Error::failed("a command that only reads tried to write the journal")),
        }
    }

    pub async fn docker(&self) -> Result<&Docker> {
        self.docker.get_or_try_init(Docker::open).await
    }

    /// What makes the cluster.
    pub fn provider(&self) -> &dyn Provider {
        &*self.provider
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.dirs.kubeconfig(self.spec.name.as_str())
    }

    /// The environment's cluster; `None` while there is no kubeconfig for it.
    pub async fn kube(&self) -> Result<Option<Kube>> {
        if let Some(kube) = self.kube_slot().clone() {
            return Ok(Some(kube));
        }
        let path = self.kubeconfig();
        if !path.exists() {
            return Ok(None);
        }
        let kube = Kube::open(&path, None).await?;
        *self.kube_slot() = Some(kube.clone());
        Ok(Some(kube))
    }

    /// Argo CD's side; `None` while that is in a cluster that is not there yet.
    pub async fn argocd(&self) -> Result<Option<ArgoCd>> {
        let own = self.kubeconfig();
        if self.spec.argocd.shared().is_some() {
            return self.shared.get_or_try_init(|| ArgoCd::open(&self.spec, &own)).await.cloned().map(Some);
        }
        let namespace = self.spec.argocd.place(&own).namespace.to_owned();
        Ok(self.kube().await?.map(|kube| ArgoCd { kube, namespace }))
    }

    pub async fn require_argocd(&self) -> Result<ArgoCd> {
        let argocd = self.argocd().await?;
        argocd.ok_or_else(|| Error::failed("the environment has no kubeconfig yet").hint("k8tre dev up"))
    }

    /// Why Argo CD's cluster does not answer, asked once; none if it does.
    pub async fn silence_of_argocd(&self, argocd: &ArgoCd) -> Option<String> {
        let ask = || async {
            match tokio::time::timeout(ANSWER, argocd.kube.ready()).await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some(format!("no answer within {} s", ANSWER.as_secs())),
            }
        };
        self.silence.get_or_init(ask).await.clone()
    }

    /// Both sides; `None` while there is no Argo CD.
    pub async fn sides(&self) -> Result<Option<Sides>> {
        let Some(argocd) = self.argocd().await? else { return Ok(None) };
        let workloads = match self.spec.argocd.shared() {
            None => Some(argocd.kube.clone()),
            // Without its cluster, Argo CD's side still tells what it knows.
            Some(_) => self.kube().await.unwrap_or_default(),
        };
        Ok(Some(Sides { argocd, workloads }))
    }

    pub async fn require_sides(&self) -> Result<Sides> {
        let sides = self.sides().await?;
        sides.ok_or_else(|| Error::failed("the environment has no kubeconfig yet").hint("k8tre dev up"))
    }

    pub async fn require_kube(&self) -> Result<Kube> {
        let kube = self.kube().await?;
        kube.ok_or_else(|| Error::failed("the environment has no kubeconfig yet").hint("k8tre dev up"))
    }

    /// The cluster was created, or its address changed: the old connection is of no use.
    pub fn forget_kube(&self) {
        *self.kube_slot() = None;
    }

    fn kube_slot(&self) -> std::sync::MutexGuard<'_, Option<Kube>> {
        self.kube.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn needs_cluster() -> State {
        State::Unknown("needs the cluster".into())
    }

    /// Argo CD's manifest as this environment wants it.
    pub async fn install(&self) -> Result<&Install> {
        self.install
            .get_or_try_init(|| async {
                let text = crate::argocd::source::manifest(self).await?;
                manifest::prepare(&text, &self.spec.argocd, &self.argocd_settings().await?)
            })
            .await
    }

    /// An image that this machine's Docker holds, so that nobody has to pull it.
    pub async fn held(&self, reference: &str) -> Result<Option<Held>> {
        bundle::held(self.docker().await?, &self.dirs.cache, reference).await
    }

    /// Those of some images that it holds.
    pub async fn held_of(&self, references: impl IntoIterator<Item = String>) -> Result<Vec<Held>> {
        let mut here = Vec::new();
        for reference in references {
            here.extend(self.held(&reference).await?);
        }
        Ok(here)
    }

    /// Images that the cluster needs: Argo CD's, or, where that runs elsewhere, those that the branch names.
    pub async fn images(&self) -> Result<Vec<String>> {
        match self.spec.argocd.shared() {
            None => Ok(self.install().await?.images()),
            // Not through the overlay, which waits for the cluster's network to be there.
            Some(_) => Ok(EnvironmentOverlay::named(&self.spec)?.images.into_iter().collect()),
        }
    }

    /// What the repository needs of Argo CD. The sample needs nothing, also while it is not written yet.
    pub async fn argocd_settings(&self) -> Result<Settings> {
        let mut settings = Settings::default();
        let spec = &self.spec.network;
        let near = if spec.has_proxy() { self.provider.near(self)? } else { Vec::new() };
        network::add(&mut settings, spec, &near);
        if self.spec.sample {
            return Ok(settings);
        }
        // Not through the overlay, which waits for the cluster's network to be there.
        if let Some(preset) = &EnvironmentOverlay::preset(&self.spec)? {
            settings.config.insert("kustomize.buildOptions".into(), preset.build_options.clone());
            if let Some(plugin) = &preset.plugin {
                plugin::add(&mut settings, plugin, &preset.build_options);
            }
        }
        Ok(settings)
    }

    /// The developer's overlay on the base, and what Argo CD will make of it.
    pub async fn overlay(&self) -> Result<&EnvironmentOverlay> {
        self.overlay
            .get_or_try_init(|| async {
                let range = self.address_range().await;
                let served = publish::work_tree(self)?;
                EnvironmentOverlay::of(&self.spec, &self.cluster_name(), range, served)
            })
            .await
    }

    /// Objects that the Applications will deploy, as far as the files tell; of a sample also before it is written.
    pub async fn planned(&self) -> Result<&[Planned]> {
        let read = || async {
            let is_written = !self.spec.sample || sample::is_sample(&self.spec.repo).await?;
            overlay::planned(&self.spec, &self.cluster_name(), is_written)
        };
        self.planned.get_or_try_init(read).await.map(Vec::as_slice)
    }

    /// What the cluster has to have before Argo CD, fetched and rendered.
    pub async fn prerequisites(&self) -> Result<&[Prepared]> {
        let prepare = || async { prerequisites::prepare(&self.spec.prerequisites, &self.fetcher()).await };
        self.prerequisites.get_or_try_init(prepare).await.map(Vec::as_slice)
    }

    /// The same for a look at them: which objects, without what is in them.
    pub async fn outlined_prerequisites(&self) -> Result<&[Prepared]> {
        let look = || async {
            match prerequisites::recorded(&self.spec.prerequisites, self.facts().prerequisites)? {
                Some(recorded) => Ok(recorded),
                None => Ok(self.prerequisites().await?.to_vec()),
            }
        };
        self.outlined.get_or_try_init(look).await.map(Vec::as_slice)
    }

    /// For what comes from the network, as this run may fetch it.
    pub fn fetcher(&self) -> Fetcher {
        let given = self.options.ca_bundle.clone().map(Trust::File);
        let trust = given.or_else(|| self.spec.network.authorities.clone().map(Trust::Given));
        Fetcher::new(&self.dirs.cache).offline(self.options.offline).trust(trust)
    }

    /// The repository, with a git that goes by the environment's network, where the user's own settings say nothing else.
    pub async fn checkout(&self) -> Result<Checkout> {
        let checkout = Checkout::open(&self.spec.repo)?;
        let network = &self.spec.network;
        let checkout = checkout.through(&network.variables(&[]));
        match &network.authorities {
            Some(pem) => checkout.trusting(pem, &self.dirs.cache).await,
            None => Ok(checkout),
        }
    }

    /// Addresses that the cluster's load balancer may hand out, as its provider knows them once it has made something.
    pub async fn address_range(&self) -> Option<String> {
        let recorded = self.facts().address_range;
        match recorded {
            Some(_) => recorded,
            None => self.provider.address_range(self).await,
        }
    }

    /// Name of the cluster in Argo CD, which the repository's templates put into Application names.
    pub fn cluster_name(&self) -> String {
        self.spec.name.to_string()
    }

    /// What an Application must show to be healthy. One that no change touched since the commit that it has
    /// seen need not have seen a newer one.
    pub fn expected(&self, application: &str, seen: &str) -> Expected {
        let facts = self.facts();
        let (revision, since) = facts.expected(application, seen);
        let since = since.max(facts.registered_at);
        Expected { revision, since, synced: self.options.require_synced }
    }

    /// A connection that another run opened already.
    pub fn lend_kube(&self, kube: Kube) {
        *self.kube_slot() = Some(kube);
    }
}
