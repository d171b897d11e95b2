//! What an environment needs from elsewhere: listed, saved as one file, and brought to a machine without a network.

use std::fs;

use serde_json::{Value, json};

use crate::support::desk::{Desk, changes};
use crate::support::http::FileServer;

const NODE: &str = "kindest/node:v1.34.11@sha256:44e222ee2132dab25ff87301682f89eb82c7880ea3a1bf543bfe9708fd08d67d";
const REDIS: &str = "public.ecr.aws/docker/library/redis:8.10.1-alpine";
const ARGOCD: &str = "quay.io/argoproj/argocd:v3.6.1";

/// Nothing can be fetched on this machine: the publisher has no kind.
async fn desk() -> (Desk, FileServer) {
    let server = FileServer::start().await;
    let desk = Desk::new().await.with("K8TRE_KIND_URL", Some(&server.url));
    (desk, server)
}

/// One that has all images, the node's as it was pulled: by its digest.
async fn equipped() -> (Desk, FileServer) {
    let (desk, server) = desk().await;
    desk.docker.change(|world| {
        for name in [NODE, REDIS, ARGOCD] {
            let config = json!({"Entrypoint": ["/usr/local/bin/entrypoint"], "Labels": {}});
            world.images.insert(name.into(), json!({"Id": format!("sha256:{}", name.len()), "Config": config}));
        }
    });
    (desk, server)
}

/// A machine with nothing, and a bundle from another.
async fn offline() -> (Desk, FileServer) {
    let (desk, server) = equipped().await;
    let bundle = desk.path("work/tre.tar");
    desk.run(&["images", "save", "tre.tar", "--sample"]).await.code(0).says("5 images and 0 files");
    let (other, _) = self::desk().await;
    other.docker.change(|world| world.images.clear());
    fs::copy(bundle, other.path("work/tre.tar")).unwrap();
    (other, server)
}

