//! Publishing: to a bare repository, to a real git daemon, and through a command in place of ssh.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use k8tre::error::{Kind, Result};
use k8tre::ports::git::{Checkout, CommitId, Lease, PushTarget, Pushed, Removal};

use crate::git_world::{BRANCH, Wanted, World, owner};

fn origin() -> PushTarget {
    PushTarget::Remote("origin".into())
}

async fn branch(checkout: &Checkout, content: &str) -> CommitId {
    checkout.write_branch(&Wanted::new(content).overlay(checkout)).await.unwrap().commit
}

async fn publish(checkout: &Checkout, tip: CommitId) -> Result<Pushed> {
    checkout.publish(&origin(), BRANCH, tip, &owner("id-1"), None).await
}

fn remote_tip(world: &World) -> String {
    world.git("remote.git", &["rev-parse", BRANCH])
}

#[tokio::test]
async fn a_branch_is_published_again_and_removed() {
    let world = World::new().with_remote();
    let checkout = world.checkout("tre");
    let first = branch(&checkout, "a\n").await;
    assert!(publish(&checkout, first).await.unwrap().changed);
    assert_eq!(remote_tip(&world), first.to_string());
    assert!(!publish(&checkout, first).await.unwrap().changed);
    let second = branch(&checkout, "b\n").await;
    assert!(publish(&checkout, second).await.unwrap().changed);
    let kept = checkout.delete_remote_branch(&origin(), BRANCH, &owner("id-2")).await.unwrap();
    assert!(matches!(&kept, Removal::Kept(why) if why.contains("another environment")), "{kept:?}");
    assert_eq!(
        checkout.delete_remote_branch(&origin(), BRANCH, &owner("id-1")).await.unwrap(),
        Removal::Deleted(second)
    );
    assert_eq!(checkout.delete_remote_branch(&origin(), BRANCH, &owner("id-1")).await.unwrap(), Removal::Absent);
}

#[tokio::test]
async fn a_remote_branch_that_moved_is_not_overwritten() {
    let world = World::new().with_remote();
    let checkout = world.checkout("tre");
    let first = branch(&checkout, "a\n").await;
    publish(&checkout, first).await.unwrap();
    // Somebody else pushes to it.
    world.git("", &["clone", "--quiet", "--branch", BRANCH, "remote.git", "other"]);
    let theirs = world.commit("other", "theirs.yaml", "x\n", "Theirs");
    world.git("other", &["push", "--quiet"]);
    let second = branch(&checkout, "b\n").await;

    for result in [
        publish(&checkout, second).await,
        checkout.push(&origin(), BRANCH, second, Lease::At(first)).await,
        checkout.push(&origin(), BRANCH, second, Lease::Absent).await,
    ] {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), Kind::Preflight, "{error:?}");
        assert!(error.to_string().contains("not overwritten"), "{error:?}");
        assert_eq!(remote_tip(&world), theirs);
    }
    let fetched = checkout.fetch(&origin(), BRANCH).await.unwrap().unwrap();
    assert_eq!(fetched.to_string(), theirs);
    assert_eq!(checkout.owner(fetched).unwrap(), None);
    let kept = checkout.delete_remote_branch(&origin(), BRANCH, &owner("id-1")).await.unwrap();
    assert!(matches!(&kept, Removal::Kept(why) if why.contains("Theirs")), "{kept:?}");
    assert_eq!(checkout.tip(BRANCH).unwrap(), Some(second));
}

