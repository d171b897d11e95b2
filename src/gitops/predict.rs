//! Which Applications the ApplicationSets of a repository make, for given clusters: what Argo CD's controller v3.6.1
//! would do, without it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZero;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use gotmpl::Value as Parameters;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::appset::{ApplicationSet, Problem};
use super::finding::Finding;
use super::generate::{Event, Run, Stop, Trace};
use super::plan::Plan;
use super::repository::Repository;
use super::template::Engine;
use super::tree::Tree;
pub use super::world::Cluster;
use super::world::World;
use super::{functions, labels, reason, template_patch, yaml};

/// What the repository makes of these clusters.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Prediction {
    /// By name.
    pub applications: Vec<PredictedApplication>,
    pub excluded: Vec<Excluded>,
    pub findings: Vec<Finding>,
}

/// One Application. Texts are shared, because large installations repeat most of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PredictedApplication {
    pub name: Arc<str>,
    pub application_set: Arc<str>,
    /// Namespace of the destination.
    pub namespace: Arc<str>,
    pub project: Arc<str>,
    /// Of the first source.
    pub path: Arc<str>,
    #[serde(rename = "repoURL")]
    pub repo_url: Arc<str>,
    pub revision: Arc<str>,
    /// Address of the destination; empty if it is named instead.
    pub server: Arc<str>,
    pub cluster: Arc<str>,
    /// Name of the config management plugin of the first source.
    pub plugin: Option<Arc<str>>,
    pub sync_options: Arc<[Arc<str>]>,
    /// Labels and annotations that Argo CD gives the namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_metadata: Option<Json>,
    /// `source`, or `sources` as a list.
    pub source: Json,
}

/// A JSON value kept as text: a tenth of the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json(Arc<str>);

impl Json {
    fn new(value: &Value) -> Self {
        Json(value.to_string().into())
    }

    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or(Value::Null)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

/// An ApplicationSet that makes nothing here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Excluded {
    pub application_set: String,
    pub reason: String,
    /// Whether it might make Applications after all, from what is not in the repository.
    pub unpredictable: bool,
}

/// Predicts every Application. The tree is the commit that Argo CD will read.
pub fn predict(repository: &Repository, tree: &dyn Tree, clusters: &[Cluster]) -> Prediction {
    let world = World::new(tree, &repository.root.repo_url, clusters);
    let sets = &repository.application_sets;
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    let share = sets.len().div_ceil(workers).max(MIN_SHARE);
    let mut result = Prediction { findings: repository.findings.clone(), ..Prediction::default() };
    thread::scope(|scope| {
        let parts: Vec<_> = sets.chunks(share).map(|sets| scope.spawn(|| Predictor::new(&world).run(sets))).collect();
        for part in parts {
            let part = part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result.applications.extend(part.applications);
            result.excluded.extend(part.excluded);
            result.findings.extend(part.findings);
        }
    });
    result.applications.sort_by(|a, b| (&a.name, &a.application_set).cmp(&(&b.name, &b.application_set)));
    clashes(&result.applications, repository, &mut result.findings);
    result
}

/// A thread is worth its start from here on.
const MIN_SHARE: usize = 64;

/// Names that two predictions share: with what another branch already serves on the same Argo CD, for instance.
pub fn clashes_between(mine: &Prediction, theirs: &Prediction, repository: &Repository) -> Vec<Finding> {
    let taken: HashMap<&str, &PredictedApplication> = theirs.applications.iter().map(|app| (&*app.name, app)).collect();
    let clash = |app: &PredictedApplication| {
        let other = taken.get(&*app.name)?;
        let set = repository.application_sets.iter().find(|set| *set.name == *app.application_set)?;
        let finding = Finding::error("name-clash", &set.file, set.line("/spec/template/metadata/name"));
        Some(
            finding
                .message(format!(
                    "Application \"{}\" is already made by ApplicationSet {} at revision {}; Argo CD updates neither",
                    app.name, other.application_set, other.revision
                ))
                .fix("put the cluster's name or the environment into the name: {{.nameNormalized}}"),
        )
    };
    mine.applications.iter().filter_map(clash).collect()
}

/// What is known about the folders that a generator looked at, for these clusters; see `overlay`.
pub(super) fn selections(set: &ApplicationSet, world: &World) -> Vec<Event> {
    let trace = Trace::default();
    if let (Ok(engine), Ok(strict)) = engines(set) {
        let run = Run { world, engine: &engine, strict: &strict, trace: Some(&trace) };
        for generator in &set.spec.generators {
            // A mistake is a finding of the prediction; here only the folders matter.
            let _ = run.generate(generator, None);
        }
    }
    trace.events()
}

fn engines(set: &ApplicationSet) -> (Result<Engine, String>, Result<Engine, String>) {
    let strict = ["missingkey=error".to_owned()];
    (Engine::new(set.spec.go_template, &set.spec.options), Engine::new(set.spec.go_template, &strict))
}

