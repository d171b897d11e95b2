//! The questions, in order, and what they add up to: the words of a `dev up`.

use std::time::Instant;

use super::apps;
use super::phases::Phases;
use super::place::{self, Place};
use crate::cli::{OnboardArgs, UpArgs};
use crate::commands::App;
use crate::error::Result;
use crate::names::EnvName;
use crate::ports::kubeconfig;
use crate::settings::write::{Set, Setting};
use crate::settings::{self, FileSettings, ProviderKind};
use crate::ui::ask::Asking;

/// What was answered, and what of it a settings file could keep.
pub struct Answers {
    pub up: UpArgs,
    pub sets: Vec<Set>,
    /// The repository, if it is one that can have settings of its own.
    pub repo: Option<std::path::PathBuf>,
}

impl Answers {
    pub fn of(up: UpArgs) -> Answers {
        Answers { up, sets: Vec::new(), repo: None }
    }

    fn set(&mut self, key: &'static str, value: &str) {
        self.sets.push(Set { key, value: Setting::Text(value.to_owned()) });
    }
}

impl UpArgs {
    /// The same for this environment.
    pub fn named(mut self, name: &EnvName) -> UpArgs {
        (self.name.environment, self.name.name) = (Some(name.clone()), None);
        self
    }
}

pub async fn ask(
    app: &App,
    args: &OnboardArgs,
    asking: &Asking<'_>,
    name: &EnvName,
    phases: &mut Phases,
) -> Result<Answers> {
    let begun = Instant::now();
    let place = place::ask(app, args, asking).await?;
    if matches!(place, Place::Checkout(_)) && args.up.repo.is_none() {
        phases.add("repository", begun.elapsed());
    }
    let mut answers = Answers::of(args.up.clone().named(name));
    match place {
        Place::Checkout(root) => {
            answers.up.repo = Some(root.clone());
            answers.repo = Some(root);
        }
        Place::Sample(folder) => answers.up.sample = Some(folder),
    }
    // Where a file is named, it is meant for all answers; otherwise a flag is for this run.
    if args.settings.is_some() {
        given(&mut answers);
    }
    let user = FileSettings::read(&app.dirs.config.join("config.toml"))?;
    let theirs = match &answers.repo {
        Some(root) => FileSettings::read(&root.join(settings::FILE))?,
        None => FileSettings::default(),
    };
    let files = [theirs, user];
    // A kubeconfig that cannot be read has no contexts to offer; doctor says what is wrong with it.
    let contexts = kubeconfig::contexts().unwrap_or_default();
    cluster(&mut answers, asking, &files, &contexts)?;
    argocd(&mut answers, asking, &files, &contexts)?;
    domain(&mut answers, asking, &files, name)?;
    apps::ask(app, asking, &mut answers).await?;
    Ok(answers)
}

/// What flags and variables have answered already.
fn given(answers: &mut Answers) {
    let up = answers.up.clone();
    let word = |kind| PROVIDERS.iter().find(|(one, ..)| *one == kind).map(|(_, word, _)| (*word).to_owned());
    for (key, value) in [
        ("provider", up.provider.and_then(word)),
        ("context", up.context),
        ("vcluster.host-context", up.vcluster.host_context),
        ("argocd.shared", up.shared.argocd),
        ("domain", up.domain),
    ] {
        if let Some(value) = value {
            answers.set(key, &value);
        }
    }
    for (key, all) in [("skip", up.skip), ("only", up.only)] {
        if !all.is_empty() {
            answers.sets.push(Set { key, value: Setting::List(all) });
        }
    }
}

const PROVIDERS: [(ProviderKind, &str, &str); 3] = [
    (ProviderKind::Kind, "kind", "kind: a cluster on this machine, in Docker"),
    (ProviderKind::Vcluster, "vcluster", "vCluster: inside a cluster that others use too"),
    (ProviderKind::Existing, "existing", "a cluster of your own that is there already"),
];

