//! The work tree as objects: what is in the snapshot, and that nothing of the user's changes by it.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use k8tre::gitops::tree::Tree;
use k8tre::ports::git::{Busy, TreeId};

use super::git_world::{BRANCH, Wanted, World, owner};

const LIMIT: u64 = 5 << 20;

/// A repository with something of every kind, some of it changed.
fn edited() -> World {
    let world = World::new();
    world.commit("tre", ".gitignore", "*.log\nbuild/\n", "Ignore");
    for name in ["kept.yaml", "changed.yaml", "deleted.yaml", "renamed.yaml", "tool.sh"] {
        world.commit("tre", name, &format!("{name}\n"), "More");
    }
    world.write("tre/changed.yaml", "changed\n");
    std::fs::remove_file(world.path("tre/deleted.yaml")).unwrap();
    std::fs::rename(world.path("tre/renamed.yaml"), world.path("tre/renamed-to.yaml")).unwrap();
    world.write("tre/new/deep/file.yaml", "new\n");
    world.write("tre/out.log", "ignored\n");
    world.write("tre/build/out.yaml", "ignored\n");
    std::fs::set_permissions(world.path("tre/tool.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("kept.yaml", world.path("tre/link.yaml")).unwrap();
    // Staged, and then changed once more: the file counts, not what is staged.
    world.write("tre/staged.yaml", "staged\n");
    world.git("tre", &["add", "staged.yaml"]);
    world.write("tre/staged.yaml", "staged and changed\n");
    world
}

async fn snapshot(world: &World, name: &str) -> TreeId {
    world.checkout(name).snapshot(LIMIT).await.unwrap().tree
}

fn listed(world: &World, name: &str, tree: TreeId) -> BTreeMap<String, String> {
    let text = world.git(name, &["ls-tree", "-r", &tree.to_string()]);
    let entry = |line: &str| {
        let (data, path) = line.split_once('\t').unwrap();
        let mut words = data.split(' ');
        (path.to_owned(), format!("{} {}", words.next().unwrap(), words.next().unwrap()))
    };
    text.lines().map(entry).collect()
}

fn content(world: &World, tree: TreeId, path: &str) -> String {
    world.git("tre", &["show", &format!("{tree}:{path}")])
}

/// Every file of a folder, byte for byte, but for git's objects, which only add up.
fn bytes(root: &Path, folder: &Path, all: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let name = path.strip_prefix(root).unwrap().display().to_string();
        if name == ".git/objects" {
            continue;
        }
        let data = std::fs::symlink_metadata(&path).unwrap();
        if data.is_dir() {
            bytes(root, &path, all);
        } else {
            let content = if data.is_symlink() { Vec::new() } else { std::fs::read(&path).unwrap() };
            let when = format!("{:?} {:o} ", data.modified().unwrap(), data.permissions().mode());
            all.insert(name, [when.into_bytes(), content].concat());
        }
    }
}

fn all_bytes(world: &World, name: &str) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    bytes(&world.path(name), &world.path(name), &mut all);
    all
}

#[tokio::test]
async fn the_snapshot_is_the_work_tree_as_it_is() {
    let world = edited();
    let tree = snapshot(&world, "tre").await;
    let files = listed(&world, "tre", tree);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            ".gitignore",
            "appsets/portal.yaml",
            "changed.yaml",
            "kept.yaml",
            "link.yaml",
            "new/deep/file.yaml",
            "renamed-to.yaml",
            "staged.yaml",
            "tool.sh"
        ]
    );
    assert_eq!((files["tool.sh"].as_str(), files["link.yaml"].as_str()), ("100755 blob", "120000 blob"));
    assert_eq!(content(&world, tree, "changed.yaml"), "changed");
    assert_eq!(content(&world, tree, "staged.yaml"), "staged and changed");
}

