//! From nothing to a healthy environment and a first edit in it, by a script that answers the questions.

use std::fs;
use std::time::{Duration, Instant};

use crate::edit::live_page;
use crate::support::{LIMIT, World};
use crate::terminal::{DOWN, ENTER, Terminal};

const PAGE: &str = "<h1>My first edit</h1>\n";

#[test]
fn a_fresh_clone_in_a_clean_home_becomes_a_healthy_environment_with_a_first_edit() {
    let world = World::new();
    let name = world.name("alice");
    let theirs = world.own_repository();
    // Nobody's cluster is known here.
    fs::remove_file(world.kubeconfig_of_user()).expect("the kubeconfig of a clean home");
    let flags = world.lab_flags();
    let args: Vec<&str> = ["onboard"].into_iter().chain(flags.iter().map(String::as_str)).collect();
    let begun = Instant::now();
    let mut person = Terminal::start(world.shell_command(&args), LIMIT);
    person.answers("Name of your environment", &format!("{name}\r"));
    person.answers("What shall be deployed?", &format!("{DOWN}\r"));
    person.answers("Address of the repository", &format!("{}\r", theirs.display()));
    person.answers("Folder for the clone", "mine\r");
    person.answers("Domain of the TRE", ENTER);
    person.answers("Which apps?", ENTER);
    person.answers("Shall it be made?", ENTER);
    person.sees("is healthy");
    let healthy = begun.elapsed();
    let repo = world.home.join("mine");
    person.sees("apps/portal/base/index.html");
    fs::write(repo.join("apps/portal/base/index.html"), PAGE).expect("a file of the clone");
    person.answers("Enter when it is saved", ENTER);
    person.sees("onboard: ");
    assert_eq!(person.ends(), Some(0), "{}", person.shown());
    assert_eq!(live_page(&world, &name), PAGE);
    // Past the harness, since it is what this test is for.
    let told = format!(
        "\nonboard: {} questions, healthy after {:.1} s, first edit live after {:.1} s\n",
        person.asked,
        healthy.as_secs_f64(),
        begun.elapsed().as_secs_f64()
    );
    std::io::Write::write_all(&mut std::io::stderr(), told.as_bytes()).expect("stderr is open in tests");
    assert!(begun.elapsed() < Duration::from_secs(300));
    world.k8tre(&["dev", "down", &name, "--yes"]).expect(0);
}
