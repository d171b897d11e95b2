//! The contexts of the user's kubeconfig that the environment needs. No cluster is asked: a login could be due.

use async_trait::async_trait;

use super::{Check, Context, Fact, Finding};
use crate::error::Result;

pub struct Contexts;

#[async_trait]
impl Check for Contexts {
    fn name(&self) -> &'static str {
        "the contexts of your kubeconfig"
    }

    async fn run(&self, cx: &Context) -> Result<Vec<Finding>> {
        let there = match &cx.contexts {
            Ok(there) => there,
            Err(error) => {
                let why = "a shared Argo CD and clusters that are there already are found in it";
                return Ok(vec![
                    Finding { severity: super::Severity::Warning, ..Finding::of("kubeconfig", error).why(why) }
                        .fix("kubectl config view"),
                ]);
            }
        };
        let wanted = cx.meant.iter().flat_map(|meant| &meant.contexts);
        let missing = wanted.filter(|wanted| !there.contains(wanted));
        let fix = match there.is_empty() {
            true => "export KUBECONFIG=FILE".to_owned(),
            false => format!("there are: {}", crate::text::one_line(&there.join(", "), 200)),
        };
        let finding = |context| {
            Finding::blocker("context-missing", format!("your kubeconfig has no context {context}"))
                .why("the settings name it")
                .fix(fix.clone())
        };
        Ok(missing.map(finding).collect())
    }

    async fn facts(&self, cx: &Context) -> Vec<Fact> {
        match &cx.contexts {
            Ok(there) if !there.is_empty() => {
                vec![Fact::new("contexts", format!("{}, for --argocd and --provider existing", there.join(", ")))]
            }
            _ => Vec::new(),
        }
    }
}