#[tokio::test]
async fn a_remote_branch_of_somebody_else_or_without_room_is_refused_before_the_push() {
    let world = World::new().with_remote();
    let checkout = world.checkout("tre");
    let tip = branch(&checkout, "a\n").await;

    // It would be a fast-forward, and still it is not ours.
    world.git("remote.git", &["branch", BRANCH, "main"]);
    let error = publish(&checkout, tip).await.unwrap_err();
    assert!(error.to_string().contains("exists on origin and is not this environment's"), "{error}");

    // Another Alice, at another machine, with the same name for her environment.
    world.git("remote.git", &["branch", "-D", BRANCH]);
    world.git("", &["clone", "--quiet", "remote.git", "other"]);
    let other = world.checkout("other").with_variable("GIT_AUTHOR_EMAIL", "alice@elsewhere.example");
    let mut hers = Wanted::new("hers\n");
    hers.owner = owner("id-9");
    let her_tip = other.write_branch(&hers.overlay(&other)).await.unwrap().commit;
    other.publish(&origin(), BRANCH, her_tip, &hers.owner, None).await.unwrap();
    let error = publish(&checkout, tip).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Preflight);
    assert!(error.to_string().contains("is not this environment's"), "{error}");
    assert_eq!(remote_tip(&world), her_tip.to_string());

    world.git("remote.git", &["branch", "-D", BRANCH]);
    for blocker in ["dev", "dev/alice/x"] {
        world.git("remote.git", &["branch", blocker, "main"]);
        let error = publish(&checkout, tip).await.unwrap_err();
        assert!(error.to_string().contains(&format!("there is a branch {blocker} there")), "{error}");
        world.git("remote.git", &["branch", "-D", blocker]);
    }
    // Names that only end alike are in nobody's way.
    world.git("remote.git", &["branch", "team/dev", "main"]);
    world.git("remote.git", &["branch", "team/dev2/alice", "main"]);
    publish(&checkout, tip).await.unwrap();
}

#[tokio::test]
async fn ssh_asks_nobody_and_keeps_the_users_own_command() {
    let world = World::new().with_remote();
    world.script(
        "bin/ssh",
        &format!("echo \"$@\" >>{}\nfor last; do :; done\nexec sh -c \"$last\"", world.path("calls").display()),
    );
    let path = k8tre::ports::environment::var("PATH").unwrap();
    world.git(
        "tre",
        &["remote", "set-url", "origin", &format!("git@host.example:{}", world.path("remote.git").display())],
    );
    let checkout = world.checkout("tre").with_variable("PATH", format!("{}:{path}", world.path("bin").display()));
    let first = branch(&checkout, "a\n").await;
    publish(&checkout, first).await.unwrap();
    world.git("tre", &["config", "core.sshCommand", "ssh -i work.key"]);
    let second = branch(&checkout, "b\n").await;
    publish(&checkout, second).await.unwrap();
    let calls = std::fs::read_to_string(world.path("calls")).unwrap();
    assert!(calls.lines().count() >= 6 && calls.lines().all(|call| call.contains("-o BatchMode=yes")), "{calls}");
    assert!(calls.lines().last().unwrap().contains("-i work.key"), "{calls}");
}

#[tokio::test]
async fn a_rejection_is_an_error_with_the_servers_words() {
    let world = World::new().with_remote();
    world.script("remote.git/hooks/pre-receive", "echo 'policy 7: sign your work' >&2; exit 1");
    let checkout = world.checkout("tre");
    let tip = branch(&checkout, "a\n").await;
    let error = publish(&checkout, tip).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Failed);
    assert!(
        error.to_string().contains("origin rejected dev/alice") && error.to_string().contains("hook declined"),
        "{error}"
    );
    assert_eq!(error.detail_text(), Some("policy 7: sign your work"));
}

#[tokio::test]
async fn a_remote_that_accepts_and_does_otherwise_is_found_out() {
    let world = World::new().with_remote();
    world.script("remote.git/hooks/post-receive", "git update-ref refs/heads/dev/alice refs/heads/main");
    let checkout = world.checkout("tre");
    let tip = branch(&checkout, "a\n").await;
    let error = publish(&checkout, tip).await.unwrap_err();
    assert!(error.to_string().contains("accepted dev/alice at"), "{error}");
}

