//! The functions of ApplicationSet templates: Go's own, Argo CD's, and sprig's that have one result for one input.

mod argocd;
mod collections;
mod numbers;
mod paths;
mod strings;

use std::sync::{Arc, OnceLock};

use gotmpl::{FuncMap, TemplateError, Value, ValueFunc};

use super::params;

/// What is said of a function that Argo CD knows and whose result k8tre does not: the result is open, and no mistake.
pub const UNPREDICTABLE: &str = "cannot be predicted";

/// Put after everything that a template prints: a value as Go prints it.
pub const SHOW: &str = "\u{1}show";

/// Work that one call may do: nodes of its arguments, and bytes of their texts.
const MAX_NODES: usize = 20_000;
const MAX_BYTES: usize = 1 << 20;
const MAX_DEPTH: usize = 64;

type Outcome = gotmpl::Result<Value>;

/// Every function, with bounded arguments and a bounded result.
pub fn all() -> FuncMap {
    static ALL: OnceLock<FuncMap> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut functions = Registry::default();
        builtins(&mut functions);
        strings::register(&mut functions);
        numbers::register(&mut functions);
        paths::register(&mut functions);
        collections::register(&mut functions);
        argocd::register(&mut functions);
        functions.must();
        functions.0
    })
    .clone()
}

/// The name of every function.
#[cfg(test)]
pub fn names() -> Vec<String> {
    all().into_keys().filter(|name| name != SHOW).collect()
}

const MUST: &[&str] = &[
    "append",
    "chunk",
    "compact",
    "deepCopy",
    "first",
    "fromJson",
    "has",
    "initial",
    "last",
    "merge",
    "mergeOverwrite",
    "prepend",
    "push",
    "regexFind",
    "regexFindAll",
    "regexReplaceAllLiteral",
    "regexSplit",
    "rest",
    "reverse",
    "slice",
    "toPrettyJson",
    "toRawJson",
    "uniq",
    "without",
];

#[derive(Default)]
struct Registry(FuncMap);

impl Registry {
    fn add(&mut self, name: &str, function: impl Fn(&[Value]) -> Outcome + Send + Sync + 'static) {
        let called = name.to_owned();
        let bounded: ValueFunc = Arc::new(move |arguments: &[Value]| {
            let mut budget = Budget { nodes: MAX_NODES, bytes: MAX_BYTES };
            arguments.iter().try_for_each(|argument| budget.take(argument, 0))?;
            function(arguments).map_err(|error| match error {
                TemplateError::Exec(message) => fail(format!("{called}: {message}")),
                other => other,
            })
        });
        self.0.insert(name.to_owned(), bounded);
    }

    /// sprig's second name for a function, under which it gives back an error instead of panicking: the same here.
    fn must(&mut self) {
        for name in MUST {
            if let Some(function) = self.0.get(*name).cloned() {
                let (first, rest) = name.split_at(1);
                self.0.insert(format!("must{}{rest}", first.to_uppercase()), function);
            }
        }
    }

    /// A function of text alone.
    fn text<const N: usize>(&mut self, name: &str, function: impl Fn([&str; N]) -> Outcome + Send + Sync + 'static) {
        self.add(name, move |arguments| {
            let mut texts = [""; N];
            if arguments.len() != N {
                return Err(fail(format!("takes {N} arguments, not {}", arguments.len())));
            }
            for (slot, argument) in texts.iter_mut().zip(arguments) {
                *slot = str(argument)?;
            }
            function(texts)
        });
    }
}

struct Budget {
    nodes: usize,
    bytes: usize,
}

impl Budget {
    /// Stops early: shared lists can be far larger than the memory they take.
    fn take(&mut self, value: &Value, depth: usize) -> gotmpl::Result<()> {
        let too_large = || fail("a value is too large");
        self.nodes = self.nodes.checked_sub(1).ok_or_else(too_large)?;
        if depth > MAX_DEPTH {
            return Err(fail("a value nests too deep"));
        }
        match value {
            Value::String(text) => self.bytes = self.bytes.checked_sub(text.len()).ok_or_else(too_large)?,
            Value::List(items) => items.iter().try_for_each(|item| self.take(item, depth + 1))?,
            Value::Map(fields) => fields.values().try_for_each(|field| self.take(field, depth + 1))?,
            _ => {}
        }
        Ok(())
    }
}

