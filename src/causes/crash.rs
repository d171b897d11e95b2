//! Containers that end, or that cannot even start their program.

use serde_json::Value;

use super::evidence::items;
use super::view::{Container, Pod, View};
use super::words::{group, innermost, pattern};
use super::{Cause, Family};

pub const FAMILY: Family = Family { codes: &["oom-killed", "container-start", "crash-loop"], explain };

fn explain(view: &View) -> Option<Cause> {
    view.pods.iter().filter(|pod| !of_job(pod.object)).find_map(|pod| {
        let container = pod.containers().find(is_down)?;
        ending(view, pod, &container, "crash-loop")
    })
}

/// Not one that ended well, nor one that runs again.
fn is_down(container: &Container) -> bool {
    let state = &container.status["state"];
    let fine = state["running"].is_object() || (container.init && state["terminated"]["exitCode"] == 0);
    let waits = matches!(
        container.waiting(),
        Some(("CrashLoopBackOff" | "RunContainerError" | "CreateContainerError" | "StartError", _))
    );
    waits || (!fine && container.ended().is_some_and(|ended| ended["exitCode"] != 0))
}

/// How a container ended, under a code of the caller's unless there is a more telling one.
pub fn ending(view: &View, pod: &Pod, container: &Container, code: &'static str) -> Option<Cause> {
    let made = |code| Cause::new(code).because_all(pod.links());
    let name = container.name();
    let what = if container.init { format!("init container {name}") } else { format!("container {name}") };
    let ended = container.ended();
    let said =
        ended.and_then(|ended| ended["message"].as_str()).or_else(|| container.waiting().map(|(_, message)| message));
    let not_started = said.filter(|said| pattern!(r"(?:runc create failed|failed to create containerd task|unable to start container process|executable file not found)").is_match(said));
    if let Some(said) = not_started {
        let cause = made("container-start").because(format!("{what} cannot start"));
        return Some(cause.because(cannot_start(said)).hint(pod.describe()));
    }
    let ended = ended?;
    let exit = ended["exitCode"].as_i64().unwrap_or(-1);
    if ended["reason"] == "OOMKilled" {
        let limit = items(&pod.object["spec"]["containers"])
            .chain(items(&pod.object["spec"]["initContainers"]))
            .find(|one| one["name"] == name)
            .and_then(|one| one["resources"]["limits"]["memory"].as_str());
        let root =
            limit.map_or("the node has no memory left".to_owned(), |limit| format!("its memory limit is {limit}"));
        return Some(made("oom-killed").because(format!("{what} OOMKilled")).because(root).hint(pod.describe()));
    }
    let log = view.evidence.log(pod.namespace, pod.name, name).and_then(last_words);
    let words = log.or_else(|| ended["message"].as_str().and_then(last_words));
    let cause =
        made(code).because(format!("{what} ends with {}", exit_word(exit))).because_all(words.map(str::to_owned));
    let previous = if container.status["restartCount"].as_u64().unwrap_or(0) > 0 { " --previous" } else { "" };
    Some(cause.hint(format!("kubectl -n {} logs {} -c {name}{previous}", pod.namespace, pod.name)))
}

pub fn of_job(pod: &Value) -> bool {
    items(&pod["metadata"]["ownerReferences"]).any(|owner| owner["kind"] == "Job")
}

fn exit_word(code: i64) -> String {
    let meaning = match code {
        126 => " (its command cannot be executed)",
        127 => " (its command is not there)",
        137 => " (killed)",
        139 => " (segmentation fault)",
        143 => " (terminated)",
        _ => "",
    };
    format!("exit code {code}{meaning}")
}

fn cannot_start(said: &str) -> String {
    match group(pattern!(r#"exec: "([^"]+)""#), said) {
        Some(program) if said.contains("permission denied") => format!("\"{program}\" is not executable in the image"),
        Some(program) => format!("no \"{program}\" in the image"),
        None => innermost(said.trim_end_matches(": unknown")).to_owned(),
    }
}

/// The last line that speaks of an error, or else the last one that says anything.
fn last_words(log: &str) -> Option<&str> {
    let telling = pattern!(
        r"(?i)\b(?:error|fatal|panic|exception|fail(?:ed|ure)?|cannot|could not|can't|denied|refused|no such|not found|invalid|missing)\b"
    );
    let lines: Vec<&str> = log.lines().map(str::trim).filter(|line| line.chars().any(char::is_alphanumeric)).collect();
    let recent = &lines[lines.len().saturating_sub(20)..];
    recent.iter().rev().find(|line| telling.is_match(line)).or_else(|| recent.last()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_telling_line_is_found_below_and_above_a_trace() {
        let go = "start\npanic: no config\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:3 +0x1d";
        assert_eq!(last_words(go), Some("panic: no config"));
        let python = "Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: invalid port";
        assert_eq!(last_words(python), Some("ValueError: invalid port"));
        assert_eq!(last_words("one\ntwo\n---\n"), Some("two"));
        assert_eq!(last_words("\n"), None);
    }
}
