//! Completion scripts and manual pages, made from the command line's own definition.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::env::Shells;

use crate::cli::Cli;
use crate::completion::VARIABLE;
use crate::error::{Error, Result, ResultExt};
use crate::ui::Ui;

/// The script asks the program at each press of the key, so that it knows names that are made later.
pub fn completions(ui: &Ui, shell: clap_complete::Shell) -> Result<u8> {
    let shells = Shells::builtins();
    let name = shell.to_string();
    let completer =
        shells.completer(&name).ok_or_else(|| Error::failed(format!("there is no completion for {name}")))?;
    let mut script = Vec::new();
    // By name, not by path: an update may put the program elsewhere.
    completer.write_registration(VARIABLE, "k8tre", "k8tre", "k8tre", &mut script)?;
    ui.data(&String::from_utf8_lossy(&script));
    Ok(0)
}

pub fn man(ui: &Ui, folder: &Path) -> Result<u8> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    clap_mangen::generate_to(Cli::command(), folder)
        .with_context(|| format!("cannot write manual pages to {}", folder.display()))?;
    ui.say(&format!("manual pages are in {}: man -l {}/k8tre.1", folder.display(), folder.display()));
    Ok(0)
}