#[tokio::test]
async fn a_hundred_snapshots_change_no_byte_of_the_repository() {
    let world = edited();
    world.write("tre/kept.yaml", "stashed\n");
    world.git("tre", &["stash", "push", "--quiet", "kept.yaml"]);
    world.git("tre", &["config", "core.logAllRefUpdates", "always"]);
    let before = all_bytes(&world, "tre");
    let checkout = world.checkout("tre");
    let tip = checkout.write_branch(&Wanted::new("a").overlay(&checkout)).await.unwrap().commit;
    let name = "alice".parse().unwrap();
    for number in 0..100 {
        let work = checkout.snapshot(LIMIT).await.unwrap().tree;
        let merged = checkout.merge(work, BRANCH, tip).unwrap();
        let files = [(format!("apps/{number}.yaml"), "x".to_owned())].into();
        let tree = checkout.overlaid(merged, &files, &[]).unwrap();
        let commit = checkout.commit_work(tree, tip, "Work tree", &owner("id-1")).await.unwrap();
        checkout.keep(&name, commit).unwrap();
    }
    let after = all_bytes(&world, "tre");
    let differing: Vec<&String> = after
        .keys()
        .chain(before.keys())
        .filter(|path| before.get(*path) != after.get(*path))
        .filter(|path| !path.contains("refs/heads/dev/alice") && !path.contains("refs/k8tre/alice"))
        .collect();
    assert_eq!(differing, [] as [&String; 0]);
    checkout.forget_kept(&name).unwrap();
    assert!(checkout.kept(&name).unwrap().is_none());
    let left: Vec<String> = all_bytes(&world, "tre").into_keys().filter(|path| path.contains("k8tre")).collect();
    assert_eq!(left, [] as [&str; 0], "neither the reference nor its log");
}

#[tokio::test]
async fn line_endings_and_filters_are_those_of_a_commit() {
    let world = World::new();
    world.commit("tre", ".gitattributes", "*.txt text eol=crlf\n*.big filter=short\n", "Attributes");
    world.git("tre", &["config", "filter.short.clean", "head -c 4"]);
    world.write("tre/windows.txt", "a\r\nb\r\n");
    world.write("tre/data.big", &"x".repeat(6 << 20));
    let tree = snapshot(&world, "tre").await;
    assert_eq!(content(&world, tree, "windows.txt"), "a\nb");
    assert_eq!(content(&world, tree, "data.big"), "xxxx", "a filtered file is not as large as it looks");
}

#[tokio::test]
async fn large_new_files_are_refused_by_name_and_not_read() {
    let world = World::new();
    world.write("tre/dump.sql", &"x".repeat(3000));
    let checkout = world.checkout("tre");
    let objects = || world.git("tre", &["count-objects"]);
    let before = objects();
    let error = checkout.snapshot(2000).await.unwrap_err();
    assert!(error.to_string().contains("dump.sql (3 KiB)"), "{error}");
    assert!(error.hints().iter().any(|hint| hint.contains(".gitignore")), "{error:?}");
    assert_eq!(objects(), before);
    checkout.snapshot(3000).await.unwrap();
    world.git("tre", &["add", "dump.sql"]);
    assert!(checkout.snapshot(2000).await.is_ok(), "what the user added to the index is known to git");
    // … but the environment's branch does not have it.
    let head = checkout.tree_id(checkout.head().unwrap()).unwrap();
    let work = checkout.snapshot(2000).await.unwrap().tree;
    let error = checkout.check_new_files(head, work, 2000).unwrap_err();
    assert!(error.to_string().contains("dump.sql"), "{error}");
    checkout.check_new_files(work, work, 10).unwrap();
}

