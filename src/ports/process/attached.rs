//! A program that has the user's terminal, or the caller's pipes, while we wait for its end.

use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio_util::sync::CancellationToken;

use super::Program;
use crate::error::Result;

/// What a program that was asked to end gets for it. CIs give us little more before they kill.
const GRACE: Duration = Duration::from_secs(4);

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attached {
    /// By itself, with this exit code; as in a shell, 128 and the signal if one ended it.
    Ended(u8),
    /// It was stopped: we were asked to end.
    Interrupted,
    /// It was stopped: it took longer than it may.
    Late,
}

impl Program {
    /// Runs it on our input and output; with `aside`, its output goes to stderr, since stdout is for a document.
    pub async fn attached(self, cancel: &CancellationToken, aside: bool) -> Result<Attached> {
        let mut command = self.command();
        command.stdin(Stdio::inherit()).stderr(Stdio::inherit());
        match aside {
            true => command.stdout(std::io::stderr()),
            false => command.stdout(Stdio::inherit()),
        };
        // On a terminal it has to stay in our group to be able to read there; Ctrl-C reaches it by itself then.
        let own_group = !std::io::stdin().is_terminal();
        if own_group {
            command.process_group(0);
        }
        tracing::debug!(command = self.shown(), "run");
        let mut child = command.spawn().map_err(|e| self.not_started(e))?;
        let mut group = Group { id: child.id().and_then(|id| Pid::from_raw(id.cast_signed())), own_group };
        let stopped = tokio::select! {
            status = child.wait() => {
                let status = status?;
                // What it left running in the background would outlive the environment.
                group.signal(Signal::KILL);
                group.id = None;
                let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
                return Ok(Attached::Ended(u8::try_from(code).unwrap_or(1)));
            }
            () = cancel.cancelled() => Attached::Interrupted,
            () = tokio::time::sleep(self.limit) => Attached::Late,
        };
        group.signal(Signal::TERM);
        // Killed on drop if it takes no notice.
        let _ = tokio::time::timeout(GRACE, child.wait()).await;
        Ok(stopped)
    }
}

/// A program, or the whole group that it leads. Whatever ends our waiting ends these, too.
struct Group {
    id: Option<Pid>,
    own_group: bool,
}

impl Group {
    fn signal(&self, signal: Signal) {
        // One that is gone already is what was wanted.
        let _ = match self.id {
            Some(leader) if self.own_group => kill_process_group(leader, signal),
            // Without a group of its own there is nothing left to be signalled once it has ended.
            Some(program) if signal != Signal::KILL => kill_process(program, signal),
            _ => Ok(()),
        };
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        Program::new("sh").args(["-c", script])
    }

    #[tokio::test]
    async fn its_exit_code_is_told_as_a_shell_tells_it() {
        let never = CancellationToken::new();
        assert_eq!(shell("exit 7").attached(&never, false).await.unwrap(), Attached::Ended(7));
        assert_eq!(shell("kill -TERM $$").attached(&never, false).await.unwrap(), Attached::Ended(128 + 15));
        let error = Program::new("/there/is/none").attached(&never, false).await.unwrap_err();
        assert!(error.to_string().contains("was not found"), "{error}");
    }

    #[tokio::test]
    async fn it_is_stopped_when_its_time_is_over_and_when_we_are_asked_to_end() {
        let cancel = CancellationToken::new();
        let late = shell("sleep 60").limit(Duration::from_millis(50)).attached(&cancel, false).await.unwrap();
        assert_eq!(late, Attached::Late);
        cancel.cancel();
        assert_eq!(shell("sleep 60").attached(&cancel, false).await.unwrap(), Attached::Interrupted);
    }
}
