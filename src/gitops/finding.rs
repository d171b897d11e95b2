//! What is wrong in a repository, where, and how to mend it.

use serde::Serialize;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
    Note,
}

/// One thing to mend: where it is, why it matters and what to do. Line 0 means the whole file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    pub severity: Severity,
    pub code: &'static str,
    pub file: String,
    pub line: u32,
    pub message: String,
    pub fix: String,
}

impl Finding {
    pub fn new(severity: Severity, code: &'static str, file: &str, line: u32) -> Self {
        Finding { severity, code, file: file.into(), line, message: String::new(), fix: String::new() }
    }

    pub fn error(code: &'static str, file: &str, line: u32) -> Self {
        Self::new(Severity::Error, code, file, line)
    }

    pub fn warning(code: &'static str, file: &str, line: u32) -> Self {
        Self::new(Severity::Warning, code, file, line)
    }

    pub fn note(code: &'static str, file: &str, line: u32) -> Self {
        Self::new(Severity::Note, code, file, line)
    }

    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = fix.into();
        self
    }
}
