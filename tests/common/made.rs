//! What ApplicationSets make, in one form for what the controller made and for what k8tre predicts.

use std::collections::{BTreeMap, BTreeSet};

use k8tre::gitops::finding::Severity;
use k8tre::gitops::predict::{PredictedApplication, Prediction};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What one ApplicationSet makes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// Whether something went wrong: the controller says so in the condition ErrorOccurred.
    pub error: bool,
    /// By name: project, source, destination and sync options.
    pub applications: BTreeMap<String, Value>,
}

/// By the name of the ApplicationSet.
pub type All = BTreeMap<String, Made>;

/// What is predicted for these ApplicationSets.
pub struct Predicted {
    pub all: All,
    /// Names that two of them make: only one gets it, and which is chance.
    pub clashing: BTreeSet<String>,
    /// ApplicationSets of which k8tre says that they cannot be predicted.
    pub open: BTreeSet<String>,
}

impl Predicted {
    pub fn new<'a>(sets: impl IntoIterator<Item = &'a str>, prediction: &Prediction) -> Predicted {
        let mut all: All = sets.into_iter().map(|set| (set.to_owned(), Made::default())).collect();
        for (set, made) in &mut all {
            let named = |text: &str| text.split([' ', ':', ',', ';']).any(|word| word == set);
            let errors = prediction.findings.iter().filter(|finding| finding.severity == Severity::Error);
            made.error = errors.filter(|finding| finding.code != "name-clash").any(|finding| named(&finding.message));
        }
        for application in &prediction.applications {
            let made = all.entry(application.application_set.to_string()).or_default();
            made.applications.insert(application.name.to_string(), of_prediction(application));
        }
        let names = prediction.applications.iter().map(|app| app.name.to_string());
        let mut seen = BTreeSet::new();
        let clashing = names.filter(|name| !seen.insert(name.clone())).collect();
        let open = prediction.excluded.iter().filter(|set| set.unpredictable);
        Predicted { clashing, open: open.map(|set| set.application_set.clone()).collect(), all }
    }

    /// One entry for each ApplicationSet of which the controller made something else.
    pub fn differences(&self, real: &All) -> Vec<String> {
        let clashes = |made: &Made| made.applications.keys().any(|name| self.clashing.contains(name));
        let losers = self.all.iter().filter(|(_, made)| clashes(made)).map(|(set, _)| set.clone()).collect();
        let [real, predicted] = [real, &self.all].map(|all| without(all, &self.clashing, &losers));
        let sets: BTreeSet<&String> = real.keys().chain(predicted.keys()).collect();
        let differs = |set: &&String| real.get(*set) != predicted.get(*set) && !self.open.contains(*set);
        let side = |all: &All, set: &str| all.get(set).map_or("nothing".into(), |made| json!(made).to_string());
        let line =
            |set: &String| format!("{set}\n  Argo CD:   {}\n  predicted: {}", side(&real, set), side(&predicted, set));
        sets.into_iter().filter(differs).map(line).collect()
    }
}

/// Without names that are left to chance, and without the error of whoever loses.
fn without(all: &All, clashing: &BTreeSet<String>, losers: &BTreeSet<String>) -> All {
    let mut all = all.clone();
    for (set, made) in &mut all {
        made.applications.retain(|name, _| !clashing.contains(name));
        made.error = made.error && !losers.contains(set);
    }
    all
}

fn of_prediction(app: &PredictedApplication) -> Value {
    let source = app.source.value();
    let field = if source.is_array() { "sources" } else { "source" };
    cleaned(&json!({
        "project": &*app.project,
        field: source,
        "destination": {"server": &*app.server, "name": &*app.cluster, "namespace": &*app.namespace},
        "syncOptions": app.sync_options.iter().map(|option| &**option).collect::<Vec<_>>(),
    }))
}

/// Without empty fields, which the API server keeps or drops as its types have it.
pub fn cleaned(value: &Value) -> Value {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), cleaned(value)));
            Value::Object(fields.filter(|(_, value)| !empty(value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(cleaned).collect()),
        other => other.clone(),
    }
}
