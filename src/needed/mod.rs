//! What an environment needs from elsewhere: images, and files that are fetched. As far as it can be known: what cannot
//! is named, with the reason.

mod lacking;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

use crate::argocd;
use crate::context::Context;
use crate::error::Result;
use crate::gitops::unseen::Unseen;
use crate::overlay;
use crate::ports::docker::is_latest;
use crate::ports::fetch::Wanted;
use crate::prerequisites;
use crate::providers::kind::{self, binary};
use crate::providers::vcluster::chart;
use crate::sample;
use crate::spec::{ProviderSpec, Source, Spec};
pub use lacking::findings;

pub struct Needed {
    pub images: Vec<Image>,
    pub files: Vec<File>,
    pub unknown: Vec<Unseen>,
}

/// An image, with what needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Image {
    pub reference: String,
    #[serde(rename = "for")]
    pub uses: Vec<String>,
    /// Whether nothing comes up without it; else only the Applications that name it.
    pub required: bool,
    /// Whether a pod asks the registry for it each time it starts, so that having it is not enough.
    pub always_pulled: bool,
}

/// A file that is fetched.
pub struct File {
    pub wanted: Wanted,
    pub use_of_it: &'static str,
    /// The user's own, in its place.
    pub given: Option<PathBuf>,
    /// Whether this machine has another way.
    pub optional: bool,
}

impl File {
    /// The flag by which it can be given, as an end of a sentence.
    fn or_flag(&self) -> &'static str {
        match self.use_of_it {
            ARGOCD => ", or give it: --argocd-manifest FILE",
            VCLUSTER => ", or give it: --vcluster-chart FILE",
            _ => "",
        }
    }
}

const ARGOCD: &str = "Argo CD";
const VCLUSTER: &str = "vCluster";
const NODES: &str = "the cluster's nodes";

#[derive(Default)]
struct Images(BTreeMap<String, (BTreeSet<String>, bool, bool)>);

impl Images {
    fn add(&mut self, reference: &str, use_of_it: &str, required: bool, always: bool) {
        let entry = self.0.entry(reference.to_owned()).or_default();
        entry.0.insert(use_of_it.to_owned());
        entry.1 |= required;
        entry.2 |= always;
    }
}

/// Everything that an environment needs. Argo CD's manifest and the prerequisites are read for it, and so fetched.
pub async fn of(cx: &Context) -> Result<Needed> {
    let spec = &cx.spec;
    let (mut images, mut unknown) = (Images::default(), Vec::new());
    let mut note = |what: &str, why: &str| unknown.push(Unseen { what: what.to_owned(), why: why.to_owned() });
    match &spec.provider {
        ProviderSpec::Kind => images.add(&kind::node_image(spec), NODES, true, false),
        ProviderSpec::Vcluster(_) => note(VCLUSTER, "the images of its chart, which the host pulls"),
        ProviderSpec::Existing(_) => note("the cluster", "it pulls its images itself"),
    }
    if spec.installs_argocd() {
        let install = cx.install().await?;
        for image in install.images() {
            images.add(&image, ARGOCD, true, false);
        }
        if spec.source == Source::Cluster {
            images.add(&install.argocd_image()?, "the git server", true, false);
        }
    }
    for prerequisite in cx.prerequisites().await? {
        for image in &prerequisite.images {
            images.add(image, &prerequisite.name, true, false);
        }
    }
    for one in cx.planned().await? {
        for (image, always) in pulled(&one.object) {
            if image.contains('$') {
                continue;
            }
            images.add(&image, &one.application, false, always);
        }
    }
    let is_written = !spec.sample || sample::is_sample(&spec.repo).await?;
    unknown.extend(overlay::unseen(spec, &cx.cluster_name(), is_written)?);
    let images = images.0.into_iter().map(|(reference, (uses, required, always_pulled))| Image {
        reference,
        uses: uses.into_iter().collect(),
        required,
        always_pulled,
    });
    Ok(Needed { images: images.collect(), files: files(spec).await?, unknown })
}

/// Images of the containers of an object, each with whether it is asked for at every start.
fn pulled(object: &Value) -> Vec<(String, bool)> {
    let always = |image: &str| {
        let containers = prerequisites::containers(object).into_iter();
        let of_it = containers.filter(|container| container["image"] == *image);
        of_it.into_iter().any(|container| match container["imagePullPolicy"].as_str() {
            Some(policy) => policy == "Always",
            None => is_latest(image),
        })
    };
    let images = prerequisites::images(std::slice::from_ref(object)).into_iter();
    images.map(|image| (image.clone(), always(&image))).collect()
}

/// The files that are fetched.
pub async fn files(spec: &Spec) -> Result<Vec<File>> {
    let mut files = Vec::new();
    if spec.provider == ProviderSpec::Kind {
        let wanted = binary::wanted(&binary::FETCHED, std::env::consts::OS, std::env::consts::ARCH)?;
        let optional = matches!(binary::on_path().await, Ok(Some(found)) if found.version >= binary::MINIMUM);
        files.push(File { wanted, use_of_it: "kind", given: None, optional });
    }
    if let ProviderSpec::Vcluster(vcluster) = &spec.provider {
        let (wanted, given) = (chart::wanted(vcluster), vcluster.chart.clone());
        files.push(File { wanted, use_of_it: VCLUSTER, given, optional: false });
    }
    if spec.installs_argocd() {
        let (wanted, given) = (argocd::source::wanted(&spec.argocd), spec.argocd.manifest.clone());
        files.push(File { wanted, use_of_it: ARGOCD, given, optional: false });
    }
    for wanted in spec.prerequisites.iter().filter_map(prerequisites::wanted) {
        files.push(File { wanted, use_of_it: "a prerequisite", given: None, optional: false });
    }
    Ok(files)
}
