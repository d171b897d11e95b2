//! `k8tre dev kubeconfig`: the environment's own file, or its context in the user's.

use crate::cli::KubeconfigArgs;
use crate::commands::{App, select};
use crate::error::{Error, Result};
use crate::ports::kubeconfig;
use crate::providers;

pub async fn run(app: &App, args: &KubeconfigArgs) -> Result<u8> {
    let name = select::existing_name(app, &args.name)?;
    let journal = select::journal_of(app, &name)?;
    let path = app.dirs.kubeconfig(name.as_str());
    let context = providers::of(&journal.spec).context(&name);
    if args.unmerge {
        let users = kubeconfig::users()?;
        kubeconfig::unmerge(&context, &users).await?;
        app.ui.say(&format!("{} no longer names {context}", users.display()));
        return Ok(0);
    }
    if !path.exists() {
        return Err(Error::not_found(format!("the environment {name} has no kubeconfig yet"))
            .hint(format!("k8tre dev up {name}")));
    }
    if args.merge
        && let Some(existing) = journal.spec.provider.existing()
    {
        return Err(Error::usage(format!("your kubeconfig has the context {} for it already", existing.context)));
    }
    if args.merge {
        let users = kubeconfig::users()?;
        kubeconfig::merge(&path, &users).await?;
        app.ui.say(&format!("{} has the context {context} too; your current context is as it was", users.display()));
        return Ok(0);
    }
    match app.ui.is_json() {
        true => app.ui.json(&serde_json::json!({"kubeconfig": path, "context": context}))?,
        false => app.ui.data(&path.display().to_string()),
    }
    Ok(0)
}
