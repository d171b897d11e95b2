//! Programs that a test starts: bounded in time, with all they printed, and ended with the test.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// A program that ended.
#[derive(Debug)]
pub struct Ran {
    pub command: String,
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Ran {
    /// Panics, showing all that is known, unless the program ended with this exit code.
    #[track_caller]
    pub fn expect(self, code: i32) -> Ran {
        assert!(self.code == Some(code), "expected exit code {code}:\n{self}");
        self
    }

    /// What `-o json` printed.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("no JSON: {error}\n{self}"))
    }
}

impl std::fmt::Display for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Ran { command, code, signal, stdout, stderr, took } = self;
        writeln!(f, "$ {command}\nexit code {code:?}, signal {signal:?}, after {:.1} s", took.as_secs_f64())?;
        write!(f, "--- stdout\n{stdout}\n--- stderr\n{stderr}\n---")
    }
}

/// A program that runs, in a process group of its own.
pub struct Running {
    command: String,
    child: Child,
    stdout: File,
    stderr: File,
    started: Instant,
    ended: bool,
}

impl Running {
    /// Output goes to files, so that no child that lives on can hold a pipe open and hang the test.
    pub fn start(mut command: Command) -> Running {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let shown = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let output = || tempfile::tempfile().expect("a temporary file");
        let (stdout, stderr) = (output(), output());
        let copy = |file: &File| Stdio::from(file.try_clone().expect("a second handle on a file"));
        command.stdin(Stdio::null()).stdout(copy(&stdout)).stderr(copy(&stderr)).process_group(0);
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {shown}: {error}"));
        Running { command: shown, child, stdout, stderr, started: Instant::now(), ended: false }
    }

    /// What it has printed on stdout so far.
    pub fn stdout(&self) -> String {
        text(&self.stdout)
    }

    /// What it has printed on stderr so far.
    pub fn stderr(&self) -> String {
        text(&self.stderr)
    }

    /// Waits until stderr contains a text; panics when it ends or takes too long.
    #[track_caller]
    pub fn wait_for(&mut self, wanted: &str, limit: Duration) {
        let deadline = Instant::now() + limit;
        while !self.stderr().contains(wanted) {
            let ended = self.child.try_wait().expect("our own child can be waited for");
            assert!(ended.is_none(), "{} ended without saying {wanted:?}:\n{}", self.command, self.stderr());
            assert!(Instant::now() < deadline, "{} did not say {wanted:?}:\n{}", self.command, self.stderr());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The most memory that it has had at a time, in KiB; `None` once it has ended.
    pub fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.split_whitespace().next()?.parse().ok()
    }

    /// Signals the program alone, as `kill` does.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Signals the program and its children, as Ctrl-C in a terminal does.
    pub fn signal_group(&self, signal: Signal) {
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
    }

    /// Waits for the end; after the limit, ends it and panics with what it printed.
    #[track_caller]
    pub fn wait(mut self, limit: Duration) -> Ran {
        let deadline = self.started + limit;
        let mut pause = Duration::from_millis(1);
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("our own child can be waited for") {
                break status;
            }
            assert!(
                Instant::now() < deadline,
                "{} did not end within {} s:\n{}\n{}",
                self.command,
                limit.as_secs(),
                text(&self.stdout),
                text(&self.stderr)
            );
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        };
        self.ended = true;
        Ran {
            command: self.command.clone(),
            code: status.code(),
            signal: status.signal(),
            stdout: text(&self.stdout),
            stderr: text(&self.stderr),
            took: self.started.elapsed(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            self.signal_group(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// Reads at positions of its own: the program's handle shares the file's one position.
fn text(file: &File) -> String {
    let length = file.metadata().expect("an open file has a length").len();
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, 0).expect("a file that only grows can be read");
    String::from_utf8_lossy(&bytes).into_owned()
}
