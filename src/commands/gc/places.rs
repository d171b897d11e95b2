//! Where `gc` looks besides this machine: clusters of the user's kubeconfig, or the one around the pod that it runs in.

use std::path::PathBuf;

use crate::cli::GcArgs;
use crate::error::Result;
use crate::ports::kubeconfig::{self, IN_CLUSTER};
use crate::providers::vcluster::hosted::Carrier;
use crate::shared::place;
use crate::spec::SharedArgoCd;

pub struct Places {
    /// File and context of a cluster that carries vClusters.
    host: Option<(PathBuf, String)>,
    pub argocd: Option<SharedArgoCd>,
    /// Has the file for the cluster around this pod.
    _folder: Option<tempfile::TempDir>,
}

impl Places {
    pub fn of(args: &GcArgs) -> Result<Places> {
        if args.in_cluster {
            let folder = tempfile::tempdir()?;
            let file = kubeconfig::in_cluster(folder.path())?;
            let named = args.argocd.as_ref().map(|namespace| place::at(&file, IN_CLUSTER, namespace)).transpose()?;
            return Ok(Places { host: Some((file, IN_CLUSTER.into())), argocd: named, _folder: Some(folder) });
        }
        let host = match &args.host {
            None => None,
            Some(context) => match kubeconfig::with_context(context)? {
                Some(file) => Some((std::path::absolute(file)?, context.clone())),
                None => return Err(kubeconfig::unknown_context(context)?),
            },
        };
        let argocd = args.argocd.as_ref().map(|given| place::named(given)).transpose()?;
        Ok(Places { host, argocd, _folder: None })
    }

    /// The cluster that carries vClusters, if there is one to look at and it answers.
    pub async fn carrier(&self) -> Result<Option<Carrier>> {
        match &self.host {
            None => Ok(None),
            Some((file, context)) => Carrier::open(file, context).await.map(Some),
        }
    }
}
