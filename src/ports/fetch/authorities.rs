//! Whom to trust when fetching: the system's authorities, and those of the network one is in.

use std::fs;
use std::path::{Path, PathBuf};

use ureq::tls::{Certificate, PemItem, RootCerts, parse_pem};

use crate::error::{Error, Result, ResultExt};

/// Where systems keep the public ones.
pub const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Authorities besides the public ones.
#[derive(Debug, Clone)]
pub enum Trust {
    File(PathBuf),
    /// In PEM.
    Given(String),
}

impl Trust {
    /// These and the system's, which without a file of its own has those that the program was built with.
    pub(super) fn roots(&self) -> Result<RootCerts> {
        let mut all = match self {
            Trust::File(path) => read(path)?,
            Trust::Given(pem) => parsed(pem.as_bytes()).context("cannot use the environment's CA bundle")?,
        };
        all.extend(system().and_then(|pem| parsed(pem.as_bytes()).ok()).unwrap_or_default());
        Ok(RootCerts::new_with_certs(&all))
    }
}

/// The system's authorities in PEM, if it has them in a file.
pub fn system() -> Option<String> {
    SYSTEM.iter().find_map(|path| fs::read_to_string(path).ok())
}

/// The certificates of a file in PEM, and nothing else that is in it: a key may stand beside them.
pub fn certificates(path: &Path) -> Result<String> {
    read(path)?;
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (mut out, mut inside) = (String::new(), false);
    for line in text.lines().map(str::trim) {
        inside |= line == "-----BEGIN CERTIFICATE-----";
        if inside {
            out.push_str(line);
            out.push('\n');
        }
        inside &= line != "-----END CERTIFICATE-----";
    }
    Ok(out)
}

/// One text for each certificate in PEM.
pub fn each(pem: &str) -> impl Iterator<Item = &str> {
    pem.split_inclusive("-----END CERTIFICATE-----\n").filter(|one| one.contains("BEGIN CERTIFICATE"))
}

pub(super) fn read(path: &Path) -> Result<Vec<Certificate<'static>>> {
    let read = || parsed(&fs::read(path)?);
    read().with_context(|| format!("cannot use the CA bundle {}", path.display()))
}

fn parsed(pem: &[u8]) -> Result<Vec<Certificate<'static>>> {
    let items = parse_pem(pem).collect::<Result<Vec<_>, _>>()?;
    let found: Vec<_> = items
        .into_iter()
        .filter_map(|item| match item {
            PemItem::Certificate(certificate) => Some(certificate),
            _ => None,
        })
        .collect();
    if found.is_empty() {
        return Err(Error::failed("it holds no certificate"));
    }
    Ok(found)
}
