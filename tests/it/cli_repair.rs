//! Environments that something happened to: repaired by `up`, removed by `down`, told by `status`.

use rustix::process::Signal;

use super::cli_whole::{UP, sample_in};
use super::support::desk::{Desk, changes};
use super::support::gate::Rule;

#[tokio::test(flavor = "multi_thread")]
async fn up_repairs_what_was_lost() {
    let desk = Desk::new().await;
    desk.run(&UP).await.code(0);
    for (plural, name, step) in [
        ("secrets", "k8tre-cluster-alice", "registration"),
        ("deployments", "argocd-repo-server", "argocd"),
        ("deployments", "k8tre-git", "git-server"),
        ("applications", "root-app-of-apps-alice", "root"),
        ("applications", "portal-alice", "applications"),
    ] {
        desk.clusters.lose("k8tre-alice", plural, name);
        let status = desk.run(&["dev", "status", "-o", "json"]).await;
        // The fake Argo CD makes a lost Application at the next look, as the real one does.
        if step != "applications" {
            status.code(3);
            let steps = status.json()["steps"].as_array().unwrap().clone();
            assert!(steps.iter().any(|one| one["id"] == step && one["state"] != "ready"), "{name}: {steps:?}");
        }
        desk.run(&["dev", "up"]).await.code(0);
        desk.run(&["dev", "status"]).await.code(0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_or_lost_cluster_is_told_and_mended() {
    let desk = Desk::new().await;
    desk.run(&UP).await.code(0);
    let node = desk.docker.containers().join("k8tre-alice-control-plane.json");
    let stopped = std::fs::read_to_string(&node).unwrap().replace("\"running\"", "\"exited\"");
    std::fs::write(&node, stopped).unwrap();
    let status = desk.run(&["dev", "status"]).await;
    assert!(status.code(3).stdout.contains("stopped"), "{}", status.stdout);
    desk.run(&["dev", "up"]).await.code(0);
    desk.run(&["dev", "status"]).await.code(0);

    std::fs::remove_file(&node).unwrap();
    let status = desk.run(&["dev", "status"]).await;
    assert!(status.code(3).stdout.contains("absent"), "{}", status.stdout);
    desk.run(&["dev", "up"]).await.code(0).says("healthy");
    std::fs::remove_file(desk.path("data/environments/alice/kubeconfig")).unwrap();
    desk.run(&["dev", "up"]).await.code(0).says("healthy");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unhealthy_application_is_named_with_its_exit_code() {
    let desk = Desk::new().await;
    desk.clusters.health("portal", "Degraded");
    let up = desk.run(&["dev", "up", "alice", "--sample", "--timeout", "1s"]).await;
    up.code(3)
        .says("1 of 7 Applications are not healthy")
        .says("portal-alice Degraded <- ")
        .says("k8tre dev status alice");
    desk.run(&["dev", "up", "--no-wait"]).await.code(0).says("on its way");
    let status = desk.run(&["dev", "status"]).await;
    assert!(status.code(3).stdout.contains("Degraded"), "{}", status.stdout);
    desk.run(&["dev", "down"]).await.code(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn down_finds_everything_without_the_journal() {
    for damage in [None, Some("{\"schema\": 1, \"id\""), Some(""), Some("{\"schema\": 1}"), Some("\0\0\0\0")] {
        let desk = Desk::new().await;
        sample_in(&desk, "tre").await;
        let before = desk.snapshot();
        desk.run_in("tre", &["dev", "up", "alice"]).await.code(0);
        let journal = desk.path("data/environments/alice/journal.json");
        match damage {
            Some(text) => std::fs::write(&journal, text).unwrap(),
            None => std::fs::remove_dir_all(desk.path("data")).unwrap(),
        }
        let down = desk.run_in("tre", &["dev", "down", "alice"]).await;
        down.code(0).says("nothing left");
        // Docker's network carries no mark, so that it may be another's and stays.
        let left = changes(&before, &desk.snapshot());
        assert!(left.iter().all(|what| what.ends_with("networks/kind.json")), "{damage:?}: {left:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_of_a_newer_k8tre_is_not_misread() {
    let desk = Desk::new().await;
    desk.run(&UP).await.code(0);
    let path = desk.path("data/environments/alice/journal.json");
    let newer = std::fs::read_to_string(&path).unwrap().replace("\"schema\": 1", "\"schema\": 99");
    std::fs::write(&path, &newer).unwrap();
    desk.run(&["dev", "up"]).await.code(1).says("another version of k8tre");
    desk.run(&["dev", "status"]).await.code(1).says("another version of k8tre");
    desk.run(&["dev", "list"]).await.code(0);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), newer);
}

#[tokio::test(flavor = "multi_thread")]
async fn down_works_with_the_cluster_and_the_repository_gone() {
    let desk = Desk::new().await;
    sample_in(&desk, "tre").await;
    let repo = desk.path("tre").display().to_string();
    desk.run(&["dev", "up", "alice", "--repo", &repo]).await.code(0);
    std::fs::remove_file(desk.docker.containers().join("k8tre-alice-control-plane.json")).unwrap();
    std::fs::remove_dir_all(desk.path("tre")).unwrap();
    desk.run(&["dev", "down", "alice"]).await.code(0).says("nothing left");
    assert_eq!(desk.docker.contents(), []);
    assert!(!desk.path("data").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_removed_is_named_with_the_command_that_removes_it() {
    let desk = Desk::new().await;
    desk.run(&UP).await.code(0);
    desk.kind.mode("stubborn");
    desk.docker.change(|world| world.stuck = vec!["k8tre-alice-control-plane".into()]);
    let down = desk.run(&["dev", "down"]).await;
    down.code(1).says("alice is not gone").says("docker rm -f -v k8tre-alice-control-plane");
    desk.docker.change(|world| world.stuck.clear());
    desk.run(&["dev", "down"]).await.code(0).says("nothing left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_k8tre_at_work_is_refused_and_told_who_holds_the_lock() {
    let desk = Desk::new().await;
    desk.gate.set(Rule::Open);
    let first = desk.start(&["dev", "up", "alice", "--sample", "-v"]);
    assert!(first.says(|line| line.starts_with("… cluster")).await);
    desk.gate.set(Rule::HoldAll);
    desk.gate.wait_until_reached().await;
    let second = desk.run(&["dev", "down", "alice"]).await;
    second.code(1).says("`k8tre dev up` (process ").says("is working on the environment alice");
    first.signal(Signal::INT);
    let first = first.ended().await;
    first.code(130).says("interrupted").says("k8tre dev up alice").says("k8tre dev down alice");
    desk.gate.set(Rule::Open);
    desk.run(&["dev", "down", "alice"]).await.code(0);
    assert_eq!(desk.docker.contents(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_at_once_makes_one_environment_and_breaks_none() {
    let desk = Desk::new().await;
    let before = desk.snapshot();
    let looks = futures::future::join_all((0..4).map(|_| desk.run(&["dev", "status", "alice"])));
    let (one, two, looks) = tokio::join!(desk.run(&UP), desk.run(&UP), looks);
    assert!([&one, &two].iter().any(|up| up.code == Some(0)), "{}\n{}", one.stderr, two.stderr);
    for up in [&one, &two].into_iter().filter(|up| up.code != Some(0)) {
        up.code(1).says("is working on the environment alice");
    }
    assert!(looks.iter().all(|look| [Some(0), Some(3), Some(4)].contains(&look.code)), "{looks:?}");
    desk.run(&["dev", "status"]).await.code(0);

    let (up, down) = tokio::join!(desk.run(&UP), desk.run(&["dev", "down", "alice"]));
    assert!([up.code, down.code].iter().all(|code| [Some(0), Some(1)].contains(code)), "{up:?}\n{down:?}");
    desk.run(&UP).await.code(0);
    desk.run(&["dev", "down"]).await.code(0);
    assert_eq!(changes(&before, &desk.snapshot()), [] as [&str; 0]);
}
