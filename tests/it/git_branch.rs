//! The developer's branch: what is written, what is never touched, what is refused, what is deleted.

use std::collections::BTreeMap;
use std::path::Path;

use k8tre::error::Kind;
use k8tre::ports::git::{BaseMoved, Change, Removal};

use crate::git_world::{BRANCH, Wanted, World, files, owner};

/// Every file of the work tree and of .git, except new objects and the branch itself.
fn snapshot(root: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, folder: &Path, all: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if [".git/objects", ".git/refs/heads/dev", ".git/logs/refs/heads/dev"].contains(&name.as_str()) {
                continue;
            }
            match path.is_dir() {
                true => walk(root, &path, all),
                false => drop(all.insert(name, std::fs::read(&path).unwrap())),
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(root, root, &mut all);
    all
}

#[tokio::test]
async fn writing_the_branch_leaves_checkout_index_head_stash_and_reflog_byte_for_byte() {
    let world = World::new();
    world.git("tre", &["worktree", "add", "--quiet", "-b", "topic", "../linked"]);
    world.write("tre/appsets/portal.yaml", "stashed: true\n");
    world.git("tre", &["stash", "--quiet"]);
    world.write("tre/appsets/portal.yaml", "staged: true\n");
    world.git("tre", &["add", "."]);
    world.write("tre/appsets/portal.yaml", "edited: true\n");
    world.write("tre/untracked.txt", "mine\n");
    let before = (snapshot(&world.path("tre")), snapshot(&world.path("linked")));

    let checkout = world.checkout("tre");
    let first = checkout.write_branch(&Wanted::new("a\n").overlay(&checkout)).await.unwrap();
    let second = checkout.write_branch(&Wanted::new("b\n").overlay(&checkout)).await.unwrap();

    assert_eq!((first.change, second.change), (Change::Created, Change::Added));
    assert_eq!((snapshot(&world.path("tre")), snapshot(&world.path("linked"))), before);
    let shown = world.git("tre", &["show", "dev/alice:overlays/developers/alice/kustomization.yaml"]);
    assert_eq!(shown, "b");
    assert_eq!(world.git("tre", &["fsck", "--strict"]), "");
}

#[tokio::test]
async fn a_second_run_with_nothing_to_change_writes_nothing() {
    let world = World::new();
    let checkout = world.checkout("tre");
    let wanted = Wanted::new("a\n");
    assert_eq!(checkout.overlay_differences(&wanted.overlay(&checkout)).unwrap().len(), 1);
    let first = checkout.write_branch(&wanted.overlay(&checkout)).await.unwrap();
    let objects = world.git("tre", &["count-objects", "-v"]);
    let again = checkout.write_branch(&wanted.overlay(&checkout)).await.unwrap();
    assert_eq!((again.commit, again.change), (first.commit, Change::Unchanged));
    assert!(checkout.overlay_differences(&wanted.overlay(&checkout)).unwrap().is_empty());
    assert_eq!(world.git("tre", &["count-objects", "-v"]), objects);
}

#[tokio::test]
async fn the_commit_is_the_users_on_the_base_and_names_the_environment() {
    let world = World::new();
    let checkout = world.checkout("tre");
    let tip = checkout.write_branch(&Wanted::new("a\n").overlay(&checkout)).await.unwrap().commit;
    let shown =
        world.git("tre", &["log", "-1", "--format=%an <%ae>|%cn|%P|%s|%(trailers:key=K8tre-Environment)", BRANCH]);
    let main = world.git("tre", &["rev-parse", "main"]);
    assert_eq!(
        shown,
        format!("Alice <alice@example.org>|Alice|{main}|Add alice's overlay|K8tre-Environment: alice id-1")
    );
    assert!(checkout.is_ours(tip, "id-1").unwrap());
    assert!(!checkout.is_ours(tip, "id-2").unwrap());
    assert!(!checkout.is_ours(checkout.resolve("main").unwrap(), "id-1").unwrap());
}

#[tokio::test]
async fn the_developers_own_commits_and_overrides_stay() {
    let world = World::new();
    let checkout = world.checkout("tre");
    let env = "apps/portal/envs/dev-alice/kustomization.yaml";
    let mut wanted = Wanted::new("a\n");
    wanted.seeds = files(&[(env, "resources: [../dev]\n")]);
    checkout.write_branch(&wanted.overlay(&checkout)).await.unwrap();

    world.git("tre", &["switch", "--quiet", BRANCH]);
    let own = world.commit("tre", env, "mine: true\n", "My override");
    world.git("tre", &["switch", "--quiet", "main"]);
    let unchanged = checkout.write_branch(&wanted.overlay(&checkout)).await.unwrap();
    assert_eq!((unchanged.commit.to_string(), unchanged.change), (own.clone(), Change::Unchanged));

    wanted.files = Wanted::new("b\n").files;
    checkout.write_branch(&wanted.overlay(&checkout)).await.unwrap();
    assert_eq!(world.git("tre", &["rev-parse", "dev/alice~1"]), own);
    assert_eq!(world.git("tre", &["show", &format!("{BRANCH}:{env}")]), "mine: true");
}

#[tokio::test]
async fn removal_takes_files_and_folders_and_leaves_no_empty_folder() {
    let world = World::new();
    world.commit("tre", "apps/a/envs/dev-alice/kustomization.yaml", "a\n", "A");
    world.commit("tre", "apps/b/envs/dev-alice/kustomization.yaml", "b\n", "B");
    let checkout = world.checkout("tre");
    let mut wanted = Wanted::new("a\n");
    wanted.remove =
        ["apps/a/envs/dev-alice/kustomization.yaml", "apps/b/envs/dev-alice/", "apps/absent"].map(String::from).into();
    checkout.write_branch(&wanted.overlay(&checkout)).await.unwrap();
    // With -t, folders without files are listed too.
    let tree = world.git("tre", &["ls-tree", "-r", "-t", "--name-only", BRANCH]);
    assert!(tree.lines().all(|path| path != "apps" && !path.starts_with("apps/")), "{tree}");
    assert_eq!(world.git("tre", &["fsck", "--strict"]), "");
}

#[tokio::test]
async fn modes_stay_and_line_endings_are_those_of_the_text() {
    let world = World::new();
    world.settings("[user]\n\tname = A\n\temail = a@b.c\n[core]\n\tautocrlf = true\n\teol = crlf\n");
    world.write("tre/.gitattributes", "* text eol=crlf\n");
    let path = "overlays/developers/alice/kustomization.yaml";
    world.commit("tre", path, "old\n", "Old");
    world.git("tre", &["update-index", "--chmod=+x", path]);
    world.git("tre", &["commit", "--quiet", "-m", "Executable"]);
    let checkout = world.checkout("tre");
    for text in ["one\ntwo\n", "one\r\ntwo\r\n"] {
        let wanted = Wanted::new(text);
        checkout.write_branch(&wanted.overlay(&checkout)).await.unwrap();
        let size = world.git("tre", &["cat-file", "-s", &format!("{BRANCH}:{path}")]);
        assert_eq!(size, text.len().to_string());
        assert_eq!(checkout.write_branch(&wanted.overlay(&checkout)).await.unwrap().change, Change::Unchanged);
    }
    assert!(world.git("tre", &["ls-tree", BRANCH, path]).starts_with("100755"));
}

#[tokio::test]
async fn branches_that_are_not_k8tres_or_block_its_name_are_refused() {
    for (make, said) in [
        (&["branch", BRANCH][..], "the branch dev/alice exists here and is not this environment's"),
        (&["branch", "dev"][..], "there is a branch dev"),
        (&["branch", "dev/alice/x"][..], "there is a branch dev/alice/x"),
    ] {
        let world = World::new();
        world.git("tre", make);
        let checkout = world.checkout("tre");
        let before = world.git("tre", &["for-each-ref"]);
        let error = checkout.write_branch(&Wanted::new("a\n").overlay(&checkout)).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Preflight);
        assert!(error.to_string().contains(said), "{error}");
        assert!(error.hints().iter().any(|hint| hint.contains("git branch -m")), "{error:?}");
        assert_eq!(world.git("tre", &["for-each-ref"]), before);
    }
}

