//! ApplicationSets: the object as it is written, and the part of it that decides which Applications it makes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::selector::Selector;
use super::yaml::{Document, Lines, token};
use crate::error::{Error, Result};

/// An ApplicationSet of a repository, after the patches of its kustomizations.
#[derive(Debug, Clone)]
pub struct ApplicationSet {
    pub name: String,
    /// The file it is written in.
    pub file: String,
    /// The whole object.
    pub value: Value,
    pub spec: Spec,
    lines: Arc<Lines>,
}

/// What of `spec` decides about the Applications.
#[derive(Debug, Clone)]
pub struct Spec {
    pub go_template: bool,
    /// `goTemplateOptions`, such as `missingkey=error`.
    pub options: Vec<String>,
    pub generators: Vec<Generator>,
    pub template: Value,
    pub template_patch: Option<String>,
}

/// One generator, with what is common to all kinds.
#[derive(Debug, Clone)]
pub struct Generator {
    pub kind: Kind,
    /// Filters the parameters that the generator gives.
    pub selector: Option<Selector>,
    /// Fields that the Application template takes over; null if there are none.
    pub template: Value,
    /// As written: a matrix fills the second generator's fields with the parameters of the first.
    pub value: Value,
    /// Whether a template is anywhere in it.
    pub templated: bool,
    /// JSON pointer in the ApplicationSet.
    pub pointer: String,
}

#[derive(Debug, Clone)]
pub enum Kind {
    Git(Git),
    Clusters(Clusters),
    List {
        elements: Vec<Value>,
        yaml: Option<String>,
    },
    Matrix(Vec<Generator>),
    Merge {
        generators: Vec<Generator>,
        keys: Vec<String>,
    },
    /// Its result depends on something that is not in the repository.
    Unpredictable {
        kind: String,
        reason: &'static str,
    },
}

#[derive(Debug, Clone)]
pub struct Git {
    pub repo_url: String,
    pub revision: String,
    pub directories: Vec<Pattern>,
    pub files: Vec<Pattern>,
    pub prefix: Option<String>,
    pub values: BTreeMap<String, String>,
}

#[derive(Debug, Clone)]
pub struct Pattern {
    pub path: String,
    pub exclude: bool,
}

#[derive(Debug, Clone)]
pub struct Clusters {
    pub selector: Selector,
    pub values: BTreeMap<String, String>,
    pub flat_list: bool,
}

/// What is wrong, and at which JSON pointer of the object.
#[derive(Debug, Clone)]
pub struct Problem {
    pub pointer: String,
    pub message: String,
}

impl Problem {
    pub fn new(pointer: &str, message: impl Into<String>) -> Self {
        Problem { pointer: pointer.into(), message: message.into() }
    }
}

/// Argo CD accepts generators within generators within generators, and no deeper.
const MAX_NESTING: usize = 3;

impl ApplicationSet {
    /// Reads an object of kind ApplicationSet. Errors name file and line.
    pub fn read(file: &str, document: Document) -> Result<Self> {
        Self::new(file, document.value, Arc::new(document.lines))
    }

    fn new(file: &str, value: Value, lines: Arc<Lines>) -> Result<Self> {
        let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let read = match name.is_empty() {
            true => Err(Problem::new("/metadata", "the ApplicationSet has no name")),
            false => Spec::read(&value),
        };
        let spec = read.map_err(|problem| {
            let line = lines.at(&problem.pointer);
            let what = if name.is_empty() { String::new() } else { format!(" ApplicationSet {name}:") };
            Error::failed(format!("{file}:{line}:{what} {}", problem.message))
        })?;
        Ok(ApplicationSet { name, file: file.into(), value, spec, lines })
    }

    /// The same ApplicationSet with another content: after a patch, for instance.
    pub fn with_value(&self, value: Value) -> Result<Self> {
        Self::new(&self.file, value, self.lines.clone())
    }

    /// The line of what is at this JSON pointer of the object.
    pub fn line(&self, pointer: &str) -> u32 {
        self.lines.at(pointer)
    }
}