#[tokio::test]
async fn the_users_pre_push_hook_decides_for_remotes_and_not_for_the_cluster() {
    let world = World::new().with_remote();
    world.script("tre/.git/hooks/pre-push", "echo 'not on Fridays' >&2; exit 1");
    let checkout = world.checkout("tre");
    let tip = branch(&checkout, "a\n").await;
    let error = publish(&checkout, tip).await.unwrap_err();
    assert!(error.detail_text().is_some_and(|detail| detail.contains("not on Fridays")), "{error:?}");

    let target = cluster(&world);
    checkout.push(&target, BRANCH, tip, Lease::Any).await.unwrap();
    assert_eq!(remote_tip(&world), tip.to_string());
}

/// A command in place of ssh, as k8tre's own: it gets the host and the command for the other side.
fn cluster(world: &World) -> PushTarget {
    transport(world, "remote.git")
}

fn transport(world: &World, repository: &str) -> PushTarget {
    let repository = world.path(repository);
    let script =
        world.script("bin/transport", &format!("test \"$1\" = k8tre || exit 9\n${{2%% *}} {}", repository.display()));
    let env = vec![("K8TRE_TRANSPORT_CONTEXT".into(), "kind-k8tre-alice".into())];
    PushTarget::Command { url: "ssh://k8tre/git/tre.git".into(), ssh_command: script.display().to_string(), env }
}

#[tokio::test]
async fn the_cluster_takes_any_history_and_none_of_the_users_push_settings() {
    let world = World::new().with_remote();
    world.git("tre", &["config", "push.gpgSign", "true"]);
    world.git("tre", &["config", "push.followTags", "true"]);
    world.git("tre", &["config", "push.pushOption", "ci.skip"]);
    world.git("tre", &["config", "push.recurseSubmodules", "check"]);
    world.git("tre", &["tag", "-a", "-m", "v1", "v1"]);
    let (checkout, target) = (world.checkout("tre"), cluster(&world));
    let first = branch(&checkout, "a\n").await;
    assert!(checkout.push(&target, BRANCH, first, Lease::Any).await.unwrap().changed);
    let main = checkout.resolve("main").unwrap();
    checkout.push(&target, BRANCH, main, Lease::Any).await.unwrap();
    assert_eq!(checkout.remote_tip(&target, BRANCH).await.unwrap(), Some(main));
    assert!(!checkout.push(&target, BRANCH, main, Lease::Any).await.unwrap().changed);
    assert_eq!(world.git("remote.git", &["tag"]), "");
}

#[tokio::test]
async fn a_shallow_history_reaches_a_server_in_the_cluster_that_allows_it() {
    let world = World::new().with_remote();
    world.commit("tre", "more.yaml", "more\n", "More");
    world.git("", &["clone", "--quiet", "--depth=1", &format!("file://{}", world.path("tre").display()), "shallow"]);
    world.git("", &["init", "--quiet", "--bare", "empty.git"]);
    let target = transport(&world, "empty.git");
    let checkout = world.checkout("shallow");
    let tip = branch(&checkout, "a\n").await;
    let error = checkout.push(&target, BRANCH, tip, Lease::Any).await.unwrap_err();
    assert!(error.to_string().contains("shallow update not allowed"), "{error}");
    world.git("empty.git", &["config", "receive.shallowUpdate", "true"]);
    checkout.push(&target, BRANCH, tip, Lease::Any).await.unwrap();
    assert_eq!(world.git("empty.git", &["rev-parse", BRANCH]), tip.to_string());
}

#[tokio::test]
async fn the_push_address_is_the_one_that_is_looked_at() {
    let world = World::new().with_remote();
    world.git("", &["clone", "--quiet", "--bare", "remote.git", "push.git"]);
    world.git("tre", &["remote", "set-url", "--push", "origin", world.path("push.git").to_str().unwrap()]);
    let checkout = world.checkout("tre");
    let tip = branch(&checkout, "a\n").await;
    publish(&checkout, tip).await.unwrap();
    assert_eq!(checkout.remote_tip(&origin(), BRANCH).await.unwrap(), Some(tip));
    assert_eq!(world.git("push.git", &["rev-parse", BRANCH]), tip.to_string());
}

