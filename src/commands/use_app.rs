//! `k8tre dev use`: one Application's files from another branch, and the rest from the base.

use serde_json::json;

use crate::cli::UseArgs;
use crate::commands::change::{Change, refresh_all};
use crate::commands::{App, select};
use crate::context::Context;
use crate::engine::StepId;
use crate::error::{Error, Result, ResultExt};
use crate::gitops::url;
use crate::ports::git::{Checkout, CommitId};
use crate::report::SCHEMA;
use crate::spec::{Spec, Use};
use crate::steps::uses::{self, Folder};
use crate::steps::{APPLICATIONS, BRANCH, PUBLISH};
use crate::text::{nearest, one_line};

const STEPS: &[StepId] = &[BRANCH, PUBLISH];
/// Files that are named at once.
const NAMED: usize = 10;

pub async fn run(app: &App, args: &UseArgs) -> Result<u8> {
    let change = Change::begin(app, select::existing_name(app, &args.name.args())?, "dev use")?;
    let mut cx = change.context(args.timeout);
    let argocd = change.argocd(&cx).await?;
    let (full, folder) = chosen(&cx, &args.app).await?;
    change.check_branch(&cx).await?;
    let checkout = cx.checkout().await?;
    let tip = checkout.tip(&cx.spec.name.branch())?;
    let tip = tip.ok_or_else(|| Error::failed("the branch is gone").hint(format!("k8tre dev up {}", change.name)))?;
    let origin = uses::origin(&cx, &checkout, tip)?;
    let wanted = change.unless_cancelled(wanted(&cx, args, &checkout, &folder, (tip, origin))).await?;
    check(&cx, &checkout, &wanted, &folder, (tip, origin))?;
    check_own(&cx, args, &checkout, &full, &wanted, &folder, (tip, origin))?;

    // First what is meant, then the commit: whatever happens in between, the next `use` or `up` completes it.
    change.record(|spec| drop(spec.uses.insert(full.clone(), wanted.clone())))?;
    cx = change.context(args.timeout);
    cx.options.only = Some(full.clone());
    let name = &change.name;
    let walked = async {
        change.walk(&cx, STEPS).await?;
        change.unless_cancelled(refresh_all(&argocd, name)).await?;
        change.walk(&cx, &[APPLICATIONS]).await
    };
    walked.await.hint(format!("when that is mended, go on: k8tre dev up {name}"))?;
    if wanted.back {
        change.record(|spec| drop(spec.uses.remove(&full)))?;
    }

    if app.ui.is_json() {
        let used = (!wanted.back).then(|| json!({"repo": args.repo, "branch": wanted.branch, "commit": wanted.commit}));
        app.ui.json(&json!({
            "schema": SCHEMA, "environment": name, "application": full, "folder": folder.folder, "uses": used,
            "commit": cx.facts().published,
        }))?;
        return Ok(0);
    }
    match wanted.back {
        true => app.ui.say(&format!("{} {full} is as in {} again, and healthy", app.ui.tick(), wanted.branch)),
        false => {
            app.ui.say(&format!("{} {full} comes {}, and is healthy", app.ui.tick(), uses::source(&wanted)));
            app.ui.say(&format!("  back to {}: k8tre dev use {} --reset --name {name}", cx.spec.base, args.app));
        }
    }
    Ok(0)
}

/// Says of which branches there is more by now.
pub fn say_moved(app: &App, spec: &Spec, checkout: &Checkout) -> Result<()> {
    for (full, used) in spec.uses.iter().filter(|(_, used)| !used.back && used.repo.is_none()) {
        // A branch that is gone leaves what was taken from it.
        let Ok(now) = checkout.resolve(&used.branch) else { continue };
        if now.to_string() != used.commit {
            app.ui.warn(&format!(
                "{full} comes {}, which is at {} now; to take that: k8tre dev use {full} --branch {} --name {}",
                uses::source(used),
                now.short(),
                used.branch,
                spec.name
            ));
        }
    }
    Ok(())
}

