//! One error type: what failed, because of what, and how to mend it.
//!
//! The kind decides the exit code; hints are commands or settings that a person can use as they stand.

use std::fmt;

/// Why a command ends without success. Each kind is one exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Failed,
    Usage,
    Unhealthy,
    NotFound,
    Preflight,
    Interrupted,
}

impl Kind {
    pub fn exit_code(self) -> u8 {
        match self {
            Kind::Failed => 1,
            Kind::Usage => 2,
            Kind::Unhealthy => 3,
            Kind::NotFound => 4,
            Kind::Preflight => 5,
            Kind::Interrupted => 130,
        }
    }
}

/// An error with its chain of causes, outermost first, the output of the program that failed, and hints.
pub struct Error {
    kind: Kind,
    chain: Vec<String>,
    detail: Option<String>,
    hints: Vec<String>,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error { kind, chain: vec![message.into()], detail: None, hints: Vec::new() }
    }

    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Kind::Failed, message)
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, message)
    }

    pub fn preflight(message: impl Into<String>) -> Self {
        Self::new(Kind::Preflight, message)
    }

    pub fn interrupted() -> Self {
        Self::new(Kind::Interrupted, "interrupted")
    }

    /// A command to paste or a setting to change.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Output of an external program, shown below the message.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        self.detail = (!detail.trim().is_empty()).then_some(detail);
        self
    }

    /// How to complete what was begun, where the command itself was right.
    pub fn way_on(self, command: &str) -> Self {
        let words = match self.kind {
            _ if self.hints.iter().any(|hint| hint.contains(command)) => return self,
            Kind::Interrupted => "go on",
            Kind::Failed => "try again",
            _ => return self,
        };
        self.hint(format!("{words}: {command}"))
    }

    pub fn with_kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    pub fn context(mut self, message: impl Into<String>) -> Self {
        self.chain.insert(0, message.into());
        self
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn exit_code(&self) -> u8 {
        self.kind.exit_code()
    }

    pub fn message(&self) -> &str {
        &self.chain[0]
    }

    pub fn causes(&self) -> &[String] {
        &self.chain[1..]
    }

    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    pub fn detail_text(&self) -> Option<&str> {
        self.detail.as_deref()
    }
}

/// The whole chain on one line: `cannot read the journal: permission denied`.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.chain.join(": "))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        if let Some(detail) = &self.detail {
            write!(f, "\n{detail}")?;
        }
        self.hints.iter().try_for_each(|hint| write!(f, "\nhint: {hint}"))
    }
}

// `Error` is deliberately no `std::error::Error`: that makes room for this conversion, which keeps
// the chain of causes of every library error that passes through `?`.
impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        let mut chain = vec![error.to_string()];
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            // Many libraries repeat their cause in their own message; say it once.
            if !chain.last().is_some_and(|last| last.contains(&text)) {
                chain.push(text);
            }
            source = cause.source();
        }
        Error { kind: Kind::Failed, chain, detail: None, hints: Vec::new() }
    }
}

/// `.context(...)` and `.hint(...)` on results and options.
pub trait ResultExt<T> {
    fn context(self, message: impl Into<String>) -> Result<T>;
    fn with_context<S: Into<String>>(self, message: impl FnOnce() -> S) -> Result<T>;
    fn hint(self, hint: impl Into<String>) -> Result<T>;
}

impl<T, E: Into<Error>> ResultExt<T> for Result<T, E> {
    fn context(self, message: impl Into<String>) -> Result<T> {
        self.map_err(|e| e.into().context(message))
    }

    fn with_context<S: Into<String>>(self, message: impl FnOnce() -> S) -> Result<T> {
        self.map_err(|e| e.into().context(message()))
    }

    fn hint(self, hint: impl Into<String>) -> Result<T> {
        self.map_err(|e| e.into().hint(hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_errors_keep_their_causes_and_repeat_nothing() {
        let io = std::io::Error::new(std::io::ErrorKind::PermissionDenied, "no entry");
        let error: Error = Err::<(), _>(io).context("cannot read the journal").unwrap_err();
        assert_eq!(error.to_string(), "cannot read the journal: no entry");
        assert_eq!(error.causes(), ["no entry"]);
    }

    #[test]
    fn every_kind_has_the_exit_code_of_the_documentation() {
        let codes = [Kind::Failed, Kind::Usage, Kind::Unhealthy, Kind::NotFound, Kind::Preflight, Kind::Interrupted]
            .map(Kind::exit_code);
        assert_eq!(codes, [1, 2, 3, 4, 5, 130]);
    }
}
