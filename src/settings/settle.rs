//! All answers, put together. Pure.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;

use super::provider::provider;
use super::{FileSettings, SourceKind};
use crate::cli::{self, UpArgs};
use crate::error::{Error, Result};
use crate::expiry;
use crate::gitops::ci_secrets;
use crate::names::EnvName;
use crate::spec::{
    ARGOCD_VERSION, ArgoCdAt, ArgoCdSpec, KindSpec, Prerequisite, PresetSpec, SecretsSpec, SharedArgoCd, Source, Spec,
};

/// What is known of the repository before anything is decided.
#[derive(Debug, Clone)]
pub struct Found {
    pub repo: PathBuf,
    pub sample: bool,
    pub head: Option<String>,
    pub vendor: String,
    /// Whether the repository lists secrets where the layout has the list.
    pub lists_secrets: bool,
}

/// All answers, put together.
pub fn settle(
    name: &EnvName,
    args: &UpArgs,
    saved: Option<&Spec>,
    files: &[FileSettings],
    found: Found,
) -> Result<Spec> {
    fn pick<T: Clone>(flag: Option<&T>, saved: Option<&T>, files: impl Iterator<Item = Option<T>>) -> Option<T> {
        flag.or(saved).cloned().or_else(|| files.flatten().next())
    }
    let text = |flag: &Option<String>, saved: Option<&String>, get: fn(&FileSettings) -> Option<String>| {
        pick(flag.as_ref(), saved, files.iter().map(get))
    };
    let switch = |flag: bool, saved: Option<bool>, get: fn(&FileSettings) -> Option<bool>| {
        flag || saved.unwrap_or_else(|| files.iter().find_map(get).unwrap_or(false))
    };
    let base = text(&args.base, saved.map(|s| &s.base), |f| f.base.clone()).or(found.head).ok_or_else(|| {
        Error::usage("the repository has no branch checked out").hint("name the branch to start from: --base main")
    })?;
    if base == name.branch() {
        return Err(Error::usage(format!("the branch {base} is the environment's own and cannot be its base"))
            .hint("name the branch to start from: --base main"));
    }
    let apps = |flag: &[String], saved: Option<&BTreeSet<String>>, get: fn(&FileSettings) -> &Vec<String>| {
        if !flag.is_empty() {
            return flag.iter().cloned().collect();
        }
        saved.cloned().unwrap_or_else(|| files.iter().flat_map(get).cloned().collect::<BTreeSet<String>>())
    };
    let (mut skip, mut only) =
        (apps(&args.skip, saved.map(|s| &s.skip), |f| &f.skip), apps(&args.only, saved.map(|s| &s.only), |f| &f.only));
    // One of the two: a flag of this run puts aside what the other was before.
    match (args.skip.is_empty(), args.only.is_empty()) {
        (false, true) => only.clear(),
        (true, false) => skip.clear(),
        _ => {}
    }
    let mut labels =
        saved.map(|s| s.labels.clone()).unwrap_or_else(|| files.iter().rev().flat_map(|f| f.labels.clone()).collect());
    labels.extend(args.labels.iter().cloned());

    let saved_argocd = saved.map(|s| &s.argocd);
    let manifest = pick(
        args.argocd_manifest.as_ref().map(std::path::absolute).transpose()?.as_ref(),
        saved_argocd.and_then(|s| s.manifest.as_ref()),
        files.iter().map(|f| f.argocd.manifest.clone()),
    );
    let version = text(&args.argocd_version, saved_argocd.map(|s| &s.version), |f| f.argocd.version.clone());
    let version = version.unwrap_or_else(|| ARGOCD_VERSION.to_owned());
    if semver::Version::parse(version.trim_start_matches('v')).is_err() || !version.starts_with('v') {
        return Err(Error::usage(format!("\"{version}\" is no version of Argo CD"))
            .hint(format!("versions are written like {ARGOCD_VERSION}: --argocd-version {ARGOCD_VERSION}")));
    }
    let at = argocd_at(args, saved, files)?;
    let source = source(args, saved, files, matches!(at, ArgoCdAt::Shared(_)))?;
    Ok(Spec {
        name: name.clone(),
        repo: found.repo,
        sample: found.sample,
        base,
        base_environment: text(&args.base_environment, saved.map(|s| &s.base_environment), |f| {
            f.base_environment.clone()
        })
        .unwrap_or_else(|| "dev".into()),
        domain: text(&args.domain, saved.map(|s| &s.domain), |f| f.domain.clone())
            .unwrap_or_else(|| format!("{name}.k8tre.internal")),
        vendor: text(&args.vendor, saved.map(|s| &s.vendor), |f| f.vendor.clone()).unwrap_or(found.vendor),
        labels,
        skip,
        only,
        with: apps(&args.with, saved.map(|s| &s.with), |f| &f.with),
        provider: provider(name, args, saved, files)?,
        kind: KindSpec {
            node_image: text(&args.node_image, saved.and_then(|s| s.kind.node_image.as_ref()), |f| {
                f.node_image.clone()
            }),
            config: text(&args.kind_config, saved.map(|s| &s.kind.config), |f| f.kind_config.clone())
                .unwrap_or_else(|| "single".into()),
        },
        argocd: ArgoCdSpec {
            at,
            version,
            manifest,
            anonymous: args.anonymous || saved_argocd.is_some_and(|s| s.anonymous),
            dex: switch(args.with_dex, saved_argocd.map(|s| s.dex), |f| f.argocd.dex),
            notifications: switch(args.with_notifications, saved_argocd.map(|s| s.notifications), |f| {
                f.argocd.notifications
            }),
        },
        // Only files set it, so the files decide each time.
        preset: files
            .iter()
            .map(|f| &f.preset)
            .find(|preset| **preset != PresetSpec::default())
            .or(saved.map(|s| &s.preset))
            .cloned()
            .unwrap_or_default(),
        source,
        secrets: secrets(files, found.lists_secrets),
        prerequisites: prerequisites(files),
        network: saved.map(|s| s.network.clone()).unwrap_or_default(),
        holds: saved.map(|s| s.holds.clone()).unwrap_or_default(),
        uses: saved.map(|s| s.uses.clone()).unwrap_or_default(),
        expires: expires(args, saved, files, Timestamp::now())?,
        merge_kubeconfig: switch(args.merge_kubeconfig, saved.map(|s| s.merge_kubeconfig), |f| f.merge_kubeconfig),
    })
}

