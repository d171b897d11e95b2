//! Parameters: what generators hand to templates.

use std::collections::BTreeMap;
use std::sync::Arc;

use gotmpl::Value;
use serde_json::{Number, Value as Json};

/// A map of parameters.
pub type Map = BTreeMap<Arc<str>, Value>;

/// As Go decodes JSON: every number is a float.
pub fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::from(items.iter().map(value).collect::<Vec<_>>()),
        Json::Object(fields) => {
            Value::from(fields.iter().map(|(key, v)| (key.as_str().into(), value(v))).collect::<Map>())
        }
    }
}

/// As Go encodes JSON: a float without a fraction is written as an integer.
pub fn json(value: &Value) -> Json {
    match value {
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Int(number) => (*number).into(),
        Value::Uint(number) => (*number).into(),
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => (*number as i64).into(),
        Value::Float(number) => Number::from_f64(*number).map_or(Json::Null, Json::Number),
        Value::String(text) => Json::String(text.to_string()),
        Value::List(items) => Json::Array(items.iter().map(json).collect()),
        Value::Map(fields) => Json::Object(fields.iter().map(|(key, v)| (key.to_string(), json(v))).collect()),
        Value::Nil | Value::Function(_) => Json::Null,
    }
}

/// The value as Go prints it.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::Float(number) => float(*number),
        Value::List(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(" ")),
        Value::Map(fields) => {
            format!("map[{}]", fields.iter().map(|(k, v)| format!("{k}:{}", text(v))).collect::<Vec<_>>().join(" "))
        }
        other => other.to_string(),
    }
}

/// `%v` of Go: the shortest form that reads back, with an exponent below -4 and from 6 on.
fn float(number: f64) -> String {
    let scientific = format!("{number:e}");
    match scientific.split_once('e').map(|(digits, exponent)| (digits, exponent.parse::<i32>())) {
        Some((digits, Ok(exponent))) if number != 0.0 && !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ if number.is_infinite() => if number > 0.0 { "+Inf" } else { "-Inf" }.into(),
        _ => number.to_string(),
    }
}

/// Whether a map is one that is a `map[string]string` in Argo CD: labels, annotations or `values` of a generator.
pub fn is_string_map(root: &Value, map: &Arc<Map>) -> bool {
    let same = |value: Option<&Value>| matches!(value, Some(Value::Map(found)) if Arc::ptr_eq(found, map));
    let of_one = |params: &Value| {
        let metadata = params.field("metadata");
        same(params.field("values"))
            || same(metadata.and_then(|m| m.field("labels")))
            || same(metadata.and_then(|m| m.field("annotations")))
    };
    of_one(root) || matches!(root.field("clusters"), Some(Value::List(clusters)) if clusters.iter().any(of_one))
}

/// `over` laid over `base`: maps within are merged, everything else of `over` wins.
pub fn merged(base: &Map, over: &Map) -> Map {
    let mut result = base.clone();
    for (key, value) in over {
        let value = match (result.get(key), value) {
            (Some(Value::Map(base)), Value::Map(over)) if !Arc::ptr_eq(base, over) => Value::from(merged(base, over)),
            (_, value) => value.clone(),
        };
        result.insert(key.clone(), value);
    }
    result
}

/// Where maps of strings stand among the parameters of generators. Into such a map the controller cannot merge one of
/// any values: it fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StringMaps {
    pub values: bool,
    pub metadata: bool,
}

/// [`merged`], where `base` holds these maps of strings and `over` those.
pub fn merged_typed(base: &Map, over: &Map, in_base: StringMaps, in_over: StringMaps) -> Result<Map, String> {
    let filled = |map: &Map, key: &str| matches!(map.get(key), Some(Value::Map(fields)) if !fields.is_empty());
    let clash = |key: &str, base_typed: bool, over_typed: bool| {
        base_typed && !over_typed && filled(over, key) && matches!(base.get(key), Some(Value::Map(_)))
    };
    let metadata_clash = || {
        let below = |map: &Map, key: &str| map.get("metadata").and_then(|m| m.field(key)).cloned();
        ["labels", "annotations"].iter().any(|key| {
            matches!((below(base, key), below(over, key)), (Some(Value::Map(_)), Some(Value::Map(over))) if !over.is_empty())
        })
    };
    if clash("values", in_base.values, in_over.values) {
        return Err("both give values, and Argo CD fails to put those of a list or file into a generator's own".into());
    }
    if in_base.metadata && !in_over.metadata && metadata_clash() {
        return Err(
            "both give labels or annotations, and Argo CD fails to put those of a list or file into a cluster's".into(),
        );
    }
    Ok(merged(base, over))
}

/// Nested parameters as `a.b.0`, which is what a generator's own `selector` sees.
pub fn flattened(params: &Map) -> BTreeMap<String, String> {
    let mut flat = BTreeMap::new();
    for (key, value) in params {
        flatten(key, value, &mut flat);
    }
    flat
}

fn flatten(prefix: &str, value: &Value, flat: &mut BTreeMap<String, String>) {
    match value {
        Value::Map(fields) => fields.iter().for_each(|(key, v)| flatten(&format!("{prefix}.{key}"), v, flat)),
        Value::List(items) => items.iter().enumerate().for_each(|(i, v)| flatten(&format!("{prefix}.{i}"), v, flat)),
        value => {
            flat.insert(prefix.to_owned(), text(value));
        }
    }
}

/// Argo CD's `normalize`: lower case, everything but letters, digits, '-' and '.' a dash, none of these at the ends.
pub fn normalized(name: &str) -> String {
    let lower = name.to_lowercase();
    let mut clean: String =
        lower.chars().map(|c| if matches!(c, 'a'..='z' | '0'..='9' | '-' | '.') { c } else { '-' }).collect();
    clean.truncate(253);
    clean.trim_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_print_as_in_go() {
        for (number, printed) in [
            (1_000_000.0, "1e+06"),
            (1_500_000.25, "1.50000025e+06"),
            (999_999.5, "999999.5"),
            (0.000_01, "1e-05"),
            (0.0001, "0.0001"),
            (-2_000_000.0, "-2e+06"),
            (0.0, "0"),
        ] {
            assert_eq!(float(number), printed);
        }
    }

    #[test]
    fn nested_parameters_flatten_to_dotted_names() {
        let Value::Map(params) = value(&json!({"a": {"b": [1, {"c": "d"}]}, "e": true})) else { panic!() };
        let flat = flattened(&params);
        let expected = [("a.b.0", "1"), ("a.b.1.c", "d"), ("e", "true")].map(|(k, v)| (k.into(), v.into()));
        assert_eq!(flat, expected.into());
    }
}
