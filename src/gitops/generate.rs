//! Parameters from generators, as Argo CD's ApplicationSet controller v3.6.1 makes them.

mod git;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use gotmpl::Value;
use serde_json::Value as Json;

use super::appset::{Clusters, Generator, Kind, Pattern, Problem};
use super::params::{self, Map, StringMaps};
use super::selector::Selector;
use super::template::Engine;
use super::world::{Selected, World};
use super::yaml::{self, token};

/// Why a generator gives nothing.
#[derive(Debug)]
pub enum Stop {
    /// A mistake; the controller then changes nothing of the whole ApplicationSet.
    Problem(Problem),
    Unpredictable(String),
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Self {
        Stop::Problem(problem)
    }
}

/// What happened on the way to the parameters, for the explanation when there are none.
#[derive(Debug)]
pub enum Event {
    NoFolder(Vec<Pattern>),
    NoFile(Vec<Pattern>),
    /// The selector as filled in, and as written. `path` is the folder that an outer generator gave.
    Selection {
        path: Option<String>,
        wanted: Selector,
        written: Selector,
        selected: bool,
    },
    /// The folders that a git generator found inside a matrix.
    Folders(Vec<String>),
    Filtered,
    EmptyList,
}

/// One run of the generators of one ApplicationSet.
pub struct Run<'a> {
    pub world: &'a World<'a>,
    pub engine: &'a Engine,
    /// The same language with `missingkey=error`: a matrix fills `values` in only where it can.
    pub strict: &'a Engine,
    pub trace: Option<&'a Trace>,
}

/// Takes down what happens. The path is that of the matrices under way: a folder, where their first generator gave one.
#[derive(Default)]
pub struct Trace {
    events: RefCell<Vec<Event>>,
    outer: RefCell<Vec<Option<String>>>,
}

impl Trace {
    pub fn events(self) -> Vec<Event> {
        self.events.into_inner()
    }
}

