//! What a shell offers, asked of a real bash with the script that k8tre prints; and the help that people read.

use super::cli_whole::UP;
use super::support::desk::Desk;

/// What bash offers for a line whose last word is half-typed.
async fn offered(desk: &Desk, line: &[&str]) -> Vec<String> {
    offered_in(desk, "work", line).await
}

async fn offered_in(desk: &Desk, folder: &str, line: &[&str]) -> Vec<String> {
    let script = desk.run(&["completions", "bash"]).await.code(0).stdout.clone();
    let words = line.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let (place, last) = (line.len() - 1, line.last().unwrap());
    let ask = format!(
        "{script}\ncd '{}'; COMP_WORDS=({words}); COMP_CWORD={place}; COMP_TYPE=9\n\
         _clap_complete_k8tre k8tre '{last}' ''\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
        desk.path(folder).display()
    );
    let bash = which::which("bash").expect("bash is what this test is about");
    let ended = desk.program(&bash, &["-c", &ask]).await;
    ended.code(0).stdout.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn bash_offers_the_names_that_there_are() {
    let desk = Desk::new().await;
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_k8tre"), desk.kind.folder().join("k8tre")).unwrap();
    assert!(offered(&desk, &["k8tre", "dev", "status", ""]).await.iter().all(|word| word.starts_with('-')));
    desk.run(&UP).await.code(0);
    assert_eq!(offered(&desk, &["k8tre", "dev", "status", "al"]).await, ["alice"]);
    assert_eq!(offered(&desk, &["k8tre", "dev", "rm", "--name", "a"]).await, ["alice"]);
    assert_eq!(offered(&desk, &["k8tre", "dev", "logs", "por"]).await, ["portal"]);
    let targets = offered(&desk, &["k8tre", "dev", "open", ""]).await;
    assert!(["argocd", "portal", "metrics"].iter().all(|one| targets.iter().any(|there| there == one)), "{targets:?}");
    assert_eq!(offered(&desk, &["k8tre", "dev", "up", "--argocd", "w"]).await, ["work"]);
    assert_eq!(offered(&desk, &["k8tre", "dev", "gr"]).await, ["graph"]);
    // In a repository, what can be left out; the last of a list.
    assert_eq!(
        offered_in(&desk, "data/sample-tre", &["k8tre", "dev", "up", "--skip", "metrics,po"]).await,
        ["metrics,portal"]
    );
    // A broken kubeconfig offers nothing, and says nothing.
    desk.write("home/.kube/config", "{{");
    assert_eq!(offered(&desk, &["k8tre", "dev", "up", "--argocd", "w"]).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_shell_has_a_script_and_there_are_manual_pages() {
    let desk = Desk::new().await;
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        desk.run(&["completions", shell]).await.code(0).shows("K8TRE_COMPLETE");
    }
    let folder = desk.path("work/share/man1").display().to_string();
    desk.run(&["man", &folder]).await.code(0);
    for page in ["k8tre.1", "k8tre-dev-up.1", "k8tre-doctor.1", "k8tre-onboard.1"] {
        assert!(desk.path("work/share/man1").join(page).exists(), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistyped_environment_is_answered_with_the_one_that_was_meant() {
    let desk = Desk::new().await;
    desk.run(&UP).await.code(0);
    for command in ["status", "pause", "down", "shell", "sync"] {
        desk.run(&["dev", command, "alcie"]).await.code(4).says("did you mean alice?");
    }
    desk.run(&["dev", "remove", "alice", "--dry-run"]).await.code(0);
    desk.run(&["env", "tree"]).await.code(0).shows("portal-alice");
    desk.run(&["dev", "stauts"]).await.code(2).says("status");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_help_of_every_command_is_as_it_was_looked_at() {
    let desk = Desk::new().await.with("COLUMNS", Some("80")).with("K8TRE_ARGOCD_MANIFEST", None);
    let mut all = String::new();
    let mut open = vec![Vec::<String>::new()];
    while let Some(path) = open.pop() {
        let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
        args.push("--help");
        let help = desk.run(&args).await.code(0).stdout.clone();
        all.push_str(&format!("$ k8tre {}\n{help}\n", args.join(" ")));
        let commands = help.split("\nCommands:\n").nth(1).unwrap_or_default();
        let lines = commands.lines().take_while(|line| line.starts_with("  "));
        let names = lines.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
        open.extend(names.map(|name| path.iter().cloned().chain([name.to_owned()]).collect()));
    }
    let too_wide: Vec<&str> = all.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(too_wide.is_empty(), "{too_wide:#?}");
    insta::assert_snapshot!(all);
}
