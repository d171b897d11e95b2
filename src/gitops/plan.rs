//! A piece of a manifest whose texts are templates, parsed once and rendered for many parameters.

use std::rc::Rc;

use gotmpl::Value as Parameters;
use serde_json::{Map, Value};

use super::appset::Problem;
use super::template::{Compiled, Engine};
use super::yaml::token;

pub enum Plan {
    Fixed(Value),
    Text { text: Rc<Compiled>, pointer: String, template: String },
    List(Vec<Plan>),
    Map(Vec<(Plan, Plan)>),
}

impl Plan {
    /// `pointer` is where the value stands in its ApplicationSet.
    pub fn new(value: &Value, engine: &Engine, pointer: &str) -> Plan {
        match value {
            Value::String(text) => Self::text(text, engine, pointer),
            Value::Array(items) => {
                let plans: Vec<Plan> = items
                    .iter()
                    .enumerate()
                    .map(|(i, item)| Self::new(item, engine, &format!("{pointer}/{i}")))
                    .collect();
                match plans.iter().all(Plan::is_fixed) {
                    true => Plan::Fixed(value.clone()),
                    false => Plan::List(plans),
                }
            }
            Value::Object(fields) => {
                let plans: Vec<(Plan, Plan)> = fields
                    .iter()
                    .map(|(key, field)| {
                        let pointer = format!("{pointer}/{}", token(key));
                        (Self::text(key, engine, &pointer), Self::new(field, engine, &pointer))
                    })
                    .collect();
                match plans.iter().all(|(key, field)| key.is_fixed() && field.is_fixed()) {
                    true => Plan::Fixed(value.clone()),
                    false => Plan::Map(plans),
                }
            }
            other => Plan::Fixed(other.clone()),
        }
    }

    fn text(text: &str, engine: &Engine, pointer: &str) -> Plan {
        let compiled = engine.compile(text);
        match compiled.literal() {
            Some(_) => Plan::Fixed(text.into()),
            None => Plan::Text { text: compiled, pointer: pointer.into(), template: text.into() },
        }
    }

    fn is_fixed(&self) -> bool {
        matches!(self, Plan::Fixed(_))
    }

    pub fn render(&self, parameters: &Parameters) -> Result<Value, Problem> {
        match self {
            Plan::Fixed(value) => Ok(value.clone()),
            Plan::Text { text, pointer, template } => match text.render(parameters) {
                Ok(text) => Ok(Value::String(text)),
                Err(message) => Err(Problem::new(pointer, format!("cannot render {template}: {message}"))),
            },
            Plan::List(items) => items.iter().map(|item| item.render(parameters)).collect(),
            Plan::Map(fields) => {
                let mut rendered = Map::new();
                for (key, field) in fields {
                    let field = field.render(parameters)?;
                    if let Value::String(key) = key.render(parameters)? {
                        rendered.insert(key, field);
                    }
                }
                Ok(Value::Object(rendered))
            }
        }
    }
}