#[tokio::test]
async fn paths_that_the_repository_uses_otherwise_are_refused() {
    let world = World::new();
    world.repository("library");
    world.git("tre", &["submodule", "--quiet", "add", "../library", "vendor"]);
    world.git("tre", &["commit", "--quiet", "-m", "Library"]);
    let checkout = world.checkout("tre");
    for (path, said) in [
        ("vendor/new.yaml", "a submodule at vendor"),
        ("appsets", "a folder at appsets"),
        ("appsets/portal.yaml/new", "a file at appsets/portal.yaml"),
        ("../out", "no path"),
        ("a/.git/config", "no path"),
    ] {
        let mut wanted = Wanted::new("a\n");
        wanted.files = files(&[(path, "x")]);
        let error = checkout.write_branch(&wanted.overlay(&checkout)).await.unwrap_err();
        assert!(error.to_string().contains(said), "{path}: {error}");
    }
    assert_eq!(checkout.tip(BRANCH).unwrap(), None);
}

#[tokio::test]
async fn a_checked_out_branch_is_not_moved_under_the_users_feet() {
    let world = World::new();
    let checkout = world.checkout("tre");
    let wanted = Wanted::new("a\n");
    let tip = checkout.write_branch(&wanted.overlay(&checkout)).await.unwrap();
    world.git("tre", &["worktree", "add", "--quiet", "../linked", BRANCH]);
    assert_eq!(checkout.write_branch(&wanted.overlay(&checkout)).await.unwrap().change, Change::Unchanged);
    let error = checkout.write_branch(&Wanted::new("b\n").overlay(&checkout)).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Preflight);
    assert!(error.to_string().contains("checked out in") && error.to_string().contains("linked"), "{error}");
    let kept = checkout.delete_branch(BRANCH, &wanted.owner).await.unwrap();
    assert!(matches!(&kept, Removal::Kept(why) if why.contains("is checked out in")), "{kept:?}");
    assert_eq!(checkout.tip(BRANCH).unwrap(), Some(tip.commit));
}