/// Go's own functions that need a bound or a correction. The others stay as the engine has them: they make nothing.
fn builtins(functions: &mut Registry) {
    functions.add(SHOW, |arguments| match arguments {
        [value @ (Value::Float(_) | Value::List(_) | Value::Map(_))] => Ok(params::text(value).into()),
        [value] => Ok(value.clone()),
        _ => Ok(Value::Nil),
    });
    functions.add("index", |arguments| {
        let (Some(root), Some(first)) = (arguments.first(), arguments.get(1)) else {
            return Err(fail("takes a list or map, and where to look in it"));
        };
        let mut found = first.clone();
        for key in &arguments[2..] {
            let absent = matches!((&found, key), (Value::Map(map), Value::String(key)) if !map.contains_key(&**key));
            found = match &found {
                Value::Map(map) if absent && params::is_string_map(root, map) => "".into(),
                found => found.index(key)?,
            };
        }
        Ok(found)
    });
    functions.add("print", |arguments| {
        let mut printed = String::new();
        for (index, argument) in arguments.iter().enumerate() {
            // Go puts a space between two arguments when neither is text.
            let texts = |i: usize| matches!(arguments.get(i), Some(Value::String(_)));
            if index > 0 && !texts(index - 1) && !texts(index) {
                printed.push(' ');
            }
            printed.push_str(&params::text(argument));
        }
        Ok(printed.into())
    });
    functions.add("println", |arguments| {
        Ok(format!("{}\n", arguments.iter().map(params::text).collect::<Vec<_>>().join(" ")).into())
    });
    for name in ["printf", "html", "js", "urlquery"] {
        // The engine's own functions can be reached only by a template that calls them.
        let calls: Vec<_> = (1..=MAX_ARGUMENTS).map(|count| own_call(name, count)).collect();
        functions.add(name, move |arguments| {
            let Some(Some(call)) = arguments.len().checked_sub(1).and_then(|index| calls.get(index)) else {
                return Err(fail(format!("takes 1 to {MAX_ARGUMENTS} arguments, not {}", arguments.len())));
            };
            let arguments = if name == "printf" { go_printed(arguments) } else { arguments.to_vec() };
            let fields = arguments.into_iter().enumerate().map(|(index, value)| (argument(index).into(), value));
            Ok(call.execute_to_string(&Value::from(fields.collect::<params::Map>()))?.into())
        });
    }
}

/// The arguments of `printf`, with those that the engine prints otherwise than Go already printed: numbers, lists and
/// maps for `%v`, and fractions for `%d`, which Go refuses in its own words.
fn go_printed(arguments: &[Value]) -> Vec<Value> {
    let mut arguments = arguments.to_vec();
    let format = arguments.first().and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut rewritten = String::new();
    let mut next = 1;
    let mut rest = format.as_str();
    while let Some((before, after)) = rest.split_once('%') {
        rewritten.push_str(before);
        let length = after
            .find(|c: char| c == '%' || c.is_alphabetic())
            .map_or(after.len(), |at| at + after[at..].chars().next().map_or(0, char::len_utf8));
        let (directive, after) = after.split_at(length);
        // A width from an argument or an argument by its number moves the count; what follows stays as it is.
        if directive.contains(['*', '[']) {
            rewritten.push('%');
            rest = &rest[before.len() + 1..];
            break;
        }
        rest = after;
        match (directive, arguments.get_mut(next)) {
            ("v", Some(value @ (Value::Float(_) | Value::List(_) | Value::Map(_)))) => {
                *value = params::text(value).into();
                rewritten.push_str("%v");
            }
            ("s", Some(value @ Value::List(_))) if texts(value) => {
                *value = params::text(value).into();
                rewritten.push_str("%s");
            }
            (directive, Some(value @ Value::Float(_))) if directive.ends_with('d') => {
                *value = format!("%!d(float64={})", params::text(value)).into();
                rewritten.push_str("%s");
            }
            _ => rewritten.extend(["%", directive]),
        }
        next += usize::from(directive != "%");
    }
    rewritten.push_str(rest);
    if let Some(format @ Value::String(_)) = arguments.first_mut() {
        *format = rewritten.into();
    }
    arguments
}

fn texts(value: &Value) -> bool {
    matches!(value, Value::List(items) if items.iter().all(|item| matches!(item, Value::String(_))))
}

const MAX_ARGUMENTS: usize = 12;

fn argument(index: usize) -> String {
    format!("a{index}")
}

fn own_call(function: &str, count: usize) -> Option<gotmpl::Template> {
    let arguments: String = (0..count).map(|index| format!(" .{}", argument(index))).collect();
    gotmpl::Template::new("").parse(&format!("{{{{{function}{arguments}}}}}")).ok()
}

fn fail(message: impl Into<String>) -> TemplateError {
    TemplateError::Exec(message.into())
}

fn str(value: &Value) -> gotmpl::Result<&str> {
    value.as_str().ok_or_else(|| fail(format!("wants text, not {}", value.type_name())))
}

fn int(value: &Value) -> gotmpl::Result<i64> {
    match value {
        Value::String(text) => Ok(text.parse().unwrap_or(0)),
        Value::Bool(flag) => Ok(i64::from(*flag)),
        Value::Nil => Ok(0),
        other => other.as_int().ok_or_else(|| fail(format!("wants a number, not {}", value.type_name()))),
    }
}

/// Where sprig takes an `int`, Go takes no text and no fraction for one.
fn whole(value: &Value) -> gotmpl::Result<i64> {
    match value {
        Value::Int(_) | Value::Uint(_) => int(value),
        other => Err(fail(format!("wants a whole number, not {}", other.type_name()))),
    }
}

fn list(value: &Value) -> gotmpl::Result<&[Value]> {
    match value {
        Value::List(items) => Ok(items),
        other => Err(fail(format!("wants a list, not {}", other.type_name()))),
    }
}

fn map(value: &Value) -> gotmpl::Result<&Arc<params::Map>> {
    match value {
        Value::Map(fields) => Ok(fields),
        other => Err(fail(format!("wants a map, not {}", other.type_name()))),
    }
}

fn arity<const N: usize>(arguments: &[Value]) -> gotmpl::Result<&[Value; N]> {
    arguments.try_into().map_err(|_| fail(format!("takes {N} arguments, not {}", arguments.len())))
}