/// The Application that a word names, and the folder that has its files.
async fn chosen(cx: &Context, word: &str) -> Result<(String, Folder)> {
    let all = &cx.overlay().await?.prediction.applications;
    let name = &cx.spec.name;
    let full = [word.to_owned(), format!("{word}-{name}")];
    let Some(found) = full.iter().find_map(|full| all.iter().find(|one| *one.name == **full)) else {
        let error = Error::usage(format!("{name} has no Application {}", one_line(word, 60)));
        let suffix = format!("-{name}");
        return Err(match nearest(word, all.iter().map(|one| one.name.trim_end_matches(&suffix))) {
            Some(nearest) => error.hint(format!("did you mean {nearest}{suffix}?")),
            _ => {
                let names: Vec<&str> = all.iter().map(|one| &*one.name).collect();
                error.hint(format!("there are: {}", one_line(&names.join(", "), 300)))
            }
        });
    };
    let ours = url::normalized(&found.repo_url) == url::normalized(&cx.spec.source.url());
    match found.path.rsplit_once("/envs/") {
        Some((folder, _)) if ours => Ok((found.name.to_string(), Folder::new(cx, folder))),
        _ => Err(Error::usage(format!(
            "the files of {} are not in a folder of this repository with env folders, but at {} of {}",
            found.name, found.path, found.repo_url
        ))
        .hint("change what it is made from on your branch, then: k8tre dev up")),
    }
}

/// What is asked for, at the commit that it has now.
async fn wanted(
    cx: &Context,
    args: &UseArgs,
    checkout: &Checkout,
    folder: &Folder,
    (tip, origin): (CommitId, CommitId),
) -> Result<Use> {
    let (repo, branch, commit) = match (&args.repo, &args.branch) {
        (Some(repo), branch) => {
            // git runs in the repository; a folder is meant from here.
            let repo = match std::path::Path::new(repo) {
                path if path.exists() => std::path::absolute(path)?.display().to_string(),
                _ => repo.clone(),
            };
            let (branch, commit) = checkout.fetch_from(&repo, branch.as_deref()).await?;
            (Some(repo), branch, commit)
        }
        (None, Some(branch)) => (None, branch.clone(), checkout.resolve(branch)?),
        (None, None) => (None, cx.spec.base.clone(), origin),
    };
    Ok(Use {
        folder: folder.folder.clone(),
        repo,
        branch,
        commit: commit.to_string(),
        over: tip.to_string(),
        back: args.reset,
    })
}

/// Refuses what could not be deployed.
fn check(
    cx: &Context,
    checkout: &Checkout,
    wanted: &Use,
    folder: &Folder,
    (tip, _): (CommitId, CommitId),
) -> Result<()> {
    let commit = wanted.commit.parse()?;
    if wanted.repo.is_none() && wanted.branch == cx.spec.name.branch() {
        return Err(Error::usage(format!("{} is the environment's own branch", wanted.branch))
            .hint("name the branch that has the other files: --branch BRANCH"));
    }
    let env = format!("{}/envs/{}", folder.folder, cx.spec.base_environment);
    for needed in [&folder.folder, &env] {
        if checkout.has_folder(tip, needed)? && !checkout.has_folder(commit, needed)? {
            return Err(Error::usage(format!("{} has no folder {needed}", wanted.branch))
                .hint("name a branch that has this Application: --branch BRANCH"));
        }
    }
    Ok(())
}

/// Nobody's work is lost: what the developer committed into the folder has to be somewhere else, too.
fn check_own(
    cx: &Context,
    args: &UseArgs,
    checkout: &Checkout,
    full: &str,
    wanted: &Use,
    folder: &Folder,
    (tip, origin): (CommitId, CommitId),
) -> Result<()> {
    let mut known: Vec<CommitId> = vec![wanted.commit.parse()?, origin];
    let mut settled = vec![origin];
    if let Some(before) = cx.spec.uses.get(full) {
        known.push(before.commit.parse()?);
        settled.push(before.over.parse()?);
    }
    for commit in known {
        if checkout.has(commit)? && checkout.part_differences(commit, tip, folder.part())?.is_empty() {
            return Ok(());
        }
    }
    let own = checkout.own_changes(tip, &settled, folder.part())?;
    if own.is_empty() {
        return Ok(());
    }
    let (branch, kept) = (cx.spec.name.branch(), format!("{}-work", args.app));
    let mut files: Vec<String> = own.iter().take(NAMED).map(|file| one_line(file, 200)).collect();
    files.extend((own.len() > NAMED).then(|| format!("and {} more", own.len() - NAMED)));
    Err(Error::preflight(format!("commits of your own on {branch} changed files in {}", folder.folder))
        .detail(files.join("\n"))
        .hint(format!(
            "to keep them on a branch of their own: git -C {} branch {kept} {branch}",
            cx.spec.repo.display()
        ))
        .hint(format!("then name that branch once: k8tre dev use {} --branch {kept} --name {}", args.app, cx.spec.name))
        .hint("after that, try this again"))
}
