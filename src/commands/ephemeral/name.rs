//! A name that no other job has: after the change and the run that it is for, where a CI tells them.

use rand::RngExt;

use crate::names::{EnvName, slug};

/// What a CI says of the job: the change that it looks at, and the run.
fn told(variable: impl Fn(&str) -> Option<String>) -> Vec<String> {
    if variable("GITHUB_ACTIONS").is_some() {
        let change = variable("GITHUB_REF").and_then(|reference| pull_request(&reference));
        let run = variable("GITHUB_RUN_ID").map(|run| format!("{run}-{}", attempt(&variable)));
        return change.into_iter().chain(run).collect();
    }
    if variable("GITLAB_CI").is_some() {
        let change = variable("CI_MERGE_REQUEST_IID").map(|change| format!("mr-{change}"));
        return change.into_iter().chain(variable("CI_JOB_ID")).collect();
    }
    Vec::new()
}

fn pull_request(reference: &str) -> Option<String> {
    let number = reference.strip_prefix("refs/pull/")?.split('/').next()?;
    number.parse::<u64>().ok().map(|number| format!("pr-{number}"))
}

fn attempt(variable: &impl Fn(&str) -> Option<String>) -> String {
    variable("GITHUB_RUN_ATTEMPT").unwrap_or_else(|| "1".into())
}

/// Jobs of a matrix are told the same, so there is always something random in it.
pub fn unique(variable: impl Fn(&str) -> Option<String>) -> EnvName {
    let mut words = told(variable);
    if words.first().is_none_or(|word| !word.starts_with(|first: char| first.is_ascii_lowercase())) {
        words.insert(0, "ci".into());
    }
    words.push(format!("{:04x}", rand::rng().random::<u16>()));
    slug(&words.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(variables: &[(&str, &str)]) -> String {
        unique(|name| variables.iter().find(|(there, _)| *there == name).map(|(_, value)| (*value).to_owned()))
            .to_string()
    }

    #[test]
    fn a_job_of_a_ci_is_recognised_by_its_environment() {
        let github = [
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_REF", "refs/pull/12345/merge"),
            ("GITHUB_RUN_ID", "19876543210"),
            ("GITHUB_RUN_ATTEMPT", "2"),
        ];
        let name = named(&github);
        assert!(name.starts_with("pr-12345-19876543210-2-") && name.len() <= 30, "{name}");
        assert_ne!(name, named(&github), "two jobs of one matrix");
        let push = [("GITHUB_ACTIONS", "true"), ("GITHUB_REF", "refs/heads/main"), ("GITHUB_RUN_ID", "7")];
        assert!(named(&push).starts_with("ci-7-1-"));
        let gitlab = [("GITLAB_CI", "true"), ("CI_MERGE_REQUEST_IID", "9"), ("CI_JOB_ID", "123")];
        assert!(named(&gitlab).starts_with("mr-9-123-"));
        assert!(named(&[]).starts_with("ci-"));
    }

    #[test]
    fn what_a_ci_says_cannot_make_a_name_that_is_none() {
        let odd =
            [("GITHUB_ACTIONS", "1"), ("GITHUB_REF", "refs/pull/x\n/merge"), ("GITHUB_RUN_ID", "../$(id)\u{202e}")];
        assert!(named(&odd).parse::<EnvName>().is_ok());
        let long = [("GITLAB_CI", "true"), ("CI_JOB_ID", "123456789012345678901234567890")];
        assert!(named(&long).len() <= 30);
    }
}
