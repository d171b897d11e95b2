//! vClusters on a desk: a fake helm that leaves word of what it was to install, and a server with a certificate in front of
//! their API servers, which are fake clusters like any other. A vCluster answers while its control plane is in its host.

use std::path::{Path, PathBuf};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::desk::Desk;
use super::{existing, tools};

/// Context and name of the cluster that carries them.
pub const HOST: &str = existing::LAB;
/// What makes an environment one.
pub const FLAGS: [&str; 9] = [
    "--provider",
    "vcluster",
    "--host-context",
    HOST,
    "--vcluster-storage",
    "volume",
    "--vcluster-node-address",
    "127.0.0.1",
    "--yes",
];

/// `@DIR@` is the folder of the fakes.
const HELM: &str = r#"#!/bin/sh
set -u
dir='@DIR@'
echo "$*" >> "$dir/helm-argv"
echo "KUBECONFIG=${KUBECONFIG-} HELM_KUBECONTEXT=${HELM_KUBECONTEXT-} HELM_NAMESPACE=${HELM_NAMESPACE-} HELM_CACHE_HOME=${HELM_CACHE_HOME-}" >> "$dir/helm-env"
gate() { cat "$dir/gate" 2>/dev/null; }
hold() { : > "$dir/held"; while [ "$(gate)" != open ]; do sleep 0.03; done; }
[ "$1 $2" = "upgrade --install" ] || { echo "the fake does not know: $*" >&2; exit 64; }
name=$3; namespace=
: > "$dir/helm-values"
shift 3
while [ $# -gt 0 ]; do
  case $1 in
    --namespace) namespace=$2; shift ;;
    --values) cat "$2" >> "$dir/helm-values"; echo >> "$dir/helm-values"; shift ;;
  esac
  shift
done
case $(cat "$dir/helm-mode" 2>/dev/null) in
  fail) echo 'Error: INSTALLATION FAILED: values do not fit' >&2; exit 1 ;;
  lie) exit 0 ;;
esac
case $(gate) in
  hold-all) hold ;;
  lie) : > "$dir/held"; echo open > "$dir/gate"; exit 0 ;;
  fail) : > "$dir/held"; echo "Error: the fake was told to fail" >&2; exit 1 ;;
esac
mkdir -p "$dir/releases"
echo "$namespace" > "$dir/releases/.$name"
mv "$dir/releases/.$name" "$dir/releases/$name"
case $(gate) in
  hold-after) hold ;;
  lose) : > "$dir/held"; kill -9 $$ ;;
esac
"#;

/// What a release puts into its namespace.
#[derive(Clone)]
pub struct Charts {
    releases: PathBuf,
    port: u16,
    certificate: String,
    key: String,
}

impl Charts {
    /// Releases that nobody has installed yet, with what they consist of.
    pub fn fresh(&self) -> Vec<(String, Vec<(&'static str, Value)>)> {
        let mut fresh = Vec::new();
        for entry in std::fs::read_dir(&self.releases).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(namespace) = std::fs::read_to_string(entry.path()) else { continue };
            if !name.starts_with('.') && std::fs::remove_file(entry.path()).is_ok() {
                fresh.push((namespace.trim().to_owned(), self.objects(&name, namespace.trim())));
            }
        }
        fresh
    }

    fn objects(&self, name: &str, namespace: &str) -> Vec<(&'static str, Value)> {
        let labels = json!({"app": "vcluster", "release": name});
        let object = |api_version: &str, kind: &str, name: &str| {
            json!({"apiVersion": api_version, "kind": kind,
                   "metadata": {"name": name, "namespace": namespace, "labels": labels}})
        };
        let mut workload = object("apps/v1", "StatefulSet", name);
        let containers = json!([{"name": "syncer", "image": "ghcr.io/loft-sh/vcluster-oss:0.36.1"}]);
        workload["spec"] = json!({"replicas": 1,
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}}});
        let mut service = object("v1", "Service", name);
        service["spec"] = json!({"ports": [{"name": "https", "port": 443, "nodePort": self.port}]});
        let mut secret = object("v1", "Secret", &format!("vc-{name}"));
        let data = |text: &str| BASE64_STANDARD.encode(text);
        secret["data"] = json!({"certificate-authority": data(&self.certificate),
            "client-certificate": data(&self.certificate), "client-key": data(&self.key)});
        vec![("statefulsets", workload), ("services", service), ("secrets", secret)]
    }
}

/// A desk with a host and helm.
pub async fn desk() -> Desk {
    let desk = existing::desk().await;
    let names = ["alice", "bob"].map(|name| format!("k8tre-{name}.k8tre-{name}.svc"));
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let key = made.signing_key.serialize_der();
    let config = ServerConfig::builder_with_provider(std::sync::Arc::new(rustls_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key)))
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let folder = desk.kind.folder().to_owned();
    let server = std::fs::read_to_string(folder.join("server")).unwrap();
    tokio::spawn(serve(listener, TlsAcceptor::from(std::sync::Arc::new(config)), server));
    tools::write(&folder, "helm", &HELM.replace("@DIR@", folder.to_str().unwrap()));
    desk.clusters.install(Charts {
        releases: folder.join("releases"),
        port,
        certificate: made.cert.pem(),
        key: made.signing_key.serialize_pem(),
    });
    desk.write("chart.tgz", "a chart");
    let chart = desk.path("chart.tgz").display().to_string();
    desk.with("K8TRE_VCLUSTER_CHART", Some(&chart))
}

fn rustls_provider() -> tokio_rustls::rustls::crypto::CryptoProvider {
    tokio_rustls::rustls::crypto::ring::default_provider()
}

/// `fail`, `lie`, or well.
pub fn helm_mode(desk: &Desk, mode: &str) {
    std::fs::write(desk.kind.folder().join("helm-mode"), mode).unwrap();
}

/// What the fake helm kept of its runs: `argv`, `env`, or the `values` of the last.
pub fn helm(desk: &Desk, what: &str) -> String {
    std::fs::read_to_string(desk.kind.folder().join(format!("helm-{what}"))).unwrap_or_default()
}

/// Leads each connection to the cluster that its certificate is asked for.
async fn serve(listener: TcpListener, acceptor: TlsAcceptor, server: String) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, server) = (acceptor.clone(), server.clone());
        tokio::spawn(async move {
            let mut stream = acceptor.accept(stream).await.ok()?;
            let name = stream.get_ref().1.server_name()?.split('.').next()?.to_owned();
            let mut plain = TcpStream::connect(server.trim_start_matches("http://")).await.ok()?;
            // The path's first folder is the cluster: one request a connection, as the fakes have it.
            let mut head = Vec::new();
            while !head.ends_with(b" ") {
                head.push(stream.read_u8().await.ok()?);
            }
            plain.write_all(&head).await.ok()?;
            plain.write_all(format!("/{name}").as_bytes()).await.ok()?;
            tokio::io::copy_bidirectional(&mut stream, &mut plain).await.ok()
        });
    }
}

/// Where something of somebody's is in the way: a namespace of the name that the vCluster's would have.
pub fn take_namespace(desk: &Desk, owner: Option<&str>) {
    let mut namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "k8tre-alice"}});
    if let Some(owner) = owner {
        namespace["metadata"]["annotations"]["k8tre.dev/environment-id"] = json!(owner);
    }
    desk.clusters.plant(HOST, "namespaces", &namespace);
}

/// A folder or file of the chart's name where somebody works must not be taken for the chart.
pub fn confuse(folder: &Path) {
    std::fs::create_dir_all(folder.join("vcluster")).unwrap();
}
