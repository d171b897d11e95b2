//! `docs/reference.md`: every command as `--help` has it, the exit codes, the codes of causes. It is the code that says so.

use std::path::Path;

use clap::{Command, CommandFactory};

use super::Cli;
use crate::causes;
use crate::error::Kind;

const HEAD: &str = "# Reference

Made from the code; `K8TRE_WRITE_DOCS=1 cargo test --lib reference` writes it anew, and a test compares the two. What the settings
mean is in [settings.md](settings.md), what `-o json` prints in [json.md](json.md).

## Exit codes

| code | meaning |
|---|---|
| 0 | fine |
";

fn meaning(kind: Kind) -> &'static str {
    match kind {
        Kind::Failed => "failed",
        Kind::Usage => "wrong usage",
        Kind::Unhealthy => "there, but not healthy",
        Kind::NotFound => "no such environment",
        Kind::Preflight => "this machine cannot do it; each finding comes with its fix",
        Kind::Interrupted => "interrupted",
    }
}

/// Variables are named, their values in whoever's shell it is are not.
fn plain(command: Command) -> Command {
    command.mut_args(|arg| arg.hide_env_values(true)).mut_subcommands(plain)
}

fn section(command: &mut Command, path: &str, out: &mut String) {
    // The usage line takes the whole path from here.
    let mut shown = command.clone().bin_name(path).disable_help_subcommand(true);
    out.push_str(&format!("\n### {path}\n\n```text\n{}\n```\n", shown.render_long_help().to_string().trim_end()));
    for inner in command.get_subcommands_mut().filter(|inner| !inner.is_hide_set()) {
        let path = format!("{path} {}", inner.get_name());
        section(inner, &path, out);
    }
}

fn reference() -> String {
    let mut out = HEAD.to_owned();
    for kind in [Kind::Failed, Kind::Usage, Kind::Unhealthy, Kind::NotFound, Kind::Preflight, Kind::Interrupted] {
        out.push_str(&format!("| {} | {} |\n", kind.exit_code(), meaning(kind)));
    }
    out.push_str(
        "\nWith `dev up --ephemeral -- COMMAND` and `dev shell -- COMMAND` the code is the command's.\n\n## Commands\n",
    );
    let mut cli = plain(Cli::command()).term_width(100);
    cli.build();
    section(&mut cli, "k8tre", &mut out);
    out.push_str("\n## Causes\n\nThe codes in `cause.code`, each with what it means and how to mend it:\n\n");
    for code in causes::codes() {
        out.push_str(&format!("- [{code}](troubleshooting.md#{code})\n"));
    }
    out
}

#[test]
fn the_reference_in_the_documentation_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference.md");
    let reference = reference();
    if crate::ports::environment::var("K8TRE_WRITE_DOCS").is_some() {
        std::fs::write(&path, &reference).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == reference, "write it anew: K8TRE_WRITE_DOCS=1 cargo test --lib reference");
}
