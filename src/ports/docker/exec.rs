//! Programs inside a container, without a shell and without the `docker` program.

use std::pin::Pin;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use futures::{Stream, StreamExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{Docker, explained};
use crate::error::{Error, Result, ResultExt};

/// Output beyond this is read and thrown away.
const OUTPUT_LIMIT: usize = 4 << 20;
const CHUNK: usize = 256 << 10;

/// What a program inside a container printed, and how it ended.
#[derive(Debug, Clone, Default)]
pub struct ExecOutput {
    pub code: i64,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl ExecOutput {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end().to_owned()
    }

    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim_end().to_owned()
    }
}

type Output = Pin<Box<dyn Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>;
type Input = Pin<Box<dyn AsyncWrite + Send>>;

impl Docker {
    /// Runs a program in a container and returns what it printed, whatever its exit code.
    pub async fn exec(&self, container: &str, argv: &[&str], limit: Duration) -> Result<ExecOutput> {
        self.exec_with_input(container, argv, None::<tokio::io::Empty>, limit).await
    }

    /// As [`Docker::exec`], but anything other than exit code 0 is an error with the program's words.
    pub async fn exec_ok(&self, container: &str, argv: &[&str], limit: Duration) -> Result<ExecOutput> {
        succeeded(container, argv, self.exec(container, argv, limit).await?)
    }

    /// Runs a program in a container and feeds it a stream: nothing is kept on disk or in memory.
    pub async fn exec_with_input<R>(
        &self,
        container: &str,
        argv: &[&str],
        input: Option<R>,
        limit: Duration,
    ) -> Result<ExecOutput>
    where
        R: AsyncRead + Unpin + Send,
    {
        let shown = shown(argv);
        let work = async {
            let (id, output, stdin) = self.start_exec(container, argv, input.is_some()).await?;
            let feed = async {
                match input {
                    Some(input) => feed(input, stdin).await,
                    None => Ok(Fed::Whole),
                }
            };
            let (fed, printed) = tokio::join!(feed, capture(output));
            let mut printed = printed.with_context(|| format!("cannot read the output of {shown} in {container}"))?;
            let ended = self.ask("say how a program ended", self.api.inspect_exec(&id)).await?;
            printed.code = ended.exit_code.unwrap_or(-1);
            match fed.with_context(|| format!("cannot read the input of {shown} in {container}"))? {
                // A program that ended badly closes its input: its own words say more than that.
                Fed::Refused(error) if printed.code == 0 => {
                    return Err(error).with_context(|| format!("cannot feed {shown} in {container}"));
                }
                _ => {}
            }
            Ok(printed)
        };
        match tokio::time::timeout(limit, work).await {
            Ok(result) => result,
            Err(_) => Err(Error::failed(format!("{shown} in {container} did not end within {} s", limit.as_secs()))),
        }
    }

    async fn start_exec(&self, container: &str, argv: &[&str], stdin: bool) -> Result<(String, Output, Input)> {
        let options = CreateExecOptions {
            attach_stdin: Some(stdin),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(argv.to_vec()),
            ..Default::default()
        };
        let what = format!("run {} in {container}", shown(argv));
        let id = self.ask(&what, self.api.create_exec(container, options)).await?.id;
        let start = StartExecOptions { output_capacity: Some(CHUNK), ..Default::default() };
        match self.ask(&what, self.api.start_exec(&id, Some(start))).await? {
            StartExecResults::Attached { output, input } => Ok((id, output, input)),
            StartExecResults::Detached => Err(Error::failed(format!("Docker at {} did not {what}", self.endpoint))),
        }
    }

    pub(super) fn stream_error(&self, what: &str, error: bollard::errors::Error) -> std::io::Error {
        std::io::Error::other(explained(&self.endpoint, what, error).to_string())
    }
}

/// The command line as it may stand in a message: a script that is handed to a shell is cut.
fn shown(argv: &[&str]) -> String {
    crate::text::one_line(&argv.join(" "), 120)
}

/// The output as a success, or the error that its exit code stands for.
pub(super) fn succeeded(container: &str, argv: &[&str], output: ExecOutput) -> Result<ExecOutput> {
    if output.code == 0 {
        return Ok(output);
    }
    let words = if output.stderr.is_empty() { output.text() } else { output.errors() };
    Err(Error::failed(format!("{} in {container} exited with {}", shown(argv), output.code))
        .detail(crate::text::printable(&words)))
}

/// How much of the input the program took.
enum Fed {
    Whole,
    Refused(std::io::Error),
}

async fn feed(mut from: impl AsyncRead + Unpin, mut to: Input) -> Result<Fed> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = match from.read(&mut buffer).await {
            Ok(read) => read,
            Err(error) => {
                // Without an end of its input the program would wait for ever.
                to.shutdown().await.ok();
                return Err(error.into());
            }
        };
        let done = match read {
            0 => to.shutdown().await.map(|()| true),
            _ => to.write_all(&buffer[..read]).await.map(|()| false),
        };
        match done {
            Ok(true) => return Ok(Fed::Whole),
            Ok(false) => {}
            Err(error) => return Ok(Fed::Refused(error)),
        }
    }
}

async fn capture(mut output: Output) -> Result<ExecOutput> {
    let mut kept = ExecOutput::default();
    while let Some(part) = output.next().await {
        let (into, message) = match part? {
            LogOutput::StdErr { message } => (&mut kept.stderr, message),
            LogOutput::StdOut { message } | LogOutput::Console { message } => (&mut kept.stdout, message),
            LogOutput::StdIn { .. } => continue,
        };
        let room = OUTPUT_LIMIT.saturating_sub(into.len()).min(message.len());
        into.extend_from_slice(&message[..room]);
    }
    Ok(kept)
}