impl Spec {
    fn read(object: &Value) -> Result<Self, Problem> {
        let spec = At { value: object, pointer: String::new() }.field("spec");
        if !spec.value.is_object() {
            return Err(spec.problem("it has no spec"));
        }
        Ok(Spec {
            go_template: spec.field("goTemplate").flag()?,
            options: spec.field("goTemplateOptions").texts()?,
            generators: generators(&spec.field("generators"), 1)?,
            template: match &spec.field("template") {
                template if template.value.is_object() => template.value.clone(),
                template => return Err(template.problem("it has no template")),
            },
            template_patch: spec.field("templatePatch").text()?,
        })
    }
}

impl Generator {
    /// Reads a generator again after its fields have been filled in. `nested` as it was.
    pub fn refilled(&self, value: &Value) -> Result<Generator, Problem> {
        generator(&At { value, pointer: self.pointer.clone() }, MAX_NESTING - 1)
    }
}

fn generators(list: &At, depth: usize) -> Result<Vec<Generator>, Problem> {
    list.items()?.iter().map(|item| generator(item, depth)).collect()
}

fn generator(at: &At, depth: usize) -> Result<Generator, Problem> {
    if depth > MAX_NESTING {
        return Err(at.problem("generators nest too deep: Argo CD accepts three levels"));
    }
    let Value::Object(fields) = at.value else { return Err(at.problem("a generator is not a map")) };
    let mut kinds = fields.iter().filter(|(key, value)| *key != "selector" && !value.is_null()).map(|(key, _)| key);
    let (Some(kind), None) = (kinds.next(), kinds.next()) else {
        return Err(at.problem("a generator must have exactly one kind: git, clusters, list, matrix, merge, …"));
    };
    let body = at.field(kind);
    let kind = match kind.as_str() {
        "git" => Kind::Git(Git {
            repo_url: body.field("repoURL").text()?.unwrap_or_default(),
            revision: body.field("revision").text()?.unwrap_or_default(),
            directories: patterns(&body.field("directories"))?,
            files: patterns(&body.field("files"))?,
            prefix: body.field("pathParamPrefix").text()?.filter(|prefix| !prefix.is_empty()),
            values: body.field("values").text_map()?,
        }),
        "clusters" => Kind::Clusters(Clusters {
            selector: body.field("selector").selector()?,
            values: body.field("values").text_map()?,
            flat_list: body.field("flatList").flag()?,
        }),
        "list" => Kind::List {
            elements: body.field("elements").items()?.iter().map(|item| item.value.clone()).collect(),
            yaml: body.field("elementsYaml").text()?.filter(|yaml| !yaml.is_empty()),
        },
        "matrix" => match generators(&body.field("generators"), depth + 1)? {
            children if children.len() == 2 => Kind::Matrix(children),
            children => {
                return Err(body.problem(&format!("a matrix takes two generators, this one has {}", children.len())));
            }
        },
        "merge" => {
            let children = generators(&body.field("generators"), depth + 1)?;
            let keys = body.field("mergeKeys").texts()?;
            if children.len() < 2 || keys.is_empty() {
                return Err(body.problem("a merge takes two generators or more, and at least one of mergeKeys"));
            }
            Kind::Merge { generators: children, keys }
        }
        other => Kind::Unpredictable {
            kind: other.into(),
            reason: match other {
                "pullRequest" => "it depends on the pull requests that are open",
                "scmProvider" => "it depends on the repositories that a forge lists",
                "plugin" => "it depends on the answer of a plugin's server",
                "clusterDecisionResource" => "it depends on the status of a resource in the Argo CD cluster",
                "oci" => "it depends on the content of an OCI artefact",
                _ => return Err(at.problem(&format!("{other} is not a kind of generator"))),
            },
        },
    };
    let selector = at.field("selector");
    Ok(Generator {
        kind,
        selector: if selector.value.is_null() { None } else { Some(selector.selector()?) },
        template: body.field("template").value.clone(),
        templated: has_template(at.value),
        value: at.value.clone(),
        pointer: at.pointer.clone(),
    })
}