impl Run<'_> {
    fn event(&self, event: impl FnOnce() -> Event) {
        if let Some(trace) = self.trace {
            let event = event();
            trace.events.borrow_mut().push(event);
        }
    }

    /// Whether a matrix is under way, and the innermost folder that one gave.
    fn outer(&self) -> (bool, Option<String>) {
        let Some(trace) = self.trace else { return (false, None) };
        let outer = trace.outer.borrow();
        (!outer.is_empty(), outer.iter().rev().find_map(Clone::clone))
    }

    /// The parameters of a generator. `outer` are those of the first generator of a matrix, for its second.
    pub fn generate(&self, generator: &Generator, outer: Option<&Map>) -> Result<Vec<Map>, Stop> {
        let filled = match outer {
            Some(outer) if !outer.is_empty() && generator.templated => Some(self.fill(generator, outer)?),
            _ => None,
        };
        let effective = filled.as_ref().unwrap_or(generator);
        let mut found = match &effective.kind {
            Kind::Git(git) => self.git(git, effective)?,
            Kind::Clusters(clusters) => self.clusters(clusters, effective, generator)?,
            Kind::List { elements, yaml } => self.list(elements, yaml.as_deref(), effective)?,
            Kind::Matrix(children) => self.matrix(children, effective)?,
            Kind::Merge { generators, keys } => self.merge(generators, keys, effective)?,
            Kind::Unpredictable { kind, reason } => {
                return Err(Stop::Unpredictable(format!("the generator {kind} cannot be predicted: {reason}")));
            }
        };
        // The filter is the one that is written: the controller does not fill it in.
        if let Some(selector) = &generator.selector {
            let before = found.len();
            found.retain(|params| {
                let flat = params::flattened(params);
                selector.matches(|key| flat.get(key).map(String::as_str))
            });
            if before > 0 && found.is_empty() {
                self.event(|| Event::Filtered);
            }
        }
        Ok(found)
    }

    fn fill(&self, generator: &Generator, outer: &Map) -> Result<Generator, Problem> {
        let parameters = Value::from(outer.clone());
        generator.refilled(&self.filled(&generator.value, &parameters, &generator.pointer, false)?)
    }

    /// `kind` says that the value is the body of a generator that has `values`.
    fn filled(&self, value: &Json, parameters: &Value, pointer: &str, kind: bool) -> Result<Json, Problem> {
        let render = |text: &str, pointer: &str| {
            let rendered = self.engine.render(text, parameters);
            rendered.map_err(|message| Problem::new(pointer, format!("cannot render {text}: {message}")))
        };
        Ok(match value {
            Json::String(text) => render(text, pointer)?.into(),
            Json::Array(items) => items
                .iter()
                .enumerate()
                .map(|(index, item)| self.filled(item, parameters, &format!("{pointer}/{index}"), false))
                .collect::<Result<_, _>>()?,
            Json::Object(fields) => {
                let mut filled = serde_json::Map::new();
                for (key, field) in fields {
                    let pointer = format!("{pointer}/{}", token(key));
                    let field = match field {
                        Json::Object(values) if kind && key == "values" => self.values(values, parameters),
                        field => {
                            self.filled(field, parameters, &pointer, matches!(key.as_str(), "git" | "clusters"))?
                        }
                    };
                    filled.insert(render(key, &pointer)?, field);
                }
                Json::Object(filled)
            }
            other => other.clone(),
        })
    }

    /// What cannot be filled in yet is left for the generator's own parameters.
    fn values(&self, values: &serde_json::Map<String, Json>, parameters: &Value) -> Json {
        let fill = |value: &Json| match value.as_str().map(|text| self.strict.render(text, parameters)) {
            Some(Ok(text)) => Json::String(text),
            _ => value.clone(),
        };
        Json::Object(values.iter().map(|(key, value)| (key.clone(), fill(value))).collect())
    }

    fn clusters(&self, clusters: &Clusters, generator: &Generator, written: &Generator) -> Result<Vec<Map>, Stop> {
        let selected = self
            .world
            .select(&clusters.selector)
            .map_err(|message| Problem::new(&format!("{}/clusters/selector", generator.pointer), message))?;
        self.event(|| Event::Selection {
            path: self.outer().1,
            wanted: clusters.selector.clone(),
            written: match &written.kind {
                Kind::Clusters(written) => written.selector.clone(),
                _ => clusters.selector.clone(),
            },
            selected: !selected.is_empty(),
        });
        let mut found = Vec::with_capacity(selected.len());
        for cluster in selected {
            let Selected { go, simple } = cluster;
            let mut params = if self.engine.is_go() { go.clone() } else { simple.clone() };
            self.append_values(&mut params, &clusters.values, generator, "clusters")?;
            found.push(params);
        }
        if clusters.flat_list {
            let all: Vec<Value> = found.into_iter().map(Value::from).collect();
            found = vec![Map::from([("clusters".into(), all.into())])];
        }
        Ok(found)
    }

    fn list(&self, elements: &[Json], yaml: Option<&str>, generator: &Generator) -> Result<Vec<Map>, Stop> {
        let problem = |message: String| Problem::new(&format!("{}/list", generator.pointer), message);
        let mut found = Vec::new();
        for element in elements {
            let Json::Object(fields) = element else { return Err(problem("an element is not a map".into()).into()) };
            let Value::Map(params) = params::value(element) else { continue };
            if self.engine.is_go() {
                found.push((*params).clone());
                continue;
            }
            let mut simple = Map::new();
            for (key, field) in fields {
                match field {
                    Json::String(text) => drop(simple.insert(key.as_str().into(), text.as_str().into())),
                    Json::Object(values) if key == "values" => {
                        for (key, value) in values {
                            let text = value.as_str().ok_or_else(|| problem(format!("values {key} is not text")))?;
                            simple.insert(format!("values.{key}").into(), text.into());
                        }
                    }
                    _ => return Err(problem(format!("{key} is not text; without goTemplate it must be")).into()),
                }
            }
            found.push(simple);
        }
        if let Some(text) = yaml {
            let elements = yaml::data("elementsYaml", text.as_bytes()).map_err(|e| problem(e.to_string()))?;
            match params::value(&elements) {
                Value::Nil => {}
                Value::List(items) => {
                    for item in items.iter() {
                        let Value::Map(fields) = item else {
                            return Err(problem("an element of elementsYaml is not a map".into()).into());
                        };
                        found.push((**fields).clone());
                    }
                }
                _ => return Err(problem("elementsYaml is not a list".into()).into()),
            }
        }
        if found.is_empty() {
            self.event(|| Event::EmptyList);
        }
        Ok(found)
    }

    fn matrix(&self, children: &[Generator], generator: &Generator) -> Result<Vec<Map>, Stop> {
        let [first, second] = children else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for outer in self.generate(first, None)? {
            if let Some(trace) = self.trace {
                trace.outer.borrow_mut().push(outer_path(&outer));
            }
            let inner = self.generate(second, Some(&outer));
            if let Some(trace) = self.trace {
                trace.outer.borrow_mut().pop();
            }
            for inner in inner? {
                found.push(match self.engine.is_go() {
                    true => params::merged_typed(&inner, &outer, string_maps(second), string_maps(first))
                        .map_err(|message| Problem::new(&format!("{}/matrix", generator.pointer), message))?,
                    false => combined(&outer, &inner)
                        .map_err(|message| Problem::new(&format!("{}/matrix", generator.pointer), message))?,
                });
            }
        }
        Ok(found)
    }

    fn merge(&self, children: &[Generator], keys: &[String], generator: &Generator) -> Result<Vec<Map>, Stop> {
        let mut merged: Vec<(String, Map)> = Vec::new();
        for (position, child) in children.iter().enumerate() {
            let mut by_key = HashMap::new();
            for params in self.generate(child, None)? {
                let key: BTreeMap<&str, Json> = keys
                    .iter()
                    .map(|key| (key.as_str(), params.get(key.as_str()).map_or(Json::Null, params::json)))
                    .collect();
                let key = serde_json::to_string(&key).unwrap_or_default();
                if position == 0 {
                    merged.push((key.clone(), params.clone()));
                }
                if by_key.insert(key.clone(), params).is_some() {
                    let pointer = format!("{}/merge", generator.pointer);
                    return Err(Problem::new(&pointer, format!("two parameter sets have the merge keys {key}")).into());
                }
            }
            if position == 0 {
                continue;
            }
            for (key, base) in &mut merged {
                match by_key.get(key) {
                    Some(over) if self.engine.is_go() => {
                        let types = (string_maps(&children[0]), string_maps(child));
                        *base = params::merged_typed(base, over, types.0, types.1)
                            .map_err(|message| Problem::new(&format!("{}/merge", generator.pointer), message))?;
                    }
                    Some(over) => base.extend(over.clone()),
                    None => {}
                }
            }
        }
        Ok(merged.into_iter().map(|(_, params)| params).collect())
    }
}