/// Without another cluster there is nothing to choose.
fn cluster(answers: &mut Answers, asking: &Asking<'_>, files: &[FileSettings], contexts: &[String]) -> Result<()> {
    let kept = files.iter().find_map(|file| file.provider);
    if answers.up.provider.is_none() && !contexts.is_empty() {
        let words: Vec<String> = PROVIDERS.iter().map(|(_, _, words)| (*words).to_owned()).collect();
        let default = PROVIDERS.iter().position(|(kind, ..)| Some(*kind) == kept).unwrap_or_default();
        let (kind, word, _) = PROVIDERS[asking.one("Where shall its cluster be?", &words, default)?];
        answers.up.provider = Some(kind);
        if kind != kept.unwrap_or(ProviderKind::Kind) {
            answers.set("provider", word);
        }
    }
    let wanted = match answers.up.provider.or(kept) {
        Some(ProviderKind::Existing) if answers.up.context.is_none() => "Which cluster?",
        Some(ProviderKind::Vcluster) if answers.up.vcluster.host_context.is_none() => "In which cluster?",
        _ => return Ok(()),
    };
    let file = files.iter().find_map(|file| file.context.clone().or_else(|| file.vcluster.host_context.clone()));
    let default = contexts.iter().position(|context| Some(context) == file.as_ref());
    // With `--yes`, nobody's cluster is taken because it comes first; `up` says what is missing.
    if contexts.is_empty() || (default.is_none() && !asking.is_answered()) {
        return Ok(());
    }
    let context = contexts[asking.one(wanted, contexts, default.unwrap_or_default())?].clone();
    match answers.up.provider {
        Some(ProviderKind::Existing) => {
            answers.set("context", &context);
            answers.up.context = Some(context);
        }
        _ => {
            answers.set("vcluster.host-context", &context);
            answers.up.vcluster.host_context = Some(context);
        }
    }
    Ok(())
}

fn argocd(answers: &mut Answers, asking: &Asking<'_>, files: &[FileSettings], contexts: &[String]) -> Result<()> {
    if answers.up.shared.argocd.is_some() || contexts.is_empty() {
        return Ok(());
    }
    // A shared one reads from a remote, which the sample does not have.
    if answers.repo.is_none() {
        return Ok(());
    }
    let kept = files.iter().find_map(|file| file.argocd.shared.clone());
    let mut words = vec!["its own, in its cluster".to_owned()];
    words.extend(contexts.iter().map(|context| format!("that of {context}, which others use too")));
    let named = |context: &String| kept.as_ref().is_some_and(|kept| kept.split('/').next() == Some(context.as_str()));
    let default = contexts.iter().position(named).map_or(0, |at| at + 1);
    let chosen = asking.one("Which Argo CD shall deploy it?", &words, default)?;
    if let Some(context) = chosen.checked_sub(1).map(|at| &contexts[at]) {
        // What a file says besides the context, such as a namespace, is kept.
        let whole = kept.filter(|_| chosen == default).unwrap_or_else(|| context.clone());
        answers.set("argocd.shared", &whole);
        answers.up.shared.argocd = Some(whole);
    }
    Ok(())
}

fn domain(answers: &mut Answers, asking: &Asking<'_>, files: &[FileSettings], name: &EnvName) -> Result<()> {
    if answers.up.domain.is_some() {
        return Ok(());
    }
    let kept = files.iter().find_map(|file| file.domain.clone());
    let default = kept.clone().unwrap_or_else(|| format!("{name}.k8tre.internal"));
    let check = |text: &str| {
        let label = |label: &str| {
            !label.is_empty()
                && label.len() < 64
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
        };
        match text.len() < 254 && text.split('.').all(label) {
            true => Ok(()),
            false => Err("a domain has small letters, digits and dashes, and dots between its parts".to_owned()),
        }
    };
    let domain = asking.text("Domain of the TRE", &default, check)?;
    if domain != default {
        answers.set("domain", &domain);
    }
    answers.up.domain = Some(domain);
    Ok(())
}
