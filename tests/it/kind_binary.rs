//! Which kind is used: the one found, or one that is fetched.

use k8tre::error::Error;
use k8tre::ports::fetch::{Checksum, Fetcher, Wanted};
use k8tre::providers::kind::KindProgram;
use k8tre::providers::kind::binary::{MINIMUM, choose};
use semver::Version;

use crate::support::http::FileServer;

const SCRIPT: &str = "#!/bin/sh\necho 'kind v0.99.0 go1.26.0 linux/amd64'\n";

fn found(version: Version) -> KindProgram {
    KindProgram { path: "/usr/bin/kind".into(), version, fetched: false }
}

async fn server() -> (FileServer, Wanted) {
    use sha2::{Digest, Sha256};
    let server = FileServer::start().await;
    server.put("/kind", SCRIPT);
    let sum: String = Sha256::digest(SCRIPT).iter().map(|byte| format!("{byte:02x}")).collect();
    server.put("/kind.sha256sum", format!("{sum}  kind-linux-amd64\n"));
    let wanted = Wanted {
        url: format!("{}/kind", server.url),
        sha256: Checksum::FromPublisher(format!("{}/kind.sha256sum", server.url)),
        name: "kind-v0.99.0".into(),
        limit: 1 << 20,
        executable: true,
    };
    (server, wanted)
}

#[tokio::test]
async fn a_kind_that_is_new_enough_is_used_as_it_is() {
    let (server, wanted) = server().await;
    let cache = tempfile::tempdir().unwrap();
    let found = found(MINIMUM);
    let chosen = choose(Ok(Some(found.clone())), &wanted, &Fetcher::new(cache.path())).await.unwrap();
    assert_eq!(chosen, found);
    assert_eq!(server.requests(), [] as [&str; 0]);
}

#[tokio::test]
async fn an_old_a_broken_and_a_missing_kind_are_replaced_by_a_fetched_one() {
    let (_server, wanted) = server().await;
    let old = Ok(Some(found(Version::new(0, 20, 0))));
    for found in [old, Ok(None), Err(Error::failed("it does not start"))] {
        let cache = tempfile::tempdir().unwrap();
        let chosen = choose(found, &wanted, &Fetcher::new(cache.path())).await.unwrap();
        assert!(chosen.fetched);
        assert_eq!(chosen.version, Version::new(0, 99, 0));
        assert!(chosen.path.starts_with(cache.path()));
    }
}

#[tokio::test]
async fn offline_says_why_kind_is_needed_and_how_to_get_it() {
    let (_server, wanted) = server().await;
    let cache = tempfile::tempdir().unwrap();
    let error = choose(Ok(None), &wanted, &Fetcher::new(cache.path()).offline(true)).await.unwrap_err();
    assert!(error.to_string().contains("kind is not on PATH"), "{error}");
    assert!(error.hints().iter().any(|hint| hint.contains("kind-v0.99.0")), "{error:?}");
    assert!(error.hints().iter().any(|hint| hint.starts_with("go install")), "{error:?}");
}
