//! A git host of one private repository: git's own `http-backend` behind TLS and a login, at an address that pods
//! reach, too.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, WWW_AUTHENTICATE};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{ServerConfig, crypto::ring, pki_types::PrivatePkcs8KeyDer};

pub const USER: &str = "reader";

pub struct PrivateGit {
    pub address: SocketAddr,
    /// PEM of the certificate, which is its own authority.
    pub certificate: String,
    seen: Arc<Mutex<Vec<String>>>,
    _runtime: tokio::runtime::Runtime,
}

struct Host {
    root: PathBuf,
    /// None where everybody may read.
    login: Option<String>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl PrivateGit {
    /// Serves the bare repositories in a folder to whoever has the password.
    pub fn serve(root: PathBuf, address: IpAddr, password: &str) -> PrivateGit {
        let login = format!("Basic {}", BASE64_STANDARD.encode(format!("{USER}:{password}")));
        Self::serve_to(root, address, Some(login))
    }

    /// The same to everybody who trusts the certificate.
    pub fn serve_to_all(root: PathBuf, address: IpAddr) -> PrivateGit {
        Self::serve_to(root, address, None)
    }

    /// Paths that were asked for.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("nobody panics with it").clone()
    }

    fn serve_to(root: PathBuf, address: IpAddr, login: Option<String>) -> PrivateGit {
        let made = rcgen::generate_simple_self_signed([address.to_string()]).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.into())
            .expect("a key of its own");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("threads");
        let listener = runtime.block_on(TcpListener::bind((address, 0))).expect("a port at the bridge");
        let address = listener.local_addr().expect("an address");
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let host = Arc::new(Host { root, login, seen: seen.clone() });
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, host) = (acceptor.clone(), host.clone());
                tokio::spawn(async move {
                    let stream = TokioIo::new(acceptor.accept(stream).await.ok()?);
                    let answer = service_fn(move |request| answer(host.clone(), request));
                    hyper::server::conn::http1::Builder::new().serve_connection(stream, answer).await.ok()
                });
            }
        });
        PrivateGit { address, certificate: made.cert.pem(), seen, _runtime: runtime }
    }
}

type Answer = Response<Full<Bytes>>;

async fn answer(host: Arc<Host>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    host.seen.lock().expect("nobody panics with it").push(request.uri().path().to_owned());
    let given = request.headers().get(AUTHORIZATION);
    let refused = host.login.as_ref().is_some_and(|login| given.is_none_or(|given| given != login.as_str()));
    let status = |status| Response::builder().status(status);
    if refused {
        let answer = status(StatusCode::UNAUTHORIZED).header(WWW_AUTHENTICATE, "Basic realm=\"private\"");
        return Ok(answer.body(Full::default()).expect("a sound answer"));
    }
    let answer = backend(&host, request).await;
    Ok(answer
        .unwrap_or_else(|| status(StatusCode::INTERNAL_SERVER_ERROR).body(Full::default()).expect("a sound answer")))
}

/// What git's CGI program says.
async fn backend(host: &Host, request: Request<Incoming>) -> Option<Answer> {
    let (parts, body) = request.into_parts();
    let header =
        |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let mut command = tokio::process::Command::new("git");
    command.arg("http-backend").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    command.env("GIT_PROJECT_ROOT", &host.root).env("GIT_HTTP_EXPORT_ALL", "1").env("REMOTE_USER", USER);
    command.env("REQUEST_METHOD", parts.method.as_str()).env("PATH_INFO", parts.uri.path());
    command.env("QUERY_STRING", parts.uri.query().unwrap_or_default());
    command.env("CONTENT_TYPE", header(CONTENT_TYPE.as_str())).env("GIT_PROTOCOL", header("git-protocol"));
    command.env("HTTP_CONTENT_ENCODING", header(CONTENT_ENCODING.as_str()));
    let body = body.collect().await.ok()?.to_bytes();
    command.env("CONTENT_LENGTH", body.len().to_string());
    let mut child = command.spawn().ok()?;
    let mut input = child.stdin.take()?;
    // It may answer before it has read all.
    let writing = tokio::spawn(async move { input.write_all(&body).await });
    let output = child.wait_with_output().await.ok()?.stdout;
    drop(writing);
    let end = output.windows(4).position(|four| four == b"\r\n\r\n")?;
    let mut answer = Response::builder();
    for line in std::str::from_utf8(&output[..end]).ok()?.lines() {
        let (name, value) = line.split_once(": ")?;
        answer = match name {
            "Status" => answer.status(value.split(' ').next()?),
            _ => answer.header(name, value),
        };
    }
    answer.body(Bytes::copy_from_slice(&output[end + 4..]).into()).ok()
}