#[tokio::test]
async fn a_lock_of_the_index_does_not_matter_and_one_of_the_branch_is_named() {
    let world = World::new();
    let checkout = world.checkout("tre");
    world.write("tre/.git/index.lock", "");
    checkout.write_branch(&Wanted::new("a\n").overlay(&checkout)).await.unwrap();
    world.write("tre/.git/refs/heads/dev/alice.lock", "");
    let error = checkout.write_branch(&Wanted::new("b\n").overlay(&checkout)).await.unwrap_err();
    let told = format!("{error:?}");
    assert!(told.contains("cannot move the branch dev/alice") && told.contains("alice.lock"), "{told}");
    assert!(told.contains("remove the lock file"), "{told}");
}

#[tokio::test]
async fn without_an_identity_nothing_is_written() {
    let world = World::new();
    world.settings("[user]\n\tuseConfigOnly = true\n");
    let checkout = world.checkout("tre");
    let error = checkout.write_branch(&Wanted::new("a\n").overlay(&checkout)).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Preflight);
    assert_eq!(checkout.tip(BRANCH).unwrap(), None);
}

#[tokio::test]
async fn commits_are_signed_where_git_commit_signs_and_a_failing_signature_stops() {
    let world = World::new();
    // Stands for gpg: git wants a signature on stdout and this line on the status channel.
    let gpg = world.script(
        "bin/gpg",
        "cat >/dev/null\necho '[GNUPG:] SIG_CREATED D' >&2\nprintf -- '-----BEGIN PGP SIGNATURE-----\\n\\nby %s\\n-----END PGP SIGNATURE-----\\n' \"$3\"",
    );
    world.git("tre", &["config", "commit.gpgSign", "true"]);
    world.git("tre", &["config", "user.signingKey", "KEY1"]);
    world.git("tre", &["config", "gpg.program", gpg.to_str().unwrap()]);
    let checkout = world.checkout("tre");
    checkout.write_branch(&Wanted::new("a\n").overlay(&checkout)).await.unwrap();
    let commit = world.git("tre", &["cat-file", "-p", BRANCH]);
    assert!(commit.contains("gpgsig -----BEGIN PGP SIGNATURE-----") && commit.contains("by KEY1"), "{commit}");

    world.script("bin/gpg", "echo 'gpg: no secret key' >&2; exit 2");
    let before = checkout.tip(BRANCH).unwrap();
    let error = checkout.write_branch(&Wanted::new("b\n").overlay(&checkout)).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Preflight);
    assert!(format!("{error:?}").contains("cannot make a signed commit"), "{error:?}");
    assert_eq!(checkout.tip(BRANCH).unwrap(), before);
}

#[tokio::test]
async fn a_branch_that_moves_meanwhile_is_not_overwritten() {
    let world = World::new();
    let checkout = world.checkout("tre");
    checkout.write_branch(&Wanted::new("a\n").overlay(&checkout)).await.unwrap();
    // Signing is the moment at which somebody else, here the signing program, moves the branch.
    let root = world.path("tre");
    let gpg = world.script(
        "bin/gpg",
        &format!(
            "cat >/dev/null\ngit -C {0} update-ref refs/heads/{BRANCH} main\necho '[GNUPG:] SIG_CREATED D' >&2\n\
             printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nx\\n-----END PGP SIGNATURE-----\\n'",
            root.display()
        ),
    );
    world.git("tre", &["config", "commit.gpgSign", "true"]);
    world.git("tre", &["config", "gpg.program", gpg.to_str().unwrap()]);
    let error = checkout.write_branch(&Wanted::new("b\n").overlay(&checkout)).await.unwrap_err();
    assert!(error.to_string().contains("cannot move the branch dev/alice"), "{error}");
    assert_eq!(checkout.tip(BRANCH).unwrap(), Some(checkout.resolve("main").unwrap()));
}