/// Which maps of strings the parameters of a generator hold.
fn string_maps(generator: &Generator) -> StringMaps {
    match &generator.kind {
        Kind::Git(git) => StringMaps { values: !git.values.is_empty(), metadata: false },
        Kind::Clusters(clusters) => StringMaps { values: !clusters.values.is_empty(), metadata: !clusters.flat_list },
        Kind::Matrix(children) | Kind::Merge { generators: children, .. } => {
            children.iter().map(string_maps).fold(StringMaps::default(), |all, maps| StringMaps {
                values: all.values || maps.values,
                metadata: all.metadata || maps.metadata,
            })
        }
        Kind::List { .. } | Kind::Unpredictable { .. } => StringMaps::default(),
    }
}

/// The folder among these parameters, also below a `pathParamPrefix`.
fn outer_path(outer: &Map) -> Option<String> {
    let of = |params: &Map| match params.get("path") {
        Some(Value::Map(path)) => path.get("path").and_then(Value::as_str).map(str::to_owned),
        Some(Value::String(path)) => Some(path.to_string()),
        _ => None,
    };
    of(outer).or_else(|| {
        outer.iter().find_map(|(key, value)| match value {
            Value::Map(params) => of(params),
            Value::String(path) if key.ends_with(".path") => Some(path.to_string()),
            _ => None,
        })
    })
}

/// Without Go templates everything is text, and the two sides of a matrix may not disagree.
fn combined(outer: &Map, inner: &Map) -> Result<Map, String> {
    let texts = |map: &Map| -> Map { map.iter().map(|(k, v)| (k.clone(), params::text(v).into())).collect() };
    let mut result = texts(outer);
    for (key, value) in texts(inner) {
        if result.get(&key).is_some_and(|found| *found != value) {
            return Err(format!("both generators of the matrix give {key}, and not the same"));
        }
        result.insert(key, value);
    }
    Ok(result)
}
