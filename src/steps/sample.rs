//! The sample TRE's repository, when that is what the environment is made from.

use std::fs;

use async_trait::async_trait;

use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::{Result, ResultExt};
use crate::steps::SAMPLE;
use crate::{journal, sample};

pub struct Sample;

/// Why `down` leaves the repository, if it does.
pub async fn kept_because(cx: &Context) -> Result<Option<String>> {
    let repo = &cx.spec.repo;
    if *repo != sample::default_folder(&cx.dirs) {
        return Ok(Some("you chose this folder".into()));
    }
    let others = journal::names(&cx.dirs)?.into_iter().filter(|name| *name != cx.spec.name);
    let mut users =
        others.filter(|name| journal::read(&cx.dirs, name).is_ok_and(|j| j.is_some_and(|j| j.spec.repo == *repo)));
    if let Some(other) = users.next() {
        return Ok(Some(format!("the environment {other} uses it")));
    }
    sample::edited(repo).await
}

#[async_trait]
impl Step<Context> for Sample {
    fn id(&self) -> StepId {
        SAMPLE
    }

    fn describe(&self) -> String {
        "sample TRE, as a git repository to edit".into()
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        Ok(if sample::is_sample(&cx.spec.repo).await? { State::Ready } else { State::Absent })
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        sample::write_sample(&cx.spec.repo).await.map(drop)
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        let repo = &cx.spec.repo;
        sample::remove_unfinished(repo);
        if !sample::is_sample(repo).await? || kept_because(cx).await?.is_some() {
            return Ok(());
        }
        fs::remove_dir_all(repo).with_context(|| format!("cannot remove {}", repo.display()))
    }
}
