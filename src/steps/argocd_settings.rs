//! Settings that somebody's Argo CD lacks, for as long as the environment is there.
//!
//! Argo CD reads these keys again by itself, so that nothing of it is restarted. What was there before is in the journal
//! before anything is written. Each write names the ConfigMap as it was read, so that what somebody else writes at that
//! moment is not lost.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use crate::argocd::side::ArgoCd;
use crate::context::Context;
use crate::engine::{State, Step, StepId};
use crate::error::Result;
use crate::shared::needs::{self, CONFIG, config_type};
use crate::steps::{ARGOCD_SETTINGS, BRANCH, CLUSTER};

pub struct ArgoCdSettings;

#[async_trait]
impl Step<Context> for ArgoCdSettings {
    fn id(&self) -> StepId {
        ARGOCD_SETTINGS
    }

    fn needs(&self) -> &[StepId] {
        // What is needed follows from the repository.
        &[CLUSTER, BRANCH]
    }

    fn describe(&self) -> String {
        format!("settings that the Argo CD there lacks, in its ConfigMap {CONFIG}")
    }

    async fn observe(&self, cx: &Context) -> Result<State> {
        let Some(argocd) = cx.argocd().await? else { return Ok(Context::needs_cluster()) };
        let lacking = needs::settings(cx, &needs::config(&argocd).await?).await?;
        let changes: Vec<String> = lacking.iter().map(needs::Setting::change).collect();
        Ok(if changes.is_empty() { State::Ready } else { State::Drifted(changes.join("; ")) })
    }

    async fn apply(&self, cx: &Context) -> Result<()> {
        let argocd = cx.require_argocd().await?;
        let config = needs::config(&argocd).await?;
        let lacking = needs::settings(cx, &config).await?;
        cx.note(|facts| {
            for setting in &lacking {
                let adjusted = facts.adjusted.entry(setting.key.to_owned()).or_default();
                // What somebody else gave it since then is what comes back.
                if !adjusted.is_ours(setting.before.as_deref()) {
                    adjusted.before.clone_from(&setting.before);
                }
                adjusted.ours.retain(|ours| *ours != setting.after);
                adjusted.ours.push(setting.after.clone());
            }
        })?;
        let data = lacking.into_iter().map(|setting| (setting.key.to_owned(), json!(setting.after))).collect();
        write(&argocd, &config, data).await
    }

    async fn undo(&self, cx: &Context) -> Result<()> {
        let Some(argocd) = cx.argocd().await? else { return Ok(()) };
        let config = needs::config(&argocd).await?;
        let adjusted = cx.facts().adjusted.into_iter();
        // What somebody else changed stays; the audit names it.
        let ours = adjusted.filter(|(key, adjusted)| adjusted.is_ours(config["data"][key].as_str()));
        write(&argocd, &config, ours.map(|(key, adjusted)| (key, json!(adjusted.before))).collect()).await
    }
}

async fn write(argocd: &ArgoCd, config: &Value, data: Map<String, Value>) -> Result<()> {
    if data.is_empty() {
        return Ok(());
    }
    let read = &config["metadata"]["resourceVersion"];
    argocd.merge(&config_type(), CONFIG, &json!({"metadata": {"resourceVersion": read}, "data": data})).await
}
