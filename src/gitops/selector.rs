//! Label selectors of Kubernetes, as cluster generators and generators' own filters use them.

use std::collections::BTreeMap;

use serde_json::Value;

/// matchLabels and matchExpressions; empty matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    pub labels: BTreeMap<String, String>,
    pub expressions: Vec<Expression>,
}

/// One of matchExpressions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    pub key: String,
    pub operator: Operator,
    pub values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

/// Why a set of labels is not selected.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Miss {
    /// matchLabels (or In with one value) wants a value, the label is absent or has another.
    Label { key: String, wanted: String, found: Option<String> },
    /// An expression does not hold.
    Expression { key: String, wanted: String, found: Option<String> },
}

impl Selector {
    /// Reads `{matchLabels, matchExpressions}`; null is the empty selector.
    pub fn parse(value: &Value) -> Result<Selector, String> {
        let mut selector = Selector::default();
        match value.get("matchLabels") {
            None | Some(Value::Null) => {}
            Some(Value::Object(labels)) => {
                for (key, value) in labels {
                    let Some(text) = value.as_str() else {
                        return Err(format!("matchLabels {key} is {value}, not text; quote it"));
                    };
                    selector.labels.insert(key.clone(), text.into());
                }
            }
            Some(_) => return Err("matchLabels is not a map".into()),
        }
        match value.get("matchExpressions") {
            None | Some(Value::Null) => {}
            Some(Value::Array(expressions)) => {
                for expression in expressions {
                    selector.expressions.push(Expression::parse(expression)?);
                }
            }
            Some(_) => return Err("matchExpressions is not a list".into()),
        }
        Ok(selector)
    }

    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.expressions.is_empty()
    }

    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.labels.iter().all(|(key, value)| label(key) == Some(value.as_str()))
            && self.expressions.iter().all(|expression| expression.holds(label(&expression.key)))
    }

    /// Everything that keeps these labels from being selected.
    pub fn misses<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> Vec<Miss> {
        let found = |key: &str| label(key).map(str::to_owned);
        let labels = self
            .labels
            .iter()
            .filter(|(key, value)| label(key) != Some(value.as_str()))
            .map(|(key, value)| Miss::Label { key: key.clone(), wanted: value.clone(), found: found(key) });
        let expressions = self.expressions.iter().filter(|e| !e.holds(label(&e.key))).map(|e| Miss::Expression {
            key: e.key.clone(),
            wanted: e.to_string(),
            found: found(&e.key),
        });
        labels.chain(expressions).collect()
    }
}

impl Expression {
    fn parse(value: &Value) -> Result<Expression, String> {
        let key = value.get("key").and_then(Value::as_str).ok_or("an expression has no key")?;
        let operator = match value.get("operator").and_then(Value::as_str) {
            Some("In") => Operator::In,
            Some("NotIn") => Operator::NotIn,
            Some("Exists") => Operator::Exists,
            Some("DoesNotExist") => Operator::DoesNotExist,
            other => {
                let found = other.unwrap_or("none");
                return Err(format!("operator {found} of {key} is not one of In, NotIn, Exists, DoesNotExist"));
            }
        };
        let mut values = Vec::new();
        for item in value.get("values").and_then(Value::as_array).map_or(&[][..], Vec::as_slice) {
            match item.as_str() {
                Some(text) => values.push(text.to_owned()),
                None => return Err(format!("a value of {key} is {item}, not text; quote it")),
            }
        }
        let needs_values = matches!(operator, Operator::In | Operator::NotIn);
        if needs_values == values.is_empty() {
            let needs = if needs_values { "needs values" } else { "takes no values" };
            return Err(format!("operator {operator:?} of {key} {needs}"));
        }
        Ok(Expression { key: key.into(), operator, values })
    }

    fn holds(&self, label: Option<&str>) -> bool {
        let among = label.is_some_and(|label| self.values.iter().any(|value| value == label));
        match self.operator {
            Operator::In => among,
            Operator::NotIn => !among,
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
        }
    }
}

/// As in a selector on the command line: `skip-nginx notin (true)`.
impl std::fmt::Display for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.operator {
            Operator::In => write!(f, "{} in ({})", self.key, self.values.join(", ")),
            Operator::NotIn => write!(f, "{} notin ({})", self.key, self.values.join(", ")),
            Operator::Exists => f.write_str(&self.key),
            Operator::DoesNotExist => write!(f, "!{}", self.key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn selects(selector: Value, labels: &[(&str, &str)]) -> bool {
        let labels: BTreeMap<&str, &str> = labels.iter().copied().collect();
        Selector::parse(&selector).unwrap().matches(|key| labels.get(key).copied())
    }

    #[test]
    fn operators_treat_absent_labels_as_kubernetes_does() {
        let expression = |operator: &str, values: &[&str]| match values {
            [] => json!({"matchExpressions": [{"key": "k", "operator": operator}]}),
            _ => json!({"matchExpressions": [{"key": "k", "operator": operator, "values": values}]}),
        };
        assert!(selects(expression("NotIn", &["true"]), &[]));
        assert!(!selects(expression("NotIn", &["true"]), &[("k", "true")]));
        assert!(!selects(expression("In", &["a", "b"]), &[]));
        assert!(selects(expression("In", &["a", "b"]), &[("k", "b")]));
        assert!(selects(expression("DoesNotExist", &[]), &[]));
        assert!(!selects(expression("Exists", &[]), &[]));
        assert!(selects(json!(null), &[]));
    }

    #[test]
    fn mistakes_are_named() {
        for (selector, said) in [
            (json!({"matchLabels": {"a": true}}), "quote it"),
            (json!({"matchExpressions": [{"key": "k", "operator": "Is"}]}), "operator Is of k"),
            (json!({"matchExpressions": [{"key": "k", "operator": "In"}]}), "needs values"),
            (json!({"matchExpressions": [{"operator": "In"}]}), "has no key"),
        ] {
            let error = Selector::parse(&selector).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
