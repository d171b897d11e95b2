//! What a sync leaves of the developer's repository after many of them: all of it.

use std::collections::BTreeMap;
use std::path::Path;

use super::cli_whole::UP;
use super::support::desk::{Desk, changes};

const TRE: &str = "data/sample-tre";
const PAGE: &str = "apps/portal/base/index.html";
/// A hundred take a minute on a busy machine; what one leaves, twenty-five leave.
const SYNCS: usize = 25;

/// Every file of the work tree and of `.git`, byte for byte with its time of change; of git's objects only the names
/// of those that were there: new ones are what a sync makes. Our own reference is left out.
fn everything(folder: &Path, root: &Path, all: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let name = path.strip_prefix(root).unwrap().display().to_string();
        match () {
            () if name == ".git/objects" || name.starts_with(".git/refs/k8tre") => {}
            () if kind.is_dir() => everything(&path, root, all),
            () => {
                let changed = entry.metadata().unwrap().modified().unwrap();
                all.insert(name, format!("{changed:?} {:?}", std::fs::read(&path).unwrap()));
            }
        }
    }
}

fn looked(desk: &Desk) -> BTreeMap<String, String> {
    let (root, mut all) = (desk.path(TRE), BTreeMap::new());
    everything(&root, &root, &mut all);
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn many_syncs_leave_a_repository_in_the_middle_of_work_as_it_is() {
    let desk = Desk::new().await;
    desk.run(&UP).await.code(0);
    let git = |args: &[&str]| desk.git(TRE, args);
    let write = |file: &str, text: &str| desk.write(&format!("{TRE}/{file}"), text);
    git(&["branch", "other"]);
    git(&["tag", "--annotate", "v1", "--message", "One"]);
    git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    write("README.md", "put aside\n");
    git(&["stash"]);
    git(&["switch", "--quiet", "--create", "mine"]);
    write("README.md", "committed\n");
    git(&["commit", "--quiet", "--all", "--message", "Mine"]);
    write("README.md", "staged\n");
    git(&["add", "README.md"]);
    write("README.md", "staged and edited\n");
    write("notes.txt", "untracked\n");
    git(&["status"]);
    let page = std::fs::read_to_string(desk.path(TRE).join(PAGE)).unwrap();

    let before = looked(&desk);
    assert!([".git/index", ".git/HEAD", ".git/refs/stash", ".git/logs/HEAD"].iter().all(|it| before.contains_key(*it)));
    let mut commits = std::collections::BTreeSet::new();
    for turn in 0..SYNCS {
        write(PAGE, &format!("{page}<!-- {turn} -->\n"));
        desk.run(&["dev", "sync"]).await.code(0);
        commits.insert(desk.clusters.published("k8tre-alice", "dev/alice").unwrap());
    }
    assert_eq!(commits.len(), SYNCS, "each was another commit");
    let kept = git(&["for-each-ref", "--format=%(refname)", "refs/k8tre"]);
    let after = looked(&desk);
    assert_eq!(kept, "refs/k8tre/alice");
    let changed: Vec<String> = changes(&before, &after).into_iter().filter(|what| !what.contains(PAGE)).collect();
    assert!(
        changed.is_empty(),
        "{}",
        changed.iter().map(|what| &what[..what.len().min(80)]).collect::<Vec<_>>().join("\n")
    );
    git(&["fsck", "--no-dangling"]);
}
