//! An environment on a shared Argo CD that may be another machine's: what its marks tell is all that is known of it.

use std::sync::Arc;

use crate::argocd::side::ArgoCd;
use crate::context::{Context, Options, Record};
use crate::engine::{Events, Step};
use crate::error::Result;
use crate::journal::Journal;
use crate::ports::dirs::Dirs;
use crate::settings;
use crate::shared::check::secret_type;
use crate::shared::environments::Registered;
use crate::shared::probe::{self, Probe};
use crate::shared::remains::{Remains, called};
use crate::shared::{answering, removal};
use crate::spec::{ArgoCdAt, SharedArgoCd};
use crate::steps::project::Project;
use crate::steps::registration_shared::SharedRegistration;

pub struct Guest {
    cx: Context,
    shared: SharedArgoCd,
    authority: Option<String>,
}

/// Whether Argo CD reaches its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    Yes,
    /// It does not, and why.
    No(String),
    /// Nobody could ask, and why.
    Unknown(String),
}

impl Guest {
    pub fn new(of: &Registered, place: &SharedArgoCd, dirs: &Dirs, events: Arc<dyn Events>) -> Result<Guest> {
        let shared = SharedArgoCd { server: of.server.clone().unwrap_or_default(), ..place.clone() };
        let mut spec = settings::of_name(&of.name)?;
        spec.argocd.at = ArgoCdAt::Shared(shared.clone());
        let journal = Journal { id: of.id.clone(), ..Journal::new(spec) };
        let record = Record::Reading(Box::default());
        let cx = Context::new(&journal, record, dirs.clone(), Options::default(), events);
        Ok(Guest { cx, shared, authority: of.authority.clone() })
    }

    pub async fn reach(&self, argocd: &ArgoCd) -> Reach {
        let Some(authority) = &self.authority else { return Reach::No("it has no cluster Secret".into()) };
        match probe::ask(&self.cx, argocd, &self.shared, authority).await {
            Ok(Probe::Reached) => Reach::Yes,
            Ok(Probe::Unreachable { what, .. }) => Reach::No(what),
            Ok(Probe::NotAllowed) => Reach::Unknown("you may not ask from Argo CD's network".into()),
            Err(error) => Reach::Unknown(error.to_string()),
        }
    }

    /// Takes all of it off the Argo CD, as `down` does, and tells what is left: nothing, if all is well. Without a
    /// cluster that answers, Argo CD is not asked to delete what was deployed there.
    pub async fn take_back(&self, silent: Option<String>) -> Result<Remains> {
        let argocd = answering(&self.cx).await?;
        removal::remove(&self.cx, &argocd, silent).await?;
        for secret in Remains::read(&self.cx, &argocd).await?.repositories {
            argocd.delete(&secret_type(), called(&secret)).await?;
        }
        Project.undo(&self.cx).await?;
        SharedRegistration { shared: self.shared.clone() }.undo(&self.cx).await?;
        Remains::read(&self.cx, &argocd).await
    }
}
