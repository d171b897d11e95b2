//! The exec endpoint of a fake cluster for a question to another cluster, as git in Argo CD's pods would answer it.

use futures::SinkExt;
use serde_json::json;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use super::git_exec::websocket;
use super::http::Request;

pub async fn serve(stream: TcpStream, request: &Request, runs: impl Fn(&str) -> bool) {
    let command = request.queries("command");
    let url = command.last().unwrap();
    let host = url.trim_start_matches("https://").split(':').next().unwrap();
    let why = match runs(host.trim_end_matches("-control-plane")) {
        true => "The requested URL returned error: 403".to_owned(),
        false => format!("Could not resolve host: {host}"),
    };
    let said = format!("fatal: unable to access '{url}/version/': {why}\nexit 128\n");
    let mut socket = websocket(stream, request).await;
    socket.send(Message::binary([&[1], said.as_bytes()].concat())).await.ok();
    let status = json!({"status": "Success"}).to_string();
    socket.send(Message::binary([&[3], status.as_bytes()].concat())).await.ok();
    socket.close(None).await.ok();
}