/// `goTemplate` and `goTemplateOptions`.
type Setting = (bool, Vec<String>);

struct Predictor<'a> {
    world: &'a World<'a>,
    engines: HashMap<Setting, Rc<(Engine, Engine)>>,
    texts: HashSet<Arc<str>>,
    result: Prediction,
}

impl<'a> Predictor<'a> {
    fn new(world: &'a World<'a>) -> Self {
        Predictor { world, engines: HashMap::new(), texts: HashSet::new(), result: Prediction::default() }
    }

    fn run(mut self, sets: &[ApplicationSet]) -> Prediction {
        sets.iter().for_each(|set| self.set(set));
        self.result
    }

    fn set(&mut self, set: &ApplicationSet) {
        let key = (set.spec.go_template, set.spec.options.clone());
        let engines = match self.engines.get(&key) {
            Some(engines) => engines.clone(),
            None => match engines(set) {
                (Ok(engine), Ok(strict)) => {
                    let engines = Rc::new((engine, strict));
                    self.engines.insert(key, engines.clone());
                    engines
                }
                (Err(message), _) | (_, Err(message)) => {
                    return self.failed(set, &Problem::new("/spec/goTemplateOptions", message));
                }
            },
        };
        let mut made = Vec::new();
        for generator in &set.spec.generators {
            let run = Run { world: self.world, engine: &engines.0, strict: &engines.1, trace: None };
            let parameters = match run.generate(generator, None) {
                Ok(parameters) => parameters,
                Err(Stop::Problem(problem)) => return self.failed(set, &problem),
                Err(Stop::Unpredictable(reason)) => return self.exclude(set, reason, true),
            };
            if parameters.is_empty() {
                continue;
            }
            let template = if generator.template.is_null() {
                set.spec.template.clone()
            } else {
                filled(&generator.template, &set.spec.template)
            };
            let plan = Plan::new(&template, &engines.0, "/spec/template");
            for parameters in parameters {
                // Without parameters the controller leaves the template as it is.
                let rendered = if parameters.is_empty() {
                    Ok(template.clone())
                } else {
                    let parameters = Parameters::from(parameters);
                    plan.render(&parameters).and_then(|app| patched(app, set, &engines.0, &parameters))
                };
                match rendered {
                    Ok(application) => made.push(self.application(set, &application)),
                    Err(problem) => return self.failed(set, &problem),
                }
            }
        }
        match made.is_empty() {
            true => {
                let reason = reason::reason(&selections(set, self.world), self.world);
                self.exclude(set, reason, false);
            }
            false => self.accept(set, made),
        }
    }

    /// The controller leaves out what it cannot create: names that occur twice, unknown destinations.
    fn accept(&mut self, set: &ApplicationSet, made: Vec<PredictedApplication>) {
        let mut count: HashMap<&str, usize> = HashMap::new();
        made.iter().for_each(|app| *count.entry(&*app.name).or_default() += 1);
        let count: HashMap<String, usize> = count.into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
        let name_line = set.line("/spec/template/metadata/name");
        let mut told = HashSet::new();
        for app in made {
            let name = &*app.name;
            if let Some(times @ 2..) = count.get(name) {
                if told.insert(app.name.clone()) {
                    self.result.findings.push(
                        Finding::error("name-not-unique", &set.file, name_line)
                            .message(format!(
                                "ApplicationSet {} makes {times} Applications named \"{name}\"; Argo CD then makes none of them",
                                set.name
                            ))
                            .fix("put what differs into the name, such as {{.nameNormalized}}"),
                    );
                }
                continue;
            }
            if name.is_empty() {
                self.result.findings.push(
                    Finding::error("name-empty", &set.file, name_line)
                        .message(format!("ApplicationSet {} makes an Application without a name", set.name))
                        .fix("give template.metadata.name"),
                );
                continue;
            }
            if let Some(problem) = self.world.unreachable(&app.server, &app.cluster) {
                self.result.findings.push(
                    Finding::error("destination-unknown", &set.file, set.line("/spec/template/spec/destination"))
                        .message(format!(
                            "ApplicationSet {}: the destination of Application {name} {problem}",
                            set.name
                        ))
                        .fix("use {{.server}} of a cluster generator, or register the cluster"),
                );
                continue;
            }
            if let Some(problem) = labels::object_name_problem(name) {
                self.result.findings.push(
                    Finding::error("name-invalid", &set.file, name_line)
                        .message(format!(
                            "ApplicationSet {}: \"{name}\" cannot be the name of an Application: {problem}",
                            set.name
                        ))
                        .fix("clean it: {{.name | normalize}}, {{.nameNormalized}}, {{.path.basenameNormalized}}"),
                );
                continue;
            }
            if let Some(problem) = labels::name_problem(name) {
                self.result.findings.push(
                    Finding::warning("name-unusual", &set.file, name_line)
                        .message(format!("Application \"{name}\" of ApplicationSet {}: {problem}", set.name))
                        .fix("shorten or clean it: {{.name | normalize | trunc 63}}"),
                );
            }
            self.result.applications.push(app);
        }
    }

