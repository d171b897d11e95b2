//! Completion scripts and manual pages, made from the command line's own definition.

use std::path::Path;

use clap::CommandFactory;

use crate::cli::Cli;
use crate::error::{Result, ResultExt};
use crate::ui::Ui;

pub fn completions(ui: &Ui, shell: clap_complete::Shell) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "k8tre", &mut script);
    ui.data(&String::from_utf8_lossy(&script));
    Ok(0)
}

pub fn man(ui: &Ui, folder: &Path) -> Result<u8> {
    clap_mangen::generate_to(Cli::command(), folder)
        .with_context(|| format!("cannot write manual pages to {}", folder.display()))?;
    ui.say(&format!("manual pages are in {}: man -l {}/k8tre.1", folder.display(), folder.display()));
    Ok(0)
}
