//! provisional
use crate::error::{Error, Result};
use crate::ports::git::CommitId;
use crate::spec::Spec;
use std::collections::BTreeMap;
pub struct P {
    pub applications: Vec<A>,
}
pub struct A {
    pub name: String,
}
pub struct EnvironmentOverlay {
    pub base: CommitId,
    pub files: BTreeMap<String, String>,
    pub seeds: BTreeMap<String, String>,
    pub remove: Vec<String>,
    pub root_application: serde_json::Value,
    pub prediction: P,
}
impl EnvironmentOverlay {
    pub fn of(_spec: &Spec, _base: Option<&str>) -> Result<Self> {
        Err(Error::failed("x"))
    }
    pub fn check(&self, _spec: &Spec) -> Result<()> {
        Ok(())
    }
}