    fn exclude(&mut self, set: &ApplicationSet, reason: String, unpredictable: bool) {
        self.result.excluded.push(Excluded { application_set: set.name.clone(), reason, unpredictable });
    }

    /// One failure stops the whole ApplicationSet: the controller creates and updates nothing of it.
    fn failed(&mut self, set: &ApplicationSet, problem: &Problem) {
        let line = set.line(&problem.pointer);
        if problem.message.contains(functions::UNPREDICTABLE) {
            return self.exclude(set, format!("{}:{line}: {}", set.file, problem.message), true);
        }
        self.result.findings.push(
            Finding::error("render-error", &set.file, line)
                .message(format!("ApplicationSet {}: {}", set.name, problem.message))
                .fix("give the cluster the missing label, or use a default: {{ default \"x\" (index .metadata.labels \"y\") }}"),
        );
        self.exclude(set, format!("{}:{line}: {}", set.file, problem.message), false);
    }

    fn application(&mut self, set: &ApplicationSet, app: &Value) -> PredictedApplication {
        let (name, spec) = (&app["metadata"]["name"], &app["spec"]);
        let source = spec.get("source").or_else(|| spec.get("sources")).unwrap_or(&Value::Null);
        let first = if source.is_array() { &source[0] } else { source };
        let destination = &spec["destination"];
        let metadata = &spec["syncPolicy"]["managedNamespaceMetadata"];
        let options = spec["syncPolicy"]["syncOptions"].as_array().map_or(&[][..], Vec::as_slice);
        let mut text = |value: &Value| self.text(value.as_str().unwrap_or_default());
        PredictedApplication {
            name: text(name),
            namespace: text(&destination["namespace"]),
            project: text(&spec["project"]),
            path: text(&first["path"]),
            repo_url: text(&first["repoURL"]),
            revision: text(&first["targetRevision"]),
            server: text(&destination["server"]),
            cluster: text(&destination["name"]),
            plugin: first.get("plugin").map(|plugin| text(&plugin["name"])),
            sync_options: options.iter().map(&mut text).collect(),
            namespace_metadata: metadata.is_object().then(|| Json::new(metadata)),
            source: Json::new(source),
            application_set: self.text(&set.name),
        }
    }

    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let text: Arc<str> = text.into();
        self.texts.insert(text.clone());
        text
    }
}

/// `over` with what it lacks or leaves empty taken from `base`: a generator's own template wins.
fn filled(over: &Value, base: &Value) -> Value {
    let (Value::Object(over_fields), Value::Object(base_fields)) = (over, base) else { return over.clone() };
    let mut result = over_fields.clone();
    for (key, base) in base_fields {
        let value = match result.get(key) {
            Some(value) if !is_empty(value) => filled(value, base),
            _ => base.clone(),
        };
        result.insert(key.clone(), value);
    }
    Value::Object(result)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// The Application after `templatePatch`. It may change everything but the project.
fn patched(mut app: Value, set: &ApplicationSet, engine: &Engine, parameters: &Parameters) -> Result<Value, Problem> {
    let Some(template) = &set.spec.template_patch else { return Ok(app) };
    let problem = |message: String| Problem::new("/spec/templatePatch", message);
    let text = engine.render(template, parameters).map_err(|e| problem(format!("cannot render templatePatch: {e}")))?;
    let patch = yaml::data("templatePatch", text.as_bytes())
        .map_err(|e| problem(format!("{e}: {}", e.detail_text().unwrap_or_default())))?;
    let project = app.pointer("/spec/project").cloned();
    template_patch::apply(&mut app, patch).map_err(problem)?;
    if let (Some(project), Some(Value::Object(spec))) = (project, app.get_mut("spec")) {
        spec.insert("project".into(), project);
    }
    Ok(app)
}

/// Two ApplicationSets that make the same name: neither can update what the other owns.
fn clashes(applications: &[PredictedApplication], repository: &Repository, findings: &mut Vec<Finding>) {
    let files: BTreeMap<&str, &ApplicationSet> =
        repository.application_sets.iter().map(|set| (set.name.as_str(), set)).collect();
    for pair in applications.windows(2).filter(|pair| pair[0].name == pair[1].name) {
        let Some(set) = files.get(&*pair[1].application_set) else { continue };
        findings.push(
            Finding::error("name-clash", &set.file, set.line("/spec/template/metadata/name"))
                .message(format!(
                    "Application \"{}\" is made by ApplicationSet {} and by {}; Argo CD updates neither",
                    pair[0].name, pair[0].application_set, pair[1].application_set
                ))
                .fix("give one of them another prefix"),
        );
    }
}

#[cfg(test)]
#[path = "predict_tests.rs"]
mod tests;
