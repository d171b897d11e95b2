//! Cause lines from what a real API server and a real Argo CD said about things broken on purpose:
//! one file a case in `tests/fixtures/causes`, with the code and the line that a user must see.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use k8tre::causes::{Evidence, codes, explain};
use serde_json::{Value, json};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn cases() -> Vec<(String, Value)> {
    let folder = std::fs::read_dir(root().join("tests/fixtures/causes")).unwrap();
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |file: PathBuf| {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        (name, serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap())
    };
    files.into_iter().map(read).collect()
}

fn case(name: &str) -> Value {
    cases().into_iter().find(|(found, _)| found == name).unwrap().1
}

fn evidence(case: &Value) -> Evidence {
    serde_json::from_value(case["evidence"].clone()).unwrap()
}

fn line(application: &Value, evidence: &Evidence) -> String {
    explain(application, evidence).map_or_else(|| "nothing".to_owned(), |cause| format!("[{}] {cause}", cause.code))
}

#[test]
fn what_was_broken_is_what_the_line_names() {
    let cases = cases();
    assert!(cases.len() >= 50, "only {} cases", cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(name, case)| {
            let expected = format!("[{}] {}", case["code"].as_str().unwrap(), case["line"].as_str().unwrap());
            let said = line(&case["application"], &evidence(case));
            (said != expected).then(|| format!("{name}\n  expected {expected}\n  said     {said}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_line_never_stops_at_the_symptom_and_always_has_a_command() {
    for (name, case) in cases() {
        let cause = explain(&case["application"], &evidence(&case)).unwrap();
        assert!(cause.chain.len() >= 2, "{name}: {cause}");
        assert!(cause.hint.is_some(), "{name}: {cause}");
        assert!(!cause.short(120).contains("Degraded") && !cause.short(120).contains("Progressing"), "{name}: {cause}");
    }
}

#[test]
fn without_evidence_argo_cds_own_words_are_still_said() {
    for (name, case) in cases() {
        let application = &case["application"];
        if application["spec"].is_null() || application["metadata"]["deletionTimestamp"].is_string() {
            continue;
        }
        // An ApplicationSet's error is nowhere but in the ApplicationSet.
        let cause = explain(application, &Evidence::default());
        assert!(cause.is_some_and(|cause| cause.chain.len() >= 2) || name == "root", "{name}");
    }
}

#[test]
fn another_applications_trouble_in_the_same_namespace_is_not_blamed() {
    let case = case("image");
    let mut other = case["application"].clone();
    other["metadata"]["name"] = json!("other");
    other["status"]["resources"][0]["name"] = json!("other");
    other["status"]["operationState"]["syncResult"]["resources"] = json!([]);
    other["status"]["health"] = json!({"status": "Progressing"});
    assert_eq!(line(&other, &evidence(&case)), "nothing");
}

#[test]
fn a_password_in_a_log_is_not_shown() {
    let case = case("crash");
    let mut evidence = evidence(&case);
    evidence.logs[0]["text"] = json!("\u{1b}[31mFATAL: login failed, password=hunter2 token: abc\u{1b}[0m\n");
    let said = line(&case["application"], &evidence);
    assert!(said.ends_with("FATAL: login failed, password=*** token: ***"), "{said}");
}

#[test]
fn trouble_that_is_over_is_not_told() {
    let case = case("probe");
    let mut evidence = evidence(&case);
    evidence.pods[0]["status"]["containerStatuses"][0]["ready"] = json!(true);
    assert!(!line(&case["application"], &evidence).contains("probe failed"));
    assert!(line(&case["application"], &evidence).starts_with("[unhealthy-object]"));
}

#[test]
fn every_code_has_its_section_and_every_section_its_code() {
    let text = std::fs::read_to_string(root().join("docs/troubleshooting.md")).unwrap();
    let sections: BTreeSet<&str> = text.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert_eq!(sections, codes().collect::<BTreeSet<&str>>());
    let of = |part: &str| text.lines().filter(|line| line.starts_with(part)).count();
    assert_eq!(
        (of("- See: "), of("- Mend: ")),
        (sections.len(), sections.len()),
        "each says how to see and how to mend it"
    );
}
