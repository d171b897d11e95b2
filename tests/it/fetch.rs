//! Fetching against a server on loopback.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use k8tre::ports::fetch::{Checksum, Fetcher, Wanted};
use sha2::{Digest, Sha256};

use crate::support::http::FileServer;

const CONTENT: &[u8] = b"#!/bin/sh\necho fetched\n";

fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn wanted(server: &FileServer, sha256: Checksum) -> Wanted {
    Wanted { url: format!("{}/tool", server.url), sha256, name: "tool-v1".into(), limit: 1 << 20, executable: true }
}

fn from_publisher(server: &FileServer) -> Wanted {
    wanted(server, Checksum::FromPublisher(format!("{}/tool.sha256sum", server.url)))
}

fn files(folder: &std::path::Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_pinned_file_is_fetched_once_and_checked_again_each_time() {
    let server = FileServer::start().await;
    server.put("/tool", CONTENT);
    let cache = tempfile::tempdir().unwrap();
    let fetcher = Fetcher::new(cache.path());
    let wanted = wanted(&server, Checksum::Known(sha256(CONTENT)));
    let path = fetcher.get(&wanted).await.unwrap();
    assert_eq!(fs::read(&path).unwrap(), CONTENT);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    fetcher.get(&wanted).await.unwrap();
    assert_eq!(server.requests(), ["/tool"]);

    fs::write(&path, "tampered").unwrap();
    fetcher.get(&wanted).await.unwrap();
    assert_eq!(fs::read(&path).unwrap(), CONTENT, "a changed file is replaced");
}

#[tokio::test]
async fn a_wrong_checksum_names_both_and_leaves_nothing() {
    let server = FileServer::start().await;
    server.put("/tool", "something else");
    let cache = tempfile::tempdir().unwrap();
    let error = Fetcher::new(cache.path()).get(&wanted(&server, Checksum::Known(sha256(CONTENT)))).await.unwrap_err();
    assert!(error.to_string().contains(&sha256(CONTENT)), "{error}");
    assert!(error.to_string().contains(&sha256(b"something else")), "{error}");
    assert_eq!(files(cache.path()), [] as [&str; 0]);
}

#[tokio::test]
async fn the_publishers_checksum_is_trusted_on_first_use_only() {
    let server = FileServer::start().await;
    server.put("/tool", CONTENT);
    server.put("/tool.sha256sum", format!("{}  tool\n", sha256(CONTENT)));
    let cache = tempfile::tempdir().unwrap();
    let fetcher = Fetcher::new(cache.path());
    let path = fetcher.get(&from_publisher(&server)).await.unwrap();

    // Both the file and its checksum are changed at the source.
    server.put("/tool", "evil");
    server.put("/tool.sha256sum", sha256(b"evil"));
    fetcher.get(&from_publisher(&server)).await.expect("what is in the cache is still good");
    fs::remove_file(path).unwrap();
    let error = fetcher.get(&from_publisher(&server)).await.unwrap_err();
    assert!(error.to_string().contains(&sha256(CONTENT)), "{error}");
    assert!(error.hints().iter().any(|hint| hint.contains("tool-v1.sha256")), "{error:?}");
    assert_eq!(files(cache.path()), ["tool-v1.sha256"]);
}

#[tokio::test]
async fn offline_refuses_and_says_what_to_put_where() {
    let server = FileServer::start().await;
    server.put("/tool", CONTENT);
    let cache = tempfile::tempdir().unwrap();
    let fetcher = Fetcher::new(cache.path()).offline(true);
    let wanted = wanted(&server, Checksum::Known(sha256(CONTENT)));
    let error = fetcher.get(&wanted).await.unwrap_err();
    let hints = error.hints().join("\n");
    assert!(hints.contains(&fetcher.path(&wanted).display().to_string()), "{hints}");
    assert!(hints.contains(&sha256(CONTENT)), "{hints}");
    assert_eq!(server.requests(), [] as [&str; 0]);

    fs::write(fetcher.path(&wanted), CONTENT).unwrap();
    fetcher.get(&wanted).await.expect("put there by hand");
}

#[tokio::test]
async fn a_file_that_is_too_long_is_refused() {
    let server = FileServer::start().await;
    server.put("/tool", CONTENT);
    let cache = tempfile::tempdir().unwrap();
    let wanted = Wanted { limit: 10, ..wanted(&server, Checksum::Known(sha256(CONTENT))) };
    let error = Fetcher::new(cache.path()).get(&wanted).await.unwrap_err();
    assert!(error.to_string().contains("cannot fetch"), "{error}");
    assert_eq!(files(cache.path()), [] as [&str; 0]);
}

#[tokio::test]
async fn loopback_is_reached_though_the_proxy_is_dead() {
    let server = FileServer::start().await;
    server.put("/tool", CONTENT);
    let cache = tempfile::tempdir().unwrap();
    let dead = BTreeMap::from([("HTTPS_PROXY", "http://127.0.0.1:1".to_owned())]);
    let fetcher = Fetcher::new(cache.path()).proxies(dead);
    fetcher.get(&wanted(&server, Checksum::Known(sha256(CONTENT)))).await.unwrap();
}

#[tokio::test]
async fn a_dead_proxy_is_named_without_its_password() {
    let cache = tempfile::tempdir().unwrap();
    let dead = BTreeMap::from([("HTTPS_PROXY", "http://me:secret@127.0.0.1:1".to_owned())]);
    let fetcher = Fetcher::new(cache.path()).proxies(dead).time_limit(Duration::from_secs(5));
    let wanted = Wanted {
        url: "http://publisher.invalid/tool".into(),
        sha256: Checksum::Known(sha256(CONTENT)),
        name: "tool".into(),
        limit: 1 << 20,
        executable: false,
    };
    let error = fetcher.get(&wanted).await.unwrap_err();
    let all = format!("{error:?}");
    assert!(all.contains("HTTPS_PROXY is http://***@127.0.0.1:1"), "{all}");
    assert!(!all.contains("secret"), "{all}");
}

#[tokio::test]
async fn a_ca_bundle_without_certificates_is_named() {
    let server = FileServer::start().await;
    let cache = tempfile::tempdir().unwrap();
    let bundle = cache.path().join("corp.pem");
    fs::write(&bundle, "nothing").unwrap();
    let fetcher = Fetcher::new(cache.path().join("cache")).ca_bundle(Some(bundle));
    let error = fetcher.get(&wanted(&server, Checksum::Known(sha256(CONTENT)))).await.unwrap_err();
    assert!(error.to_string().contains("corp.pem"), "{error}");
}
