//! The port-forward endpoint of a fake cluster: a web server in the pod that says the pod's name.

use futures::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use super::git_exec::websocket;
use super::http::Request;

pub async fn serve(stream: TcpStream, request: &Request) {
    let pod = request.path().rsplit('/').nth(1).unwrap().to_owned();
    let port: u16 = request.query("ports").unwrap().parse().unwrap();
    let mut socket = websocket(stream, request).await;
    // Data and errors of the one port begin with its number.
    for channel in [0, 1] {
        let [low, high] = port.to_le_bytes();
        socket.send(Message::binary(vec![channel, low, high])).await.ok();
    }
    while let Some(Ok(message)) = socket.next().await {
        if message.into_data().len() > 1 {
            let body = format!("{pod}:{port}");
            let answer =
                format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            socket.send(Message::binary([&[0], answer.as_bytes()].concat())).await.ok();
            socket.close(None).await.ok();
        }
    }
}
