//! Which repositories are accepted, and what is read from them.

use assert_cmd::Command;
use k8tre::error::Kind;
use k8tre::gitops::tree::Tree;
use k8tre::ports::git::{Checkout, DirtySummary};

use crate::git_world::World;

fn refusal(path: &std::path::Path) -> String {
    let error = Checkout::open(path).unwrap_err();
    assert_eq!(error.kind(), Kind::Usage, "{error}");
    format!("{error:?}")
}

#[test]
fn what_is_no_usable_repository_is_refused_with_what_to_do() {
    let world = World::new();
    assert!(refusal(&world.path("nowhere")).contains("does not exist"));
    assert!(refusal(&world.path("home")).contains("is not in a git repository"));

    world.git("", &["init", "--quiet", "--bare", "bare.git"]);
    assert!(refusal(&world.path("bare.git")).contains("is a bare repository"));

    world.git("", &["init", "--quiet", "empty"]);
    assert!(refusal(&world.path("empty")).contains("without commits"));

    world.git("tre", &["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", world.path("tre").display());
    world.git("", &["clone", "--quiet", "--filter=blob:none", &url, "partial"]);
    let told = refusal(&world.path("partial"));
    assert!(told.contains("is a partial clone"), "{told}");
    // The proposed command makes it usable.
    let command = told.lines().find_map(|line| line.strip_prefix("hint: to complete it: ")).unwrap();
    Command::new("sh").args(["-c", command]).envs(world.variables()).assert().success();
    Checkout::open(&world.path("partial")).unwrap();
}

#[test]
fn any_folder_of_it_a_worktree_a_shallow_clone_and_a_submodule_are_the_repository_that_git_says() {
    let world = World::new();
    world.commit("tre", "apps/portal/envs/dev/kustomization.yaml", "resources: []\n", "Portal");
    let root = world.path("tre").canonicalize().unwrap();
    let inner = world.checkout("tre/apps/portal/envs");
    assert_eq!(inner.root(), root);
    assert_eq!(inner.head_branch().as_deref(), Some("main"));

    world.git("tre", &["worktree", "add", "--quiet", "-b", "topic", "../linked"]);
    let linked = world.checkout("linked");
    assert_eq!(linked.root(), world.path("linked").canonicalize().unwrap());
    assert_eq!(linked.head_branch().as_deref(), Some("topic"));
    assert_eq!(linked.resolve("main").unwrap(), inner.resolve("main").unwrap());

    let url = format!("file://{}", world.path("tre").display());
    world.git("", &["clone", "--quiet", "--depth=1", "--branch=main", &url, "shallow"]);
    let shallow = world.checkout("shallow");
    assert_eq!(shallow.tree(shallow.resolve("main").unwrap()).unwrap().paths().len(), 2);

    world.repository("library");
    world.git("tre", &["submodule", "--quiet", "add", "../library", "vendor/library"]);
    assert_eq!(world.checkout("tre/vendor/library").root(), root.join("vendor/library"));
    world.git("tre", &["commit", "--quiet", "-m", "Library"]);
    let tree = inner.tree(inner.head().unwrap()).unwrap();
    assert!(tree.paths().iter().all(|path| !path.starts_with("vendor")), "{:?}", tree.paths());
}

#[test]
fn a_branch_is_the_local_one_or_else_origins_and_a_typing_error_is_recognised() {
    let world = World::new().with_remote();
    let main = world.git("tre", &["rev-parse", "main"]);
    world.git("tre", &["push", "--quiet", "origin", "main:release-1.2"]);
    world.git("tre", &["fetch", "--quiet"]);
    let checkout = world.checkout("tre");
    assert_eq!(checkout.resolve("release-1.2").unwrap().to_string(), main);
    let error = format!("{:?}", checkout.resolve("relaese-1.2").unwrap_err());
    assert!(error.contains("no branch relaese-1.2") && error.contains("similar: release-1.2"), "{error}");
    let error = checkout.resolve("--upload-pack=x").unwrap_err();
    assert!(error.to_string().contains("cannot be the name"), "{error}");
}

#[tokio::test]
async fn the_identity_is_that_of_git_commit_and_its_absence_stops() {
    let world = World::new();
    let identity = world.checkout("tre").identity().await.unwrap();
    assert_eq!((identity.name.as_str(), identity.email.as_str()), ("Alice", "alice@example.org"));
    assert_eq!(identity.proposal().as_str(), "alice");

    let checkout = world.checkout("tre").with_variable("GIT_AUTHOR_EMAIL", "al@work.example");
    assert_eq!(checkout.identity().await.unwrap().email, "al@work.example");

    world.settings("[user]\n\tuseConfigOnly = true\n");
    let error = world.checkout("tre").identity().await.unwrap_err();
    assert_eq!(error.kind(), Kind::Preflight);
    assert!(error.hints().iter().any(|hint| hint.contains("git config --global user.email")), "{error:?}");
}

#[tokio::test]
async fn changed_and_untracked_files_are_counted_without_touching_the_index() {
    let world = World::new();
    world.commit("tre", "old.yaml", "a long enough text to be recognised after a rename\n", "Old");
    assert_eq!(world.checkout("tre").dirty().await.unwrap(), DirtySummary::default());
    world.git("tre", &["mv", "old.yaml", "new.yaml"]);
    world.write("tre/appsets/portal.yaml", "changed: true\n");
    world.write("tre/notes/a.txt", "a");
    world.write("tre/notes/b.txt", "b");
    let index = std::fs::read(world.path("tre/.git/index")).unwrap();
    let summary = world.checkout("tre").dirty().await.unwrap();
    assert_eq!(summary, DirtySummary { changed: 2, untracked: 1 });
    assert_eq!(std::fs::read(world.path("tre/.git/index")).unwrap(), index);
}

#[test]
fn files_are_read_from_the_commit_through_links_inside_it() {
    let world = World::new();
    let checkout = world.checkout("tre");
    for (link, target) in [("portal.yaml", "appsets/portal.yaml"), ("out", "../home/.gitconfig"), ("circle", "circle")]
    {
        std::os::unix::fs::symlink(target, world.path("tre").join(link)).unwrap();
    }
    world.git("tre", &["add", "."]);
    world.git("tre", &["commit", "--quiet", "-m", "Links"]);
    world.write("tre/appsets/portal.yaml", "only in the work tree\n");
    let tree = checkout.tree(checkout.head().unwrap()).unwrap();
    assert_eq!(tree.paths(), ["appsets/portal.yaml", "portal.yaml"]);
    assert_eq!(tree.read("portal.yaml").unwrap(), b"kind: ApplicationSet\n");
    assert!(tree.read("out").is_err() && tree.read("circle").is_err());
    assert!(tree.read("nothing").unwrap_err().to_string().contains("there is no file nothing"));
}

/// Root alone can give a repository to somebody else; elsewhere there is nothing to see.
#[test]
fn another_users_repository_is_refused_with_gits_own_remedy() {
    let world = World::new();
    for path in ["tre", "tre/.git"] {
        if std::os::unix::fs::chown(world.path(path), Some(65534), None).is_err() {
            return;
        }
    }
    let told = refusal(&world.path("tre"));
    assert!(told.contains("belongs to another user") && told.contains("--add safe.directory"), "{told}");
}