#[tokio::test]
async fn submodules_stay_and_other_repositories_are_left_out() {
    let world = World::new();
    world.repository("part");
    world.git("tre", &["submodule", "--quiet", "add", world.path("part").to_str().unwrap(), "part"]);
    world.git("tre", &["commit", "--quiet", "-m", "Add a submodule"]);
    world.git("tre/part", &["commit", "--quiet", "--allow-empty", "-m", "Go on"]);
    world.repository("tre/stray");
    world.write("tre/beside.yaml", "x\n");
    let taken = world.checkout("tre").snapshot(LIMIT).await.unwrap();
    let files = listed(&world, "tre", taken.tree);
    assert_eq!(files["part"], "160000 commit");
    assert!(files.contains_key("beside.yaml"));
    assert!(!files.keys().any(|path| path.starts_with("stray")), "{files:?}");
    assert_eq!(taken.left_out, ["stray"]);
}

#[tokio::test]
async fn linked_and_sparse_work_trees_are_read() {
    let world = World::new();
    world.commit("tre", "apps/a.yaml", "a\n", "Add");
    world.commit("tre", "docs/b.md", "b\n", "Add");
    world.git("tre", &["worktree", "add", "--quiet", "-b", "topic", "../linked"]);
    world.write("linked/apps/a.yaml", "edited\n");
    world.git("linked", &["sparse-checkout", "set", "apps"]);
    assert!(!world.path("linked/docs").exists());
    let tree = snapshot(&world, "linked").await;
    assert_eq!(world.git("linked", &["show", &format!("{tree}:apps/a.yaml")]), "edited");
    assert!(listed(&world, "linked", tree).contains_key("docs/b.md"), "what is not checked out is not deleted");
    let checkout = world.checkout("linked");
    assert_eq!(checkout.git_folders().unwrap().len(), 2);
    assert!(!world.git("tre", &["status", "--porcelain"]).contains("apps"));
}

#[tokio::test]
async fn a_split_index_leaves_no_parts_behind() {
    let world = edited();
    world.git("tre", &["config", "core.splitIndex", "true"]);
    world.git("tre", &["update-index", "--split-index"]);
    let before = all_bytes(&world, "tre");
    let tree = snapshot(&world, "tre").await;
    assert!(listed(&world, "tre", tree).contains_key("new/deep/file.yaml"));
    let after = all_bytes(&world, "tre");
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    assert!(before[".git/index"] == after[".git/index"]);
}

#[tokio::test]
async fn an_edit_that_only_the_clock_could_miss_is_seen() {
    let world = World::new();
    world.commit("tre", "a.yaml", "1\n", "Add");
    for round in 0..20 {
        // Same size, and written in the same instant as the index.
        let (first, second) = (format!("{}\n", round % 10), format!("{}\n", (round + 1) % 10));
        world.write("tre/a.yaml", &first);
        world.git("tre", &["add", "a.yaml"]);
        world.write("tre/a.yaml", &second);
        let tree = snapshot(&world, "tre").await;
        assert_eq!(content(&world, tree, "a.yaml"), second.trim());
    }
}

#[tokio::test]
async fn the_branchs_own_changes_and_the_work_trees_come_together() {
    let world = World::new();
    let checkout = world.checkout("tre");
    let tip = checkout.write_branch(&Wanted::new("overlay").overlay(&checkout)).await.unwrap().commit;
    world.write("tre/appsets/portal.yaml", "kind: ApplicationSet # edited\n");
    let work = snapshot(&world, "tre").await;
    let merged = checkout.files(checkout.merge(work, BRANCH, tip).unwrap()).unwrap();
    assert_eq!(merged.read("appsets/portal.yaml").unwrap(), b"kind: ApplicationSet # edited\n");
    assert_eq!(merged.read("overlays/developers/alice/kustomization.yaml").unwrap(), b"overlay");

    // On the branch itself there is nothing to merge, also where its overlay was edited.
    world.git("tre", &["switch", "--quiet", "--force", BRANCH]);
    world.write("tre/overlays/developers/alice/kustomization.yaml", "mine\n");
    let work = snapshot(&world, "tre").await;
    assert_eq!(checkout.merge(work, BRANCH, tip).unwrap(), work);
}

