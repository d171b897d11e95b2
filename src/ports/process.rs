//! Other programs: started with an explicit argument list, bounded in time and output, ended with us.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use crate::error::{Error, Result, ResultExt};

/// A child's output beyond this is read and thrown away, so that no program can exhaust memory.
const OUTPUT_LIMIT: usize = 4 << 20;

/// What git does to a repository by itself takes milliseconds. In the moment between making a lock and noting that it
/// has to be removed, a signal leaves the lock behind, for ever.
const GRACE: Duration = Duration::from_millis(200);

/// One run of a program. Nothing passes through a shell.
#[derive(Debug, Clone)]
pub struct Program {
    program: OsString,
    args: Vec<OsString>,
    envs: Vec<(OsString, Option<OsString>)>,
    folder: Option<PathBuf>,
    stdin: Option<Vec<u8>>,
    limit: Duration,
    own_group: bool,
    gently: bool,
}

/// What a program that ended printed.
#[derive(Debug, Clone)]
pub struct Output {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Output {
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end().to_owned()
    }

    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim_end().to_owned()
    }
}

impl Program {
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Program {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            envs: Vec::new(),
            folder: None,
            stdin: None,
            limit: Duration::from_secs(60),
            own_group: false,
            gently: false,
        }
    }

    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.envs.push((name.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.envs.push((name.as_ref().to_owned(), None));
        self
    }

    pub fn folder(mut self, folder: impl AsRef<Path>) -> Self {
        self.folder = Some(folder.as_ref().to_owned());
        self
    }

    pub fn stdin(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(input.into());
        self
    }

    /// How long the program may run; then it is killed.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Gives it a process group of its own, so that it ends with all that it started when it is
    /// stopped. Not for a program that may ask something on the terminal: it could not read there.
    pub fn own_group(mut self) -> Self {
        self.own_group = true;
        self
    }

    /// For a program that holds locks which only it can remove, as git does: when it is no longer waited
    /// for it may complete what takes a moment, then it is asked to end, and not killed.
    pub fn gently(mut self) -> Self {
        self.gently = true;
        self
    }

    /// The command line as a person would type it.
    pub fn shown(&self) -> String {
        let mut words = vec![self.program.to_string_lossy().into_owned()];
        words.extend(self.args.iter().map(|arg| quoted(&arg.to_string_lossy())));
        words.join(" ")
    }

    /// Runs it and returns what it printed, whatever its exit code.
    pub async fn output(self) -> Result<Output> {
        let shown = self.shown();
        tracing::debug!(command = shown, "run");
        let mut command = self.command();
        let mut child = command.spawn().map_err(|e| self.not_started(e))?;
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let stop = Stop { id: id.filter(|_| self.own_group || self.gently), group: self.own_group };
        let mut stdin = child.stdin.take();
        let (mut out, mut err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        let work = async {
            let feed = async {
                if let (Some(input), Some(mut pipe)) = (&self.stdin, stdin.take()) {
                    // A program that does not read its input is judged by its exit code, not by this.
                    let _ = pipe.write_all(input).await;
                }
            };
            let ((), stdout, stderr, status) = tokio::join!(feed, capped(&mut out), capped(&mut err), child.wait());
            Ok::<_, Error>(Output { code: status?.code(), stdout: stdout?, stderr: stderr? })
        };
        match tokio::time::timeout(self.limit, work).await {
            Ok(output) => {
                stop.ended();
                output.with_context(|| format!("cannot run {shown}"))
            }
            Err(_) => {
                Err(Error::failed(format!("{shown} did not end within {} s and was stopped", self.limit.as_secs())))
            }
        }
    }

    /// Runs it and fails, with its own words, unless it exits with 0.
    pub async fn run(self) -> Result<Output> {
        let shown = self.shown();
        let output = self.output().await?;
        if output.success() {
            return Ok(output);
        }
        let ended = output.code.map_or("was ended by a signal".to_owned(), |code| format!("exited with {code}"));
        let words = if output.stderr.is_empty() { output.text() } else { output.errors() };
        Err(Error::failed(format!("{shown} {ended}")).detail(crate::text::printable(&words)))
    }

    /// Becomes the program, which gets terminal, signals and exit code as they are; returns only if
    /// that cannot be done.
    #[allow(clippy::disallowed_methods)]
    pub fn replace(self) -> Error {
        let mut command = std::process::Command::new(&self.program);
        command.args(&self.args);
        for (name, value) in &self.envs {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        self.not_started(command.exec())
    }

    fn not_started(&self, error: std::io::Error) -> Error {
        match error.kind() {
            std::io::ErrorKind::NotFound => {
                Error::failed(format!("the program {} was not found", self.program.display()))
            }
            _ => Error::from(error).context(format!("cannot start {}", self.shown())),
        }
    }

    #[allow(clippy::disallowed_methods)] // this is the adapter that everybody else goes through
    fn command(&self) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(&self.program);
        command.args(&self.args).kill_on_drop(!self.gently);
        for (name, value) in &self.envs {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command.stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        if self.own_group {
            command.process_group(0);
        }
        command
    }
}

/// What happens to a program that is dropped before it has ended: its whole group is killed, or it is asked
/// to end after a moment.
struct Stop {
    id: Option<Pid>,
    group: bool,
}

impl Stop {
    fn ended(mut self) {
        self.id = None;
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        // One that is gone already is what was wanted.
        let _ = match self.id {
            Some(leader) if self.group => kill_process_group(leader, Signal::KILL),
            Some(program) if !ends_by_itself(program) => kill_process(program, Signal::TERM),
            _ => Ok(()),
        };
    }
}

/// Looks for a moment whether a child ends, and leaves it to be collected.
fn ends_by_itself(child: Pid) -> bool {
    let deadline = Instant::now() + GRACE;
    loop {
        let looked = waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT);
        if !matches!(looked, Ok(None)) {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

async fn capped(stream: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>> {
    let mut kept = Vec::new();
    stream.take(OUTPUT_LIMIT as u64).read_to_end(&mut kept).await?;
    tokio::io::copy(stream, &mut tokio::io::sink()).await?;
    Ok(kept)
}

fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) { arg.to_owned() } else { format!("'{}'", arg.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_failing_program_is_reported_with_its_own_words() {
        let error = Program::new("sh").args(["-c", "echo no space left >&2; exit 7"]).run().await.unwrap_err();
        assert!(error.to_string().contains("exited with 7"), "{error}");
        assert_eq!(error.detail_text(), Some("no space left"));
    }

    #[tokio::test]
    async fn a_program_that_hangs_is_stopped() {
        let error = Program::new("sleep").arg("60").limit(Duration::from_millis(50)).run().await.unwrap_err();
        assert!(error.to_string().contains("did not end"), "{error}");
    }

    #[tokio::test]
    async fn a_program_that_holds_locks_may_remove_them_when_it_is_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("lock");
        let script = "trap 'rm lock; exit 1' TERM; : > lock; while :; do sleep 0.02; done";
        let hangs = Program::new("sh").args(["-c", script]).folder(folder.path()).gently();
        let started = async {
            while !lock.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            _ = hangs.output() => panic!("it does not end by itself"),
            () = started => {}
        }
        for _ in 0..500 {
            if !lock.exists() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it was killed with its lock in place");
    }

    #[tokio::test]
    async fn what_takes_it_a_moment_is_not_interrupted() {
        let folder = tempfile::tempdir().unwrap();
        // As git between the making of a lock and the noting of it.
        let script = "trap 'exit 1' TERM; : > lock; sleep 0.05; rm lock";
        let work = Program::new("sh").args(["-c", script]).folder(folder.path()).gently();
        let lock = folder.path().join("lock");
        let started = async {
            while !lock.exists() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            _ = work.output() => {}
            () = started => {}
        }
        assert!(!lock.exists(), "its lock stays behind");
    }

    #[tokio::test]
    async fn endless_output_does_not_exhaust_memory() {
        let output = Program::new("sh").args(["-c", "head -c 20000000 /dev/zero"]).output().await.unwrap();
        assert_eq!(output.stdout.len(), OUTPUT_LIMIT);
        assert!(output.success());
    }
}
