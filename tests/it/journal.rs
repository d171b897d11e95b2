//! The journal: durable before anything acts, private, locked, and never misread.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use k8tre::cli::UpArgs;
use k8tre::engine::Ledger;
use k8tre::journal::{self, Journal, Lock, Writer};
use k8tre::names::EnvName;
use k8tre::ports::dirs::Dirs;
use k8tre::settings::{Found, settle};
use k8tre::spec::Spec;

fn dirs(root: &Path) -> Dirs {
    Dirs { data: root.join("data"), cache: root.join("cache"), config: root.join("config") }
}

fn name() -> EnvName {
    "alice".parse().unwrap()
}

fn spec() -> Spec {
    let found = Found {
        repo: "/tre".into(),
        sample: false,
        head: Some("main".into()),
        vendor: "kind".into(),
        lists_secrets: false,
    };
    settle(&name(), &UpArgs::default(), None, &[], found).unwrap()
}

#[test]
fn an_intent_is_on_disk_before_the_step_acts_and_only_its_owner_can_read_it() {
    let root = tempfile::tempdir().unwrap();
    let dirs = dirs(root.path());
    let lock = Lock::take(&dirs, &name(), "dev up").unwrap();
    let writer = Writer::new(&lock, Journal::new(spec()));
    writer.intend("cluster").unwrap();

    let read = journal::read(&dirs, &name()).unwrap().unwrap();
    assert!(read.steps["cluster"].done.is_none());
    let path = dirs.environment("alice").join("journal.json");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);

    writer.done("cluster").unwrap();
    assert!(journal::read(&dirs, &name()).unwrap().unwrap().steps["cluster"].done.is_some());
    writer.forget("cluster").unwrap();
    assert!(journal::read(&dirs, &name()).unwrap().unwrap().steps.is_empty());
}

#[test]
fn a_second_command_on_the_same_environment_is_told_who_holds_it() {
    let root = tempfile::tempdir().unwrap();
    let dirs = dirs(root.path());
    let first = Lock::take(&dirs, &name(), "dev up").unwrap();
    let error = Lock::take(&dirs, &name(), "dev down").unwrap_err().to_string();
    assert!(error.contains("k8tre dev up") && error.contains(&std::process::id().to_string()), "{error}");
    Lock::take(&dirs, &"bob".parse().unwrap(), "dev up").expect("another environment is free");
    drop(first);
    Lock::take(&dirs, &name(), "dev down").expect("the lock ends with its holder");
}

#[test]
fn a_damaged_or_newer_journal_is_refused_and_kept() {
    let root = tempfile::tempdir().unwrap();
    let dirs = dirs(root.path());
    let lock = Lock::take(&dirs, &name(), "dev up").unwrap();
    let path = dirs.environment("alice").join("journal.json");
    for (content, said) in [("", "damaged"), ("{\"schema\": 1}", "damaged"), ("{\"schema\": 99}", "another version")] {
        std::fs::write(&path, content).unwrap();
        let error = journal::read(&dirs, &name()).unwrap_err();
        assert!(error.to_string().contains(said), "{content}: {error}");
        assert!(!error.hints().is_empty());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
    }
    drop(lock);
}

#[test]
fn a_journal_that_cannot_be_written_stops_before_anything_is_made() {
    // /dev/full answers every write with "no space left on device".
    if !Path::new("/dev/full").exists() {
        return; // macOS has none
    }
    let root = tempfile::tempdir().unwrap();
    let dirs = dirs(root.path());
    std::fs::create_dir_all(dirs.environment("alice")).unwrap();
    std::os::unix::fs::symlink("/dev/full", dirs.environment("alice").join("lock")).unwrap();
    let error = Lock::take(&dirs, &name(), "dev up").unwrap_err();
    assert!(error.to_string().contains("cannot write"), "{error}");
}

#[test]
fn names_lists_environments_and_ignores_what_is_none() {
    let root = tempfile::tempdir().unwrap();
    let dirs = dirs(root.path());
    assert!(journal::names(&dirs).unwrap().is_empty());
    for folder in ["bob", "alice", "Not-A-Name"] {
        std::fs::create_dir_all(dirs.environments().join(folder)).unwrap();
    }
    let names: Vec<String> = journal::names(&dirs).unwrap().into_iter().map(String::from).collect();
    assert_eq!(names, ["alice", "bob"]);
}

#[test]
fn an_application_needs_to_have_seen_only_what_touched_it() {
    let at = |second: i64| jiff::Timestamp::from_second(second).unwrap();
    let mut facts = k8tre::journal::Facts::default();
    facts.publish("up", at(1));
    let expected = |facts: &k8tre::journal::Facts, app: &str, seen: &str| {
        let (commit, since) = facts.expected(app, seen);
        (commit.unwrap(), since.unwrap().as_second())
    };
    assert_eq!(expected(&facts, "portal", "older"), ("up".into(), 1));
    facts.publish_next("one", at(2), vec!["portal".into()]);
    facts.publish_next("two", at(3), vec!["identity".into()]);
    assert_eq!(expected(&facts, "metrics", "up"), ("up".into(), 1), "nothing touched it");
    assert_eq!(expected(&facts, "metrics", "one"), ("one".into(), 1));
    assert_eq!(expected(&facts, "portal", "up"), ("two".into(), 3), "it must see what touched it");
    assert_eq!(expected(&facts, "portal", "one"), ("one".into(), 2));
    assert_eq!(expected(&facts, "portal", "two"), ("two".into(), 2));
    assert_eq!(expected(&facts, "identity", "one"), ("two".into(), 3));
    assert_eq!(expected(&facts, "identity", "unknown"), ("two".into(), 3));
    for number in 0..500 {
        facts.publish_next(&number.to_string(), at(10 + number), vec!["portal".into()]);
    }
    assert!(facts.history.len() <= 100, "what is kept is bounded");
    assert_eq!(expected(&facts, "metrics", "up"), ("499".into(), 509));
    facts.publish("up again", at(600));
    assert_eq!(expected(&facts, "metrics", "499"), ("up again".into(), 600), "all look at what up publishes");
    facts.publish("up again", at(700));
    assert_eq!(facts.published_at, Some(at(600)), "the same commit once more is nothing new");
}