#[tokio::test]
async fn what_both_changed_is_told_by_file() {
    let world = World::new();
    world.git("tre", &["switch", "--quiet", "-c", BRANCH]);
    world.commit("tre", "appsets/portal.yaml", "kind: ApplicationSet\nby: branch\n", "Change");
    let checkout = world.checkout("tre");
    let tip = checkout.tip(BRANCH).unwrap().unwrap();
    world.git("tre", &["switch", "--quiet", "main"]);
    world.write("tre/appsets/portal.yaml", "kind: ApplicationSet\nby: hand\n");
    let work = snapshot(&world, "tre").await;
    let error = checkout.merge(work, BRANCH, tip).unwrap_err();
    assert!(error.to_string().contains("both changed appsets/portal.yaml"), "{error}");
    assert!(
        error
            .hints()
            .iter()
            .any(|hint| hint == "work on the branch itself, where there is nothing to merge: git switch dev/alice")
    );
    world.git("tre", &["checkout", "--quiet", "--", "."]);
    world.git("tre", &["switch", "--quiet", "--orphan", "elsewhere"]);
    world.git("tre", &["commit", "--quiet", "--allow-empty", "-m", "Another start"]);
    let error = checkout.merge(work, BRANCH, tip).unwrap_err();
    assert!(error.to_string().contains("no history in common"), "{error}");
}

#[tokio::test]
async fn a_merge_that_waits_for_its_user_is_not_deployed() {
    let world = World::new();
    world.git("tre", &["switch", "--quiet", "-c", "other"]);
    world.commit("tre", "a.yaml", "theirs\n", "Theirs");
    world.git("tre", &["switch", "--quiet", "main"]);
    world.commit("tre", "a.yaml", "ours\n", "Ours");
    let checkout = world.checkout("tre");
    assert_eq!(checkout.busy().unwrap(), Busy::No);
    assert!(!world.try_git("tre", &["merge", "--quiet", "other"]).status.success());
    assert_eq!(checkout.busy().unwrap(), Busy::With("a merge"));
    let error = checkout.snapshot(LIMIT).await.unwrap_err();
    assert!(error.to_string().contains("a merge is under way here, with conflicts in a.yaml"), "{error}");
    world.git("tre", &["merge", "--abort"]);
    assert_eq!(checkout.busy().unwrap(), Busy::No);
}

#[tokio::test]
async fn a_kept_work_tree_does_not_make_the_branch_safe_to_delete() {
    let world = World::new();
    let checkout = world.checkout("tre");
    let wanted = Wanted::new("overlay");
    checkout.write_branch(&wanted.overlay(&checkout)).await.unwrap();
    world.git("tre", &["switch", "--quiet", BRANCH]);
    world.commit("tre", "mine.yaml", "mine\n", "My own work");
    world.git("tre", &["switch", "--quiet", "main"]);
    let changed = Wanted::new("another overlay");
    let tip = checkout.write_branch(&changed.overlay(&checkout)).await.unwrap().commit;
    let tree = checkout.tree_id(tip).unwrap();
    let commit = checkout.commit_work(tree, tip, "Work tree", &owner("id-1")).await.unwrap();
    checkout.keep(&"alice".parse().unwrap(), commit).unwrap();
    let reason = checkout.kept_because(BRANCH, &owner("id-1")).await.unwrap();
    assert!(reason.is_some_and(|reason| reason.contains("My own work")));
}

#[tokio::test]
async fn ignored_files_are_no_news_and_known_ones_are() {
    let world = edited();
    world.git("tre", &["add", "--force", "out.log"]);
    let checkout = world.checkout("tre");
    let news =
        |name: &str| checkout.any_tracked(&[world.path("tre").canonicalize().unwrap().join(name)].into()).unwrap();
    assert!(news("changed.yaml") && news("brand-new.yaml") && news(".git/HEAD"));
    assert!(news("out.log"), "git knows it, whatever the rules say");
    assert!(!news("other.log") && !news("build/x.yaml"));
}