fn has_template(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{{"),
        Value::Array(items) => items.iter().any(has_template),
        Value::Object(fields) => fields.iter().any(|(key, field)| key.contains("{{") || has_template(field)),
        _ => false,
    }
}

fn patterns(list: &At) -> Result<Vec<Pattern>, Problem> {
    let read = |item: &At| {
        let path = item.field("path").text()?.ok_or_else(|| item.problem("it has no path"))?;
        Ok(Pattern { path, exclude: item.field("exclude").flag()? })
    };
    list.items()?.iter().map(read).collect()
}

/// A value and where it is.
struct At<'a> {
    value: &'a Value,
    pointer: String,
}

impl<'a> At<'a> {
    fn field(&self, key: &str) -> At<'a> {
        At { value: self.value.get(key).unwrap_or(&Value::Null), pointer: format!("{}/{}", self.pointer, token(key)) }
    }

    fn problem(&self, message: &str) -> Problem {
        Problem::new(&self.pointer, message)
    }

    fn items(&self) -> Result<Vec<At<'a>>, Problem> {
        match self.value {
            Value::Null => Ok(Vec::new()),
            Value::Array(items) => Ok(items
                .iter()
                .enumerate()
                .map(|(index, value)| At { value, pointer: format!("{}/{index}", self.pointer) })
                .collect()),
            _ => Err(self.problem("this is not a list")),
        }
    }

    fn text(&self) -> Result<Option<String>, Problem> {
        match self.value {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            other => Err(self.problem(&format!("{other} is not text; quote it"))),
        }
    }

    fn flag(&self) -> Result<bool, Problem> {
        match self.value {
            Value::Null => Ok(false),
            Value::Bool(flag) => Ok(*flag),
            other => Err(self.problem(&format!("{other} is neither true nor false"))),
        }
    }

    fn texts(&self) -> Result<Vec<String>, Problem> {
        self.items()?.iter().map(|item| Ok(item.text()?.unwrap_or_default())).collect()
    }

    fn text_map(&self) -> Result<BTreeMap<String, String>, Problem> {
        match self.value {
            Value::Null => Ok(BTreeMap::new()),
            Value::Object(fields) => {
                fields.keys().map(|key| Ok((key.clone(), self.field(key).text()?.unwrap_or_default()))).collect()
            }
            _ => Err(self.problem("this is not a map")),
        }
    }

    fn selector(&self) -> Result<Selector, Problem> {
        Selector::parse(self.value).map_err(|message| self.problem(&message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gitops::yaml;

    fn read(text: &str) -> Result<ApplicationSet> {
        ApplicationSet::read("a.yaml", yaml::document("a.yaml", text.as_bytes()).unwrap())
    }

    #[test]
    fn mistakes_name_file_line_and_set() {
        let with = |generators: &str| {
            format!("kind: ApplicationSet\nmetadata: {{name: x}}\nspec:\n  template: {{}}\n  generators:\n{generators}")
        };
        for (text, said) in [
            ("kind: ApplicationSet\nspec: {}\n".to_owned(), "a.yaml:1: the ApplicationSet has no name"),
            ("metadata: {name: x}\n".to_owned(), "a.yaml:1: ApplicationSet x: it has no spec"),
            (with("  - git: {}\n    list: {}\n"), "a.yaml:6: ApplicationSet x: a generator must have exactly one kind"),
            (with("  - gti: {}\n"), "a.yaml:6: ApplicationSet x: gti is not a kind of generator"),
            (with("  - clusters:\n      selector:\n        matchLabels:\n          a: 1\n"), "a.yaml:8:"),
            (
                with("  - matrix:\n      generators:\n      - list: {}\n"),
                "a matrix takes two generators, this one has 1",
            ),
            (
                with("  - git:\n      directories:\n      - exclude: true\n"),
                "a.yaml:8: ApplicationSet x: it has no path",
            ),
        ] {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains(said), "{error}\n{text}");
        }
    }

    #[test]
    fn what_is_outside_the_repository_is_unpredictable() {
        let set = read("metadata: {name: x}\nspec: {template: {}, generators: [pullRequest: {github: {}}]}\n").unwrap();
        let Kind::Unpredictable { kind, reason } = &set.spec.generators[0].kind else { panic!("{set:?}") };
        assert_eq!((kind.as_str(), *reason), ("pullRequest", "it depends on the pull requests that are open"));
    }
}