fn named<'a>(rows: &'a Value, name: &str) -> &'a Value {
    let rows = rows.as_array().unwrap();
    rows.iter().find(|row| row["reference"] == name || row["name"] == name).unwrap_or_else(|| panic!("{rows:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_environment_needs_is_listed_with_what_is_here() {
    let (desk, _server) = desk().await;
    let before = desk.snapshot();
    let list = desk.run(&["images", "list", "--sample", "-o", "json"]).await.code(0).json();
    let images = &list["images"];
    assert_eq!(named(images, "example.org/argocd:1")["here"], true);
    assert_eq!(named(images, "example.org/argocd:1")["for"], json!(["Argo CD", "the git server"]));
    assert_eq!(named(images, NODE)["here"], false);
    assert_eq!(named(images, NODE)["required"], true);
    let redis = named(images, REDIS);
    assert_eq!((&redis["required"], &redis["always_pulled"]), (&json!(false), &json!(false)), "{redis}");
    assert_eq!(named(&list["files"], "argocd-v3.6.1-install.yaml")["here"], true, "the user's own");
    assert_eq!(list["unknown"], json!([]));
    desk.run(&["images", "list", "--sample"]).await.code(0).shows("IMAGE OR FILE").shows(REDIS);
    assert_eq!(changes(&before, &desk.snapshot()), [] as [&str; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_files_do_not_tell_is_named() {
    let (desk, _server) = desk().await;
    let files: Vec<(String, String)> = k8tre::sample::files()
        .into_iter()
        .map(|(path, content)| (path.display().to_string(), String::from_utf8_lossy(content).into_owned()))
        .map(|(path, content)| match path.as_str() {
            "apps/portal/envs/dev/kustomization.yaml" => (
                path,
                format!(
                    "{content}\nhelmCharts:\n- {{name: hub, repo: 'https://charts.example.org', version: 1.0.0}}\n"
                ),
            ),
            "apps/workspaces/envs/dev/kustomization.yaml" => {
                let image = "public.ecr.aws/docker/library/redis";
                (path, format!("{content}\nimages:\n- {{name: {image}, newName: example.org/redis, newTag: '9'}}\n"))
            }
            _ => (path, content),
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, content)| (path.as_str(), content.as_str())).collect();
    desk.repository("work/tre", &files);
    let list = desk.run(&["images", "list", "--repo", "tre", "-o", "json"]).await.code(0).json();
    let unknown = &list["unknown"][0];
    assert!(unknown["what"].as_str().unwrap().starts_with("portal"), "{list}");
    assert!(unknown["why"].as_str().unwrap().starts_with("helmCharts in apps/portal/"), "{list}");
    // kustomize gives that container another image.
    assert!(named(&list["images"], "example.org/redis:9")["for"][0].as_str().unwrap().starts_with("workspaces"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_had_stops_the_save_and_leaves_nothing() {
    let (desk, _server) = desk().await;
    let before = desk.snapshot();
    let refused = desk.run(&["images", "save", "tre.tar", "--sample"]).await;
    refused.code(5).says(NODE).says("docker pull kindest/node");
    assert_eq!(changes(&before, &desk.snapshot()), [] as [&str; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn images_of_applications_can_be_left_out_and_are_named() {
    let (desk, _server) = equipped().await;
    desk.docker.change(|world| drop(world.images.remove(REDIS)));
    let save = ["images", "save", "tre.tar", "--sample"];
    desk.run(&save).await.code(5).says("--allow-missing");
    let saved = desk.run(&[&save[..], &["--allow-missing", "-o", "json"]].concat()).await.code(0).json();
    assert_eq!(saved["contents"]["left_out"], json!([REDIS]));
    let up = ["dev", "up", "alice", "--sample", "--offline", "--bundle", "tre.tar", "--dry-run"];
    desk.run(&up).await.code(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_without_a_network_comes_up_from_the_bundle() {
    let (desk, server) = offline().await;
    let up = ["dev", "up", "alice", "--sample", "--offline"];
    let before = desk.snapshot();
    desk.run(&up).await.code(5).says(NODE).says("not in this Docker").says("k8tre images save FILE");
    assert_eq!(changes(&before, &desk.snapshot()), [] as [&str; 0]);

    let requests = server.requests().len();
    desk.run(&[&up[..], &["--bundle", "tre.tar"]].concat()).await.code(0).says("is healthy");
    assert_eq!(server.requests().len(), requests, "nothing is fetched");
    // The digest is not known to a Docker that has loaded an archive.
    let argv = desk.kind.argv().join("\n");
    assert!(argv.contains("--image k8tre/node:") || argv.contains("--image kindest/node:v1.34.11 "), "{argv}");
    assert!(!argv.contains('@'), "{argv}");
    desk.run(&[&up[..], &["--bundle", "tre.tar"]].concat()).await.code(0).says("nothing was to be done");
    desk.run(&["dev", "down", "alice"]).await.code(0);
    // Loaded once, it is there without the file, too.
    fs::remove_file(desk.path("work/tre.tar")).unwrap();
    desk.run(&up).await.code(0).says("is healthy");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_is_believed_only_whole() {
    let (desk, _server) = offline().await;
    let path = desk.path("work/tre.tar");
    let whole = fs::read(&path).unwrap();
    let at = whole.windows(13).position(|window| window == b"kindest/node:").unwrap();
    let mut damaged = whole.clone();
    damaged[at] = b'K';
    for (content, code, words) in [
        (damaged.as_slice(), 1, "is damaged"),
        (&whole[..whole.len() / 2], 2, "cut short"),
        (b"not a tar", 2, "no bundle"),
    ] {
        fs::write(&path, content).unwrap();
        let before = desk.snapshot();
        desk.run(&["images", "load", "tre.tar"]).await.code(code).says(words).says("hint: ");
        desk.run(&["dev", "up", "alice", "--sample", "--offline", "--bundle", "tre.tar"]).await.code(code).says(words);
        assert_eq!(changes(&before, &desk.snapshot()), [] as [&str; 0], "{words}");
        desk.docker.change(|world| assert!(world.images.is_empty()));
    }
    fs::write(&path, &whole).unwrap();
    desk.run(&["images", "load", "tre.tar"]).await.code(0).says("5 images and 0 files are here");
    desk.docker.change(|world| assert_eq!(world.images.len(), 5, "{:?}", world.images.keys()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_bundle_lacks_is_told_before_anything_is_made() {
    let (desk, _server) = offline().await;
    let before = desk.snapshot();
    let up =
        ["dev", "up", "alice", "--sample", "--offline", "--bundle", "tre.tar", "--node-image", "kindest/node:v1.33.1"];
    desk.run(&up).await.code(5).says("kindest/node:v1.33.1 is not in the bundle");
    assert_eq!(changes(&before, &desk.snapshot()), [] as [&str; 0]);
    desk.docker.change(|world| assert!(world.images.is_empty()));
}
