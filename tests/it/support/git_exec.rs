//! The exec endpoint of a fake cluster: git's own programs, on a bare repository, over a websocket.

use std::path::Path;
use std::process::Stdio;

use futures::{SinkExt, StreamExt};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::gate::{Gate, Pass};
use super::http::{self, Request, Response};

/// Channels of the protocol.
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
const CLOSE: u8 = 255;

pub fn tip(repository: &Path, branch: &str) -> Option<String> {
    let repository = git2::Repository::open_bare(repository).ok()?;
    let commit = repository.refname_to_id(&format!("refs/heads/{branch}")).ok()?;
    Some(commit.to_string())
}

/// A file of a commit.
pub fn file(repository: &Path, commit: &str, path: &str) -> Option<String> {
    let repository = git2::Repository::open_bare(repository).ok()?;
    let object = repository.revparse_single(&format!("{commit}:{path}")).ok()?;
    Some(String::from_utf8(object.as_blob()?.content().to_vec()).unwrap())
}

pub async fn serve(stream: TcpStream, request: &Request, repository: &Path, pass: Pass, gate: &Gate) {
    let command = request.queries("command");
    let [git, service, path] = command.as_slice() else { return };
    assert_eq!((git.as_str(), path.as_str()), ("git", "/git/tre.git"));
    if !repository.exists() {
        git2::Repository::init_bare(repository).unwrap();
    }
    // What is pretended goes to a copy, which is forgotten.
    let copy = (pass == Pass::Lie).then(|| copied(repository));
    let repository = copy.as_ref().map_or(repository, |copy| copy.path());
    let socket = websocket(stream, request).await;
    let (mut outgoing, mut incoming) = socket.split();

    let mut program = tokio::process::Command::new("git");
    program.arg(service).arg(repository).env_clear().env("PATH", "/usr/bin:/bin").kill_on_drop(true);
    let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut stdout, mut stderr) =
        (child.stdin.take(), child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let upward = async {
        while let Some(Ok(message)) = incoming.next().await {
            match message.into_data().as_ref() {
                [STDIN, data @ ..] => match &mut stdin {
                    Some(stdin) => drop(stdin.write_all(data).await),
                    None => return,
                },
                [CLOSE, STDIN] => stdin = None,
                _ => {}
            }
        }
        // The client has gone: so does its end of the pipe.
        drop(stdin.take());
        std::future::pending().await
    };
    let downward = async {
        let (mut out_open, mut err_open) = (true, true);
        while out_open || err_open {
            let (channel, data) = tokio::select! {
                data = part(&mut stdout), if out_open => (STDOUT, data),
                data = part(&mut stderr), if err_open => (STDERR, data),
            };
            match data {
                // An answer that is to be lost is git's report of what it has done.
                Some(data)
                    if matches!(pass, Pass::Go | Pass::Lie) || !data.windows(9).any(|part| part == b"unpack ok") =>
                {
                    let framed: Vec<u8> = [&[channel], data.as_slice()].concat();
                    outgoing.send(Message::binary(framed)).await.ok();
                }
                Some(_) => {}
                None if channel == STDOUT => out_open = false,
                None => err_open = false,
            }
        }
        child.wait().await.is_ok_and(|status| status.success())
    };
    let success = tokio::select! {
        success = downward => success,
        () = upward => false,
    };
    match pass {
        Pass::GoThenDrop => return,
        Pass::GoThenHold => return gate.wait_until_open().await,
        _ => {}
    }
    let status = match success {
        true => json!({"status": "Success"}),
        false => {
            json!({"status": "Failure", "reason": "NonZeroExitCode", "message": "command terminated with exit code 1"})
        }
    };
    let framed = [&[STATUS], status.to_string().as_bytes()].concat();
    outgoing.send(Message::binary(framed)).await.ok();
    outgoing.close().await.ok();
}

fn copied(repository: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let copied = std::process::Command::new("cp").arg("-a").arg(repository.join(".")).arg(copy.path()).status();
    assert!(copied.unwrap().success());
    copy
}

/// Answers the request to change protocols.
pub async fn websocket(mut stream: TcpStream, request: &Request) -> WebSocketStream<TcpStream> {
    let key = request.headers.get("sec-websocket-key").unwrap();
    let protocol = request.headers.get("sec-websocket-protocol").and_then(|all| all.split(',').next()).unwrap();
    let switch = Response::new(101, "")
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Accept", derive_accept_key(key.as_bytes()))
        .header("Sec-WebSocket-Protocol", protocol);
    http::write(&mut stream, &switch, false).await;
    WebSocketStream::from_raw_socket(stream, Role::Server, None).await
}

async fn part(from: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut data = vec![0; 32 << 10];
    match from.read(&mut data).await {
        Ok(0) | Err(_) => None,
        Ok(read) => {
            data.truncate(read);
            Some(data)
        }
    }
}