#[tokio::test]
async fn a_moved_base_is_reported_and_the_branch_stays() {
    let world = World::new();
    let checkout = world.checkout("tre");
    let wanted = Wanted::new("a\n");
    let tip = checkout.write_branch(&wanted.overlay(&checkout)).await.unwrap().commit;
    assert_eq!(checkout.base_moved(BRANCH, checkout.resolve("main").unwrap()).unwrap(), None);
    world.commit("tre", "new.yaml", "new\n", "New");
    let base = checkout.resolve("main").unwrap();
    assert_eq!(checkout.base_moved(BRANCH, base).unwrap(), Some(BaseMoved { missing: 1, own: 1 }));
    assert_eq!(checkout.write_branch(&wanted.overlay(&checkout)).await.unwrap().commit, tip);
}

#[tokio::test]
async fn down_deletes_only_what_k8tre_made_for_this_environment() {
    let world = World::new();
    let checkout = world.checkout("tre");
    let wanted = Wanted::new("a\n");
    assert_eq!(checkout.delete_branch(BRANCH, &wanted.owner).await.unwrap(), Removal::Absent);
    let tip = checkout.write_branch(&wanted.overlay(&checkout)).await.unwrap().commit;
    let kept = checkout.delete_branch(BRANCH, &owner("id-2")).await.unwrap();
    assert!(matches!(&kept, Removal::Kept(why) if why.contains("another environment")), "{kept:?}");

    world.git("tre", &["config", "branch.dev/alice.description", "mine"]);
    world.git("tre", &["config", "branch.dev/alice2.description", "other"]);
    assert_eq!(checkout.delete_branch(BRANCH, &wanted.owner).await.unwrap(), Removal::Deleted(tip));
    assert_eq!(world.git("tre", &["branch", "--list"]), "* main");
    let config = std::fs::read_to_string(world.path("tre/.git/config")).unwrap();
    assert!(!config.contains("\"dev/alice\"") && config.contains("\"dev/alice2\""), "{config}");
}

#[tokio::test]
async fn down_keeps_a_branch_whose_commits_would_be_lost() {
    let world = World::new();
    let checkout = world.checkout("tre");
    let owned = Wanted::new("a\n").owner;
    checkout.write_branch(&Wanted::new("a\n").overlay(&checkout)).await.unwrap();
    world.git("tre", &["switch", "--quiet", BRANCH]);
    world.commit("tre", "mine.yaml", "mine\n", "My work");
    world.git("tre", &["switch", "--quiet", "main"]);
    let kept = checkout.delete_branch(BRANCH, &owned).await.unwrap();
    assert!(matches!(&kept, Removal::Kept(why) if why.contains("My work")), "{kept:?}");

    // An overlay commit on top of it does not make it k8tre's.
    checkout.write_branch(&Wanted::new("b\n").overlay(&checkout)).await.unwrap();
    let kept = checkout.delete_branch(BRANCH, &owned).await.unwrap();
    assert!(matches!(&kept, Removal::Kept(why) if why.contains("a commit of your own")), "{kept:?}");

    // Once another branch has it, nothing is lost.
    world.git("tre", &["branch", "safe", "dev/alice~1"]);
    assert!(matches!(checkout.delete_branch(BRANCH, &owned).await.unwrap(), Removal::Deleted(_)));
}

#[tokio::test]
async fn a_branch_that_another_git_is_about_to_let_go_of_is_waited_for() {
    let world = World::new();
    let checkout = world.checkout("tre");
    let wanted = Wanted::new("a\n");
    checkout.write_branch(&wanted.overlay(&checkout)).await.unwrap();
    // As a git that was asked to end holds it for a moment longer.
    let lock = world.path("tre").join(format!(".git/refs/heads/{BRANCH}.lock"));
    std::fs::write(&lock, "").unwrap();
    let ending = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(700));
        std::fs::remove_file(lock).unwrap();
    });
    assert!(matches!(checkout.delete_branch(BRANCH, &wanted.owner).await.unwrap(), Removal::Deleted(_)));
    ending.join().unwrap();
}
