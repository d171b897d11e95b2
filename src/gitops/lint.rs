//! What can be known to be wrong in a TRE repository without a cluster: each finding with its place and its fix.

mod files;
mod secrets;
mod sets;
mod variables;

use super::finding::Finding;
use super::repository::Repository;
use super::tree::Tree;

/// Checks a repository, worst findings first.
pub fn lint(repository: &Repository, tree: &dyn Tree) -> Vec<Finding> {
    let graph = files::Graph::new(tree);
    let sets = sets::Sets::new(repository, tree);
    let mut findings = repository.findings.clone();
    findings.extend(sets.findings());
    findings.extend(graph.findings(&sets));
    findings.extend(variables::findings(&sets, &graph));
    findings.extend(secrets::findings(&sets, &graph));
    findings.sort();
    findings.dedup();
    findings
}

/// Only the secrets that something needs and nothing makes: what keeps an environment from becoming healthy.
pub fn unmade_secrets(repository: &Repository, tree: &dyn Tree) -> Vec<Finding> {
    secrets::findings(&sets::Sets::new(repository, tree), &files::Graph::new(tree))
}

#[cfg(test)]
#[path = "lint_tests.rs"]
mod tests;