/// The spec of an environment of which only the name is known.
pub fn of_name(name: &EnvName) -> Result<Spec> {
    let found = Found {
        repo: PathBuf::new(),
        sample: false,
        head: Some("main".into()),
        vendor: String::new(),
        lists_secrets: false,
    };
    settle(name, &UpArgs::default(), None, &[], found)
}

/// A flag counts from now on; what a file says is for environments that are made.
fn expires(args: &UpArgs, saved: Option<&Spec>, files: &[FileSettings], now: Timestamp) -> Result<Option<Timestamp>> {
    if let (None, Some(saved)) = (args.ttl, saved) {
        return Ok(saved.expires);
    }
    let file = files.iter().find_map(|file| file.ttl.as_deref());
    let ttl = match (args.ttl, file) {
        (None, Some(text)) => Some(cli::life(text).map_err(|why| Error::usage(format!("ttl \"{text}\": {why}")))?),
        (given, _) => given,
    };
    Ok(ttl.map(|ttl| expiry::after(now, ttl)))
}

/// How long the token of a shared Argo CD is valid if nobody says.
const TOKEN_TTL: Duration = Duration::from_secs(24 * 3600);

/// The Argo CD, as it is given: the file of the context, the namespace and the address are found out afterwards.
fn argocd_at(args: &UpArgs, saved: Option<&Spec>, files: &[FileSettings]) -> Result<ArgoCdAt> {
    let flags = &args.shared;
    let given = flags.argocd.clone().or_else(|| files.iter().find_map(|file| file.argocd.shared.clone()));
    let recorded = match (saved.map(|saved| &saved.argocd.at), given) {
        (Some(ArgoCdAt::Shared(shared)), _) => shared.clone(),
        (Some(ArgoCdAt::CoLocated), _) | (None, None) => {
            let given = [
                ("--server", flags.server.is_some()),
                ("--token-ttl", flags.token_ttl.is_some()),
                ("--repo-credentials", flags.repo_credentials.is_some()),
                ("--namespaced", !flags.namespaced.is_empty()),
                ("--argocd-may-escalate", flags.argocd_may_escalate.is_some()),
            ];
            // Variables and files may say so for other environments.
            return match given.into_iter().find(|(_, given)| *given).filter(|_| saved.is_none()) {
                Some((flag, _)) => Err(Error::usage(format!("{flag} is for an Argo CD that others use too"))
                    .hint("name it: --argocd CONTEXT[/NAMESPACE]")),
                None => Ok(ArgoCdAt::CoLocated),
            };
        }
        (None, Some(context)) => SharedArgoCd {
            context,
            namespace: String::new(),
            kubeconfig: PathBuf::new(),
            server: files.iter().find_map(|file| file.argocd.server.clone()).unwrap_or_default(),
            token_ttl: match files.iter().find_map(|file| file.argocd.token_ttl.clone()) {
                Some(text) => cli::token_ttl(&text)
                    .map_err(|why| Error::usage(format!("argocd.token-ttl \"{text}\": {why}")))?
                    .as_secs(),
                None => TOKEN_TTL.as_secs(),
            },
            repo_credentials: false,
            may_escalate: files.iter().find_map(|file| file.argocd.may_escalate).unwrap_or_default(),
            namespaces: files
                .iter()
                .map(|file| &file.argocd.namespaces)
                .find(|all| !all.is_empty())
                .cloned()
                .unwrap_or_default(),
        },
    };
    let server = flags.server.clone().unwrap_or(recorded.server);
    let token_ttl = flags.token_ttl.map_or(recorded.token_ttl, |ttl| ttl.as_secs());
    let repo_credentials = recorded.repo_credentials || flags.repo_credentials.is_some();
    let namespaces = match flags.namespaced.as_slice() {
        [] => recorded.namespaces,
        [all] if all == "*" => BTreeSet::new(),
        given => given.iter().cloned().collect(),
    };
    let may_escalate = flags.argocd_may_escalate.unwrap_or(recorded.may_escalate);
    Ok(ArgoCdAt::Shared(SharedArgoCd { server, token_ttl, repo_credentials, namespaces, may_escalate, ..recorded }))
}

