//! Parse, run, exit code.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = k8tre::cli::Cli::parse();
    ExitCode::from(k8tre::commands::run(cli))
}
