//! Why an Application is not healthy, in one line from the symptom to the root, with a stable code.
//!
//! `gather` reads, bounded, what the cluster says about it; `explain` is pure. A new cause is one file
//! with a `Family` and one line in `FAMILIES`; `docs/troubleshooting.md` describes every code.

mod admission;
mod application_set;
mod config;
mod crash;
mod crd;
mod deletion;
mod destination;
mod dns;
mod evidence;
mod gather;
mod hook;
mod image;
mod invalid;
mod pods;
mod probe;
mod quota;
mod rbac;
mod render;
mod reported;
mod repository;
mod scheduling;
mod storage;
mod view;
mod words;

use std::fmt;

use serde::Serialize;
use serde_json::Value;

pub use evidence::Evidence;
pub use gather::{causes, gather};
pub use pods::pods_of;
use view::View;
pub use view::in_trouble;

/// Causes that are recognised together, with the codes that they can have.
struct Family {
    codes: &'static [&'static str],
    explain: fn(&View) -> Option<Cause>,
}

/// All causes, in the order in which they are asked: what keeps Argo CD from acting at all, then what
/// it was refused, then what ails the pods from their claims to their probes, then what is only said.
const FAMILIES: &[Family] = &[
    application_set::FAMILY,
    destination::FAMILY,
    repository::SERVER,
    dns::FAMILY,
    repository::FAMILY,
    render::FAMILY,
    deletion::FAMILY,
    crd::FAMILY,
    quota::FAMILY,
    admission::FAMILY,
    rbac::FAMILY,
    invalid::FAMILY,
    storage::FAMILY,
    scheduling::FAMILY,
    image::FAMILY,
    config::FAMILY,
    probe::KILLED,
    crash::FAMILY,
    probe::NOT_READY,
    hook::FAMILY,
    scheduling::EVICTED,
    reported::FAMILY,
];

/// Every code that a cause can have; each has a section in `docs/troubleshooting.md`.
pub fn codes() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().flat_map(|family| family.codes).copied()
}

/// Why an Application is not healthy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// Stable: for scripts, and for `docs/troubleshooting.md`.
    pub code: &'static str,
    /// From the symptom to the root.
    pub chain: Vec<String>,
    /// The next command.
    pub hint: Option<String>,
}

impl Cause {
    fn new(code: &'static str) -> Cause {
        Cause { code, chain: Vec::new(), hint: None }
    }

    /// One link nearer to the root. What was said already is not said again.
    fn because(mut self, link: impl AsRef<str>) -> Cause {
        let link = words::link(link.as_ref());
        if !link.is_empty() && self.chain.last() != Some(&link) {
            self.chain.push(link);
        }
        self
    }

    fn because_all(self, links: impl IntoIterator<Item = String>) -> Cause {
        links.into_iter().fold(self, Cause::because)
    }

    fn hint(mut self, command: impl Into<String>) -> Cause {
        self.hint = Some(words::command(&command.into()));
        self
    }

    /// The chain without its first link, for a table that shows the Application's state beside it;
    /// links in the middle give way first, so that the root stays readable.
    pub fn short(&self, width: usize) -> String {
        let links = if self.chain.len() > 1 { &self.chain[1..] } else { &self.chain[..] };
        let whole = links.join(ARROW);
        match links {
            [first, .., last] if whole.chars().count() > width => {
                let room = width.saturating_sub(last.chars().count() + ARROW.chars().count());
                match room {
                    0..16 => crate::text::one_line(last, width),
                    _ => format!("{}{ARROW}{last}", crate::text::one_line(first, room)),
                }
            }
            _ => crate::text::one_line(&whole, width),
        }
    }
}

const ARROW: &str = " <- ";

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.chain.join(ARROW))
    }
}

/// The cause at the root of an unhealthy Application; `None` if nothing says more than that it is
/// unhealthy. An Application that is not there is given as its `metadata.name` alone.
pub fn explain(application: &Value, evidence: &Evidence) -> Option<Cause> {
    let view = View::new(application, evidence);
    let mut cause = FAMILIES.iter().find_map(|family| (family.explain)(&view))?;
    cause.chain.insert(0, words::link(&view.symptom()));
    Some(cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct() {
        let mut seen: Vec<&str> = codes().collect();
        let all = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), all);
    }

    #[test]
    fn a_short_line_keeps_its_root() {
        let cause =
            Cause::new("x").because("app Degraded").because("Pod a-long-name-0 CrashLoopBackOff").because("root");
        assert_eq!(cause.short(120), "Pod a-long-name-0 CrashLoopBackOff <- root");
        assert_eq!(cause.short(30), "Pod a-long-name-0 Cra… <- root");
        assert_eq!(cause.short(10), "root");
    }
}