fn source(args: &UpArgs, saved: Option<&Spec>, files: &[FileSettings], shared: bool) -> Result<Source> {
    let saved = saved.map(|saved| &saved.source);
    let kind = args.source.or(match saved {
        Some(Source::Cluster) => Some(SourceKind::Cluster),
        Some(Source::Remote { .. }) => Some(SourceKind::Remote),
        None => files.iter().find_map(|file| file.source),
    });
    // A choice of a file's is for environments that have the choice.
    let kind = if shared && args.source.is_none() { Some(SourceKind::Remote) } else { kind };
    if shared && kind == Some(SourceKind::Cluster) {
        return Err(Error::usage(
            "a shared Argo CD cannot read from the git server in the environment's cluster: nothing leads into it from there",
        )
        .hint("push the branch to a remote that it can read: --source remote --remote REMOTE"));
    }
    if kind != Some(SourceKind::Remote) {
        return Ok(Source::Cluster);
    }
    let (saved_remote, saved_url) = match saved {
        Some(Source::Remote { remote, url }) => (Some(remote.clone()), Some(url.clone())),
        _ => (None, None),
    };
    let remote =
        args.remote.clone().or(saved_remote.clone()).or_else(|| files.iter().find_map(|file| file.remote.clone()));
    let remote = remote.unwrap_or_else(|| "origin".into());
    // An address that was settled for one remote says nothing of another.
    let saved_url = saved_url.filter(|_| saved_remote.as_ref() == Some(&remote));
    let url = args.repo_url.clone().or(saved_url).or_else(|| files.iter().find_map(|file| file.repo_url.clone()));
    Ok(Source::Remote { remote, url: url.unwrap_or_default() })
}

/// Only files and the repository decide, so they decide each time.
fn secrets(files: &[FileSettings], listed: bool) -> Option<SecretsSpec> {
    if files.iter().find_map(|file| file.secrets.enabled) == Some(false) {
        return None;
    }
    let named = files.iter().find_map(|file| file.secrets.file.clone());
    let file = named.or_else(|| listed.then(|| ci_secrets::FILE.to_owned()))?;
    Some(SecretsSpec { file, mode: files.iter().find_map(|file| file.secrets.mode).unwrap_or_default() })
}

/// The repository's come before the user's own.
fn prerequisites(files: &[FileSettings]) -> Vec<Prerequisite> {
    files.iter().flat_map(|file| file.prerequisites.clone()).collect()
}
