//! A branch carried over to a base that went on.

use k8tre::error::Kind;
use k8tre::ports::git::{Change, PushTarget};

use crate::git_world::{BRANCH, Wanted, World, owner};

/// Alice's branch with an overlay and a commit of Bob's; main goes on with `path`.
async fn moved_base(path: &str) -> World {
    let world = World::new().with_remote();
    let checkout = world.checkout("tre");
    checkout.write_branch(&Wanted::new("a\n").overlay(&checkout)).await.unwrap();
    world.git("tre", &["switch", "--quiet", BRANCH]);
    world.write("tre/mine.yaml", "mine\n");
    world.git("tre", &["add", "mine.yaml"]);
    let commit = [
        "commit",
        "--quiet",
        "--author=Bob <bob@example.org>",
        "--date=2020-02-03T04:05:06+05:30",
        "-m",
        "Mine\n\nWhy.",
    ];
    world.git("tre", &commit);
    world.git("tre", &["switch", "--quiet", "main"]);
    world.commit("tre", path, "from main\n", "Main goes on");
    world
}

#[tokio::test]
async fn every_commit_is_carried_over_with_author_date_and_message() {
    let world = moved_base("new.yaml").await;
    let checkout = world.checkout("tre");
    let (base, before) = (checkout.resolve("main").unwrap(), checkout.tip(BRANCH).unwrap().unwrap());
    let target = PushTarget::Remote("origin".into());
    checkout.publish(&target, BRANCH, before, &owner("id-1"), None).await.unwrap();

    let rebased = checkout.rebase_branch(BRANCH, base, &owner("id-1")).await.unwrap().unwrap();
    assert_eq!((rebased.previous, rebased.carried), (before, 2));
    let log = world.git("tre", &["log", "--format=%s|%an|%ad|%cn", "--date=iso", "-1", BRANCH]);
    assert_eq!(log, "Mine|Bob|2020-02-03 04:05:06 +0530|Alice");
    assert_eq!(world.git("tre", &["log", "-1", "--format=%b", BRANCH]), "Why.");
    assert_eq!(world.git("tre", &["rev-parse", "dev/alice~2"]), base.to_string());
    assert_eq!(world.git("tre", &["status", "--porcelain"]), "");

    // The overlay is still there and ours, and once is enough.
    let tip = checkout.write_branch(&Wanted::new("a\n").overlay(&checkout)).await.unwrap();
    assert_eq!((tip.commit, tip.change), (rebased.commit, Change::Unchanged));
    assert_eq!(checkout.rebase_branch(BRANCH, base, &owner("id-1")).await.unwrap(), None);

    // The remote has the old commits: they are replaced only because they are known.
    let error = checkout.publish(&target, BRANCH, rebased.commit, &owner("id-1"), None).await.unwrap_err();
    assert!(error.to_string().contains("not overwritten"), "{error}");
    checkout.publish(&target, BRANCH, rebased.commit, &owner("id-1"), Some(before)).await.unwrap();
    assert_eq!(world.git("remote.git", &["rev-parse", BRANCH]), rebased.commit.to_string());
}

#[tokio::test]
async fn a_conflict_names_commit_and_file_and_changes_nothing() {
    let world = moved_base("mine.yaml").await;
    let checkout = world.checkout("tre");
    let before = checkout.tip(BRANCH).unwrap();
    let error = checkout.rebase_branch(BRANCH, checkout.resolve("main").unwrap(), &owner("id-1")).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Preflight);
    assert!(error.to_string().contains("\"Mine\" and the base both changed mine.yaml"), "{error}");
    assert!(error.hints()[0].contains("git switch dev/alice && git rebase"), "{error:?}");
    assert_eq!(checkout.tip(BRANCH).unwrap(), before);
}

#[tokio::test]
async fn a_merge_is_left_to_its_author() {
    let world = moved_base("new.yaml").await;
    world.git("tre", &["switch", "--quiet", BRANCH]);
    world.git("tre", &["merge", "--quiet", "--no-edit", "main"]);
    world.git("tre", &["switch", "--quiet", "main"]);
    world.commit("tre", "newer.yaml", "newer\n", "Main goes on again");
    let checkout = world.checkout("tre");
    let error = checkout.rebase_branch(BRANCH, checkout.resolve("main").unwrap(), &owner("id-1")).await.unwrap_err();
    assert!(error.to_string().contains("is a merge"), "{error}");
}