#[tokio::test]
async fn a_shallow_clone_and_a_worktree_publish_like_any_other() {
    let world = World::new().with_remote();
    world.commit("tre", "more.yaml", "more\n", "More");
    world.git("tre", &["push", "--quiet", "origin", "main"]);
    let url = format!("file://{}", world.path("remote.git").display());
    world.git("", &["clone", "--quiet", "--depth=1", &url, "shallow"]);
    world.git("shallow", &["worktree", "add", "--quiet", "--detach", "../linked"]);
    let checkout = world.checkout("linked");
    let first = branch(&checkout, "a\n").await;
    publish(&checkout, first).await.unwrap();
    let second = branch(&world.checkout("shallow"), "b\n").await;
    publish(&world.checkout("shallow"), second).await.unwrap();
    assert_eq!(remote_tip(&world), second.to_string());
}

#[tokio::test]
async fn names_that_git_would_take_for_options_or_addresses_are_refused() {
    let world = World::new().with_remote();
    let checkout = world.checkout("tre");
    let tip = branch(&checkout, "a\n").await;
    for remote in ["--receive-pack=touch x", "ext::sh -c id", "/tmp/elsewhere", "upstream"] {
        let error =
            checkout.publish(&PushTarget::Remote(remote.into()), BRANCH, tip, &owner("id-1"), None).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Usage, "{error}");
    }
    assert_eq!(checkout.push(&origin(), "-d", tip, Lease::Any).await.unwrap_err().kind(), Kind::Usage);
}

#[tokio::test]
async fn unreachable_remotes_fail_at_once_and_show_no_password() {
    let world = World::new();
    let url = "http://alice:s3cret@127.0.0.1:1/tre.git";
    world.git("tre", &["remote", "add", "origin", url]);
    let checkout = world.checkout("tre");
    let tip = branch(&checkout, "a\n").await;
    let started = Instant::now();
    let told = format!("{:?}", publish(&checkout, tip).await.unwrap_err());
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(told.contains("127.0.0.1") && !told.contains("s3cret"), "{told}");
}

/// Real `git daemon`, which speaks git's own protocol over TCP.
struct Daemon {
    child: Child,
    port: u16,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[allow(clippy::disallowed_methods)] // it has to run beside the test, which the adapter does not do
fn daemon(world: &World) -> Daemon {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // Not through `git`, which would leave the daemon behind when it is ended.
    let program = format!("{}/git-daemon", world.git("", &["--exec-path"]));
    let mut command = Command::new(program);
    command.args(["--export-all", "--enable=receive-pack", "--reuseaddr", "--listen=127.0.0.1"]);
    command.arg(format!("--port={port}")).arg(format!("--base-path={}", world.path("").display()));
    let child = command.envs(world.variables()).stderr(Stdio::null()).spawn().unwrap();
    let daemon = Daemon { child, port };
    let started = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(started.elapsed() < Duration::from_secs(10), "git daemon does not listen");
        std::thread::sleep(Duration::from_millis(10));
    }
    daemon
}

#[tokio::test]
async fn a_real_daemon_takes_the_branch_and_its_rejection_is_told() {
    let world = World::new().with_remote();
    let daemon = daemon(&world);
    world.git("tre", &["remote", "set-url", "origin", &format!("git://127.0.0.1:{}/remote.git", daemon.port)]);
    let checkout = world.checkout("tre");
    let first = branch(&checkout, "a\n").await;
    publish(&checkout, first).await.unwrap();
    assert_eq!(remote_tip(&world), first.to_string());

    world.script("remote.git/hooks/pre-receive", "printf 'no \\033[31mred\\033[0m commits\\n' >&2; exit 1");
    let second = branch(&checkout, "b\n").await;
    let error = publish(&checkout, second).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Failed);
    assert_eq!(error.detail_text(), Some("no red commits"));
    assert_eq!(remote_tip(&world), first.to_string());
}
