//! The least of a proxy: tunnels, and a record of where to.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub struct Proxy {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    _runtime: tokio::runtime::Runtime,
}

impl Proxy {
    pub fn start(address: IpAddr) -> Proxy {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a thread");
        let listener = runtime.block_on(TcpListener::bind((address, 0))).expect("a port at the bridge");
        let address = listener.local_addr().expect("an address");
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let record = seen.clone();
        runtime.spawn(async move {
            while let Ok((stream, from)) = listener.accept().await {
                tokio::spawn(tunnel(stream, from, record.clone()));
            }
        });
        Proxy { address, seen, _runtime: runtime }
    }

    /// Who asked for what: `172.18.0.2 172.17.0.1:4443`.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("nobody panics with it").clone()
    }
}

async fn tunnel(mut stream: TcpStream, from: SocketAddr, seen: Arc<Mutex<Vec<String>>>) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).ok()?;
    let target = head.strip_prefix("CONNECT ")?.split(' ').next()?;
    seen.lock().expect("nobody panics with it").push(format!("{} {target}", from.ip()));
    let mut there = TcpStream::connect(target).await.ok()?;
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.ok()?;
    tokio::io::copy_bidirectional(&mut stream, &mut there).await.ok()?;
    Some(())
}
