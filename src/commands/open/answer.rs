//! Whether anything answers at an Ingress's port: what Docker publishes takes connections, whoever serves it inside.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::ways::Host;

const LIMIT: Duration = Duration::from_secs(2);

pub async fn answers(host: &Host) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect(("127.0.0.1", host.port)).await?;
        if !host.secure {
            let request = format!("HEAD / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", host.name);
            stream.write_all(request.as_bytes()).await?;
        }
        stream.read(&mut [0]).await
    };
    match tokio::time::timeout(LIMIT, ask).await {
        Ok(Ok(read)) => read > 0,
        Ok(Err(_)) => false,
        // Somebody is there and thinks, or waits for the first word of TLS.
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    async fn answered(secure: bool, serve: impl AsyncFnOnce(TcpStream)) -> bool {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let text = String::new;
        let host = Host { name: "portal.test".into(), url: text(), ingress: text(), port, secure };
        let served = async { serve(listener.accept().await.unwrap().0).await };
        tokio::join!(answers(&host), served).0
    }

    #[tokio::test]
    async fn a_port_whose_connections_end_at_once_leads_nowhere() {
        for secure in [false, true] {
            assert!(!answered(secure, async |stream| drop(stream)).await);
        }
        let reply = async |mut stream: TcpStream| {
            let mut request = [0; 512];
            let read = stream.read(&mut request).await.unwrap();
            assert!(String::from_utf8_lossy(&request[..read]).contains("Host: portal.test\r\n"));
            stream.write_all(b"HTTP/1.1 404 Not Found\r\n\r\n").await.unwrap();
        };
        assert!(answered(false, reply).await, "an ingress controller answers, if only with no");
        let waits = async |mut stream: TcpStream| _ = stream.read(&mut [0]).await;
        assert!(answered(true, waits).await, "a TLS server waits for the first word");
    }
}
