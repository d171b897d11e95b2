//! Parse, run, exit code.

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use k8tre::cli::Cli;

fn main() -> ExitCode {
    // A shell that asks what could follow is answered, and that is all.
    clap_complete::CompleteEnv::with_factory(Cli::command).var(k8tre::completion::VARIABLE).complete();
    ExitCode::from(k8tre::commands::run(Cli::parse()))
}
