//! `k8tre dev shell`: the user's shell, or a command, at work on the environment's cluster.

use crate::cli::ShellArgs;
use crate::commands::{App, select};
use crate::error::{Error, Result};
use crate::ports::environment;
use crate::ports::process::Program;

pub fn run(app: &App, args: &ShellArgs) -> Result<u8> {
    let name = select::existing_name(app, &args.name)?;
    select::journal_of(app, &name)?;
    let kubeconfig = app.dirs.kubeconfig(name.as_str());
    if !kubeconfig.exists() {
        return Err(
            Error::failed(format!("the environment {name} has no kubeconfig yet")).hint(format!("k8tre dev up {name}"))
        );
    }
    let program = match args.command.split_first() {
        Some((program, args)) => Program::new(program).args(args),
        None => {
            app.ui.say(&format!("kubectl, helm and k8tre work on {name} here; leave with exit or Ctrl-D"));
            Program::new(environment::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into()))
        }
    };
    // k8tre becomes the program: signals, terminal and exit code are its own.
    Err(program.env("KUBECONFIG", kubeconfig).env("K8TRE_NAME", name.as_str()).replace())
}
