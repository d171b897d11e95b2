//! The least of an HTTP server: one request a connection.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    /// Path and query, as sent.
    pub target: String,
    /// By name in small letters.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// A parameter of the query, decoded.
    pub fn query(&self, name: &str) -> Option<String> {
        self.queries(name).into_iter().next()
    }

    /// The values of a parameter that is given several times.
    pub fn queries(&self, name: &str) -> Vec<String> {
        let query = self.target.split_once('?').map(|(_, query)| query).unwrap_or_default();
        query.split('&').filter_map(|pair| Some(decoded(pair.strip_prefix(name)?.strip_prefix('=')?))).collect()
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next().unwrap_or(b'0'), rest.next().unwrap_or(b'0')];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).unwrap()
}

#[derive(Debug, Clone)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Response {
        Response { status, headers: Vec::new(), body: body.into() }
    }

    pub fn header(mut self, name: &str, value: impl Into<String>) -> Response {
        self.headers.push((name.into(), value.into()));
        self
    }
}

/// Answers one request on a connection; with `None` it never does, and keeps the connection open.
pub async fn answer<S>(mut stream: S, handler: impl FnOnce(Request) -> Option<Response>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Some(request) = read(&mut stream).await else { return };
    let head_only = request.method == "HEAD";
    let Some(response) = handler(request) else { return std::future::pending().await };
    write(&mut stream, &response, head_only).await;
    stream.shutdown().await.ok();
}

/// Sends an answer; the connection ends with it, unless it changes protocols.
pub async fn write(stream: &mut (impl AsyncWrite + Unpin), response: &Response, head_only: bool) {
    let mut head = format!("HTTP/1.1 {} Answer\r\n", response.status);
    for (name, value) in &response.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if response.status != 101 {
        head.push_str(&format!("Content-Length: {}\r\nConnection: close\r\n", response.body.len()));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await.ok();
    if !head_only {
        stream.write_all(&response.body).await.ok();
    }
}

/// Reads one request whole; `None` when the other side has gone.
pub async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Request> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut words = head.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let pairs = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let headers: BTreeMap<_, _> = pairs.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned())).collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = bytes.split_off(end + 4);
    if headers.get("transfer-encoding").is_some_and(|encoding| encoding == "chunked") {
        while !body.ends_with(b"0\r\n\r\n") {
            if stream.read_buf(&mut body).await.ok()? == 0 {
                return None;
            }
        }
        return Some(Request { method, target, headers, body: joined(&body)? });
    }
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Request { method, target, headers, body })
}

/// The chunks of a body: each with its length before it.
fn joined(mut chunks: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = chunks.windows(2).position(|window| window == b"\r\n")?;
        let length = usize::from_str_radix(std::str::from_utf8(&chunks[..end]).ok()?, 16).ok()?;
        if length == 0 {
            return Some(body);
        }
        body.extend(chunks.get(end + 2..end + 2 + length)?);
        chunks = chunks.get(end + 4 + length..)?;
    }
}

/// Files on a port of loopback.
pub struct FileServer {
    pub url: String,
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    requests: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl FileServer {
    pub async fn start() -> FileServer {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let files: Arc<Mutex<BTreeMap<String, Vec<u8>>>> = Arc::default();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let (known, seen) = (files.clone(), requests.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (known, seen) = (known.clone(), seen.clone());
                tokio::spawn(answer(stream, move |request| {
                    seen.lock().unwrap().push(request.path().to_owned());
                    Some(match known.lock().unwrap().get(request.path()) {
                        Some(content) => Response::new(200, content.clone()),
                        None => Response::new(404, "no such file"),
                    })
                }));
            }
        });
        FileServer { url, files, requests, task }
    }

    pub fn put(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.files.lock().unwrap().insert(path.into(), content.into());
    }

    /// Paths asked for so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
