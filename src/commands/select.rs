//! Which environment a command means, and what is recorded of it.

use crate::cli::NameArgs;
use crate::commands::App;
use crate::error::{Error, Result};
use crate::journal::{self, Journal};
use crate::names::{EnvName, slug};
use crate::ports::git::Checkout;
use crate::ports::machine;
use crate::text::nearest;

/// The environment named, or the only one there is.
pub fn existing_name(app: &App, args: &NameArgs) -> Result<EnvName> {
    if let Some(name) = args.get() {
        return Ok(name.clone());
    }
    let names = journal::names(&app.dirs)?;
    match names.as_slice() {
        [] => Err(Error::not_found("there is no environment").hint("make one: k8tre dev up --sample")),
        [only] => Ok(only.clone()),
        several => Err(several_environments(several)),
    }
}

/// The environment named, the only one there is, or a new one named after the developer.
pub async fn name_for_up(app: &App, args: &NameArgs, checkout: Option<&Checkout>) -> Result<EnvName> {
    if let Some(name) = args.get() {
        return Ok(name.clone());
    }
    let proposed = proposed(checkout).await;
    match journal::names(&app.dirs)?.as_slice() {
        [] => proposed.ok_or_else(|| {
            Error::usage("there is nobody to name the environment after").hint("name it: k8tre dev up NAME")
        }),
        [only] => Ok(only.clone()),
        several => proposed.filter(|name| several.contains(name)).ok_or_else(|| several_environments(several)),
    }
}

/// A name for the developer's environment: after their address, else after their account.
pub async fn proposed(checkout: Option<&Checkout>) -> Option<EnvName> {
    let known = match checkout {
        Some(checkout) => checkout.developer_slug().await.ok(),
        None => None,
    };
    match known {
        Some(slug) => Some(slug),
        None => machine::account().await.map(|user| slug(&user)),
    }
}

fn several_environments(names: &[EnvName]) -> Error {
    let names: Vec<&str> = names.iter().map(EnvName::as_str).collect();
    Error::usage(format!("there are several environments: {}", names.join(", ")))
        .hint(format!("name one: {}", names[0]))
}

/// What is recorded of an environment that has to exist.
pub fn journal_of(app: &App, name: &EnvName) -> Result<Journal> {
    journal::read(&app.dirs, name)?.ok_or_else(|| unknown(app, name))
}

/// The error for an environment that is not there.
pub fn unknown(app: &App, name: &EnvName) -> Error {
    let names = journal::names(&app.dirs).unwrap_or_default();
    let error = Error::not_found(format!("there is no environment {name}"));
    match nearest(name.as_str(), names.iter().map(EnvName::as_str)) {
        Some(there) => error.hint(format!("did you mean {there}?")),
        None => error,
    }
    .hint("k8tre dev list")
}
