//! `k8tre onboard`, with a person at a terminal: the whole way, what is kept, and what Ctrl-C leaves.

use std::time::Duration;

use serde_json::json;

use super::cli_whole::sample_in;
use super::support::desk::{Desk, changes};
use super::terminal::{DOWN, ENTER, Terminal};

const CTRL_C: &str = "\x03";
const NOTHING: [&str; 0] = [];

fn onboard(desk: &Desk, args: &[&str]) -> Terminal {
    Terminal::start(desk.shell_command(&[&["onboard"], args].concat()), Duration::from_secs(60))
}

#[tokio::test(flavor = "multi_thread")]
async fn defaults_alone_lead_to_a_healthy_environment_and_a_first_edit() {
    let desk = Desk::new().await;
    let mut person = onboard(&desk, &[]);
    person.answers("Name of your environment", ENTER);
    person.answers("What shall be deployed?", ENTER);
    person.answers("Where shall its cluster be?", ENTER);
    person.answers("Domain of the TRE", ENTER);
    person.answers("Which apps?", ENTER);
    person.sees("UP WOULD MAKE");
    person.answers("Shall it be made?", ENTER);
    person.sees("alice is healthy");
    person.sees("apps/portal/base/index.html");
    // Nothing is saved yet.
    person.answers("Enter when it is saved", ENTER);
    person.sees("is it saved?");
    desk.write("data/sample-tre/apps/portal/base/index.html", "<h1>Hello from Alice</h1>\n");
    person.answers("Enter when it is saved", ENTER);
    person.sees("onboard: questions");
    person.sees("(8 questions)");
    assert_eq!(person.ends(), Some(0), "{}", person.shown());
    let served = desk.clusters.published("k8tre-alice", "dev/alice").unwrap();
    let page = desk.git("data/sample-tre", &["show", &format!("{served}:apps/portal/base/index.html")]);
    assert_eq!(page, "<h1>Hello from Alice</h1>");
    let kept: serde_json::Value =
        serde_json::from_slice(&std::fs::read(desk.path("data/environments/alice/onboard.json")).unwrap()).unwrap();
    let phases: Vec<&str> = kept["phases"].as_array().unwrap().iter().map(|p| p["phase"].as_str().unwrap()).collect();
    assert_eq!(phases, ["questions", "environment", "first edit"]);
    assert!(!desk.path("config/config.toml").exists(), "defaults need no file");

    // Again: it goes on with what is there, and asks no more than needs be.
    let mut person = onboard(&desk, &[]);
    person.answers("Name of your environment", ENTER);
    person.sees("alice is there already");
    person.answers("Shall it be made?", ENTER);
    person.sees("nothing was to be done");
    person.answers("Enter when it is saved", "later\r");
    assert_eq!(person.ends(), Some(0), "{}", person.shown());
    desk.run(&["dev", "down", "alice", "--yes"]).await.code(0);
    assert!(!desk.path("data/environments").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clone_other_answers_and_a_settings_file_that_is_kept() {
    let desk = Desk::new().await;
    sample_in(&desk, "tre").await;
    desk.write("config/config.toml", "# mine\nttl = \"8h\" # a day's work\n");
    let mut person = onboard(&desk, &[]);
    person.answers("Name of your environment", "carol\r");
    person.answers("What shall be deployed?", &format!("{DOWN}\r"));
    person.answers("Address of the repository", &format!("{}\r", desk.path("tre").display()));
    person.answers("Folder for the clone", "mine\r");
    person.answers("Where shall its cluster be?", ENTER);
    person.answers("Which Argo CD", ENTER);
    person.answers("Domain of the TRE", "Not A Domain\r");
    person.sees("a domain has small letters");
    for _ in 0.."Not A Domain".len() {
        person.types("\x7f");
    }
    person.types("carol.example.org\r");
    // The first of the list is taken off.
    person.answers("Which apps?", " \r");
    person.answers("Shall it be made?", "y");
    person.answers("Keep these answers", &format!("{DOWN}\r"));
    person.sees("kept in");
    person.sees("carol is healthy: 5 Applications");
    person.answers("Enter when it is saved", "later\r");
    assert_eq!(person.ends(), Some(0), "{}", person.shown());
    let kept = std::fs::read_to_string(desk.path("config/config.toml")).unwrap();
    let expected = "# mine\nttl = \"8h\" # a day's work\ndomain = \"carol.example.org\"\nskip = [\"guardrails\"]\n";
    assert_eq!(kept, expected);
    assert_eq!(desk.git("work/mine", &["remote", "get-url", "origin"]), desk.path("tre").display().to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_at_any_question_leaves_everything_as_it_was() {
    let desk = Desk::new().await;
    desk.write("config/config.toml", "ttl = \"8h\"\n");
    let before = desk.snapshot();
    let questions = ["Name of your", "What shall be", "Where shall", "Domain", "Which apps?", "Shall it be made?"];
    for last in 0..questions.len() {
        let mut person = onboard(&desk, &[]);
        for question in &questions[..last] {
            let keys = if *question == "Domain" { "other.example.org\r" } else { ENTER };
            person.answers(question, keys);
        }
        person.answers(questions[last], CTRL_C);
        assert_eq!(person.ends(), Some(130), "{}", person.shown());
        assert_eq!(changes(&before, &desk.snapshot()), NOTHING, "after {}", questions[last]);
    }
    // No is an answer, too.
    let mut person = onboard(&desk, &["alice", "--sample", "--domain", "a.example.org"]);
    person.answers("Where shall", ENTER);
    person.answers("Which apps?", ENTER);
    person.answers("Shall it be made?", "n");
    person.sees("nothing was made");
    assert_eq!(person.ends(), Some(0));
    assert_eq!(changes(&before, &desk.snapshot()), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_person_the_defaults_and_flags_are_the_answers() {
    let desk = Desk::new().await;
    desk.run(&["onboard"]).await.code(2).says("--yes");
    desk.run(&["onboard", "--yes", "-o", "json"]).await.code(2).says("dev up -o json");
    desk.run(&["onboard", "--yes", "--dry-run"]).await.code(0).shows("UP WOULD MAKE").hides("is healthy");
    let done = desk.run(&["onboard", "--yes", "--skip", "metrics", "--settings", "user"]).await;
    done.code(0).says("alice is healthy: 5 Applications").says("k8tre dev sync alice").says("(0 questions)");
    // Where a file is named, it is meant for flags, too.
    assert_eq!(std::fs::read_to_string(desk.path("config/config.toml")).unwrap(), "skip = [\"metrics\"]\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_small_machine_has_no_room_for_is_proposed_to_be_left_out() {
    let desk = Desk::new().await;
    // Beside a node and Argo CD, nothing is left of the processor.
    desk.docker.change(|world| world.info["NCPU"] = json!(1));
    let done = desk.run(&["onboard", "--yes", "--sample", "--dry-run"]).await;
    done.code(0).says("no room for all of it").says("portal");
}
