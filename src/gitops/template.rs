//! The two template languages of ApplicationSets: Go's `text/template` with sprig, and the older `{{name}}`.
//!
//! The crate `gotmpl` does the Go templates. Compared by their sources (November 2026): `gtmpl` 0.7.1 and its copy
//! `go-template` 0.0.3 know neither `missingkey` nor `break`; the fork `gtmpl-ng` 1.0.0 has Helm's functions and `break`,
//! but no `missingkey`; `gotemplate` 0.1.0 follows Go to the byte, with `missingkey`, but takes no functions of one's own,
//! and Argo CD's templates live on sprig's. `gotmpl` 0.6.1 has `missingkey`, `else if`, `break`, trim markers, `printf` as Go
//! has them and functions of one's own, forbids unsafe code and the lints that lead to panics, and bounds nesting. What it
//! prints is compared with the real controller (`tests/fixtures/generators`). This module adds what it leaves open, by
//! rewriting the parsed template before it runs:
//! - `index` of an absent key in a map of strings (labels, annotations, values) is "", as in Go, and not `<no value>`;
//! - numbers print as Go prints them (`1e+06`);
//! - blocks must be closed (`blocks`);
//! - a bound on the work: template calls may not recurse, and the calls of one template are counted beforehand, since
//!   calls that double at each level finish in no lifetime; output and arguments are bounded in size.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::rc::Rc;

use gotmpl::parse::{CommandNode, Expr, ListNode, Node, Parser, PipeNode};
use gotmpl::{MissingKey, Template, Value};

use super::{blocks, functions};

/// A template engine for one setting of `goTemplate` and `goTemplateOptions`. Each text is parsed once.
pub struct Engine {
    language: Language,
    parsed: RefCell<HashMap<Box<str>, Rc<Compiled>>>,
}

#[derive(Clone, Copy)]
enum Language {
    Go(MissingKey),
    Simple,
}

/// A parsed text.
pub struct Compiled(Form);

enum Form {
    Literal(Box<str>),
    Go(Box<Template>),
    Simple(Vec<Piece>),
    Broken(String),
}

enum Piece {
    Text(Box<str>),
    /// The parameter's name, and what stays if there is no such parameter.
    Parameter(Box<str>, Box<str>),
}

/// More than any manifest needs.
const MAX_TEMPLATE: usize = 256 << 10;
const MAX_OUTPUT: usize = 1 << 20;
const MAX_CALLS: u64 = 20_000;
const MAX_ITERATIONS: u64 = 10_000;

impl Engine {
    /// `options` as in `goTemplateOptions`. Go refuses unknown options when it renders, and so does this.
    pub fn new(go_template: bool, options: &[String]) -> Result<Self, String> {
        let mut missing = MissingKey::default();
        for option in options {
            missing = match option.strip_prefix("missingkey=").map(str::parse) {
                Some(Ok(missing)) => missing,
                _ => return Err(format!("goTemplateOptions: {option} is not an option; missingkey=error is one")),
            };
        }
        let language = if go_template { Language::Go(missing) } else { Language::Simple };
        Ok(Engine { language, parsed: RefCell::default() })
    }

    /// Whether these are Go templates.
    pub fn is_go(&self) -> bool {
        matches!(self.language, Language::Go(_))
    }

    /// Parses a text, or finds it parsed. A text that does not parse fails when it is rendered.
    pub fn compile(&self, text: &str) -> Rc<Compiled> {
        if let Some(compiled) = self.parsed.borrow().get(text) {
            return compiled.clone();
        }
        let form = match self.language {
            _ if !text.contains("{{") => Form::Literal(text.into()),
            Language::Simple => Form::Simple(pieces(text)),
            Language::Go(missing) => match go(text, missing) {
                Ok(template) => Form::Go(Box::new(template)),
                Err(message) => Form::Broken(message),
            },
        };
        let compiled = Rc::new(Compiled(form));
        self.parsed.borrow_mut().insert(text.into(), compiled.clone());
        compiled
    }

    /// Renders a text with these parameters.
    pub fn render(&self, text: &str, parameters: &Value) -> Result<String, String> {
        self.compile(text).render(parameters)
    }
}

impl Compiled {
    /// The text, if it holds no template.
    pub fn literal(&self) -> Option<&str> {
        match &self.0 {
            Form::Literal(text) => Some(text),
            _ => None,
        }
    }

    pub fn render(&self, parameters: &Value) -> Result<String, String> {
        let mut output = Bounded(String::new());
        match &self.0 {
            Form::Literal(text) => return Ok(text.to_string()),
            Form::Broken(message) => return Err(message.clone()),
            Form::Go(template) => template
                .execute_template_fmt(&mut output, MAIN, parameters)
                .map_err(|error| message(&error.to_string()))?,
            Form::Simple(pieces) => {
                for piece in pieces {
                    let text = match piece {
                        Piece::Text(text) => text,
                        Piece::Parameter(name, kept) => parameters.field(name).and_then(Value::as_str).unwrap_or(kept),
                    };
                    fmt::Write::write_str(&mut output, text).map_err(|_| too_long())?;
                }
            }
        }
        Ok(output.0)
    }
}

/// Go's words, in the form that its documentation uses.
fn message(error: &str) -> String {
    match error.strip_prefix("map has no entry for key: ") {
        Some(key) => format!("there is no value \"{key}\" (missingkey=error)"),
        None if error.contains("formatter error") || error.contains("write") => too_long(),
        None => error.trim_start_matches("execution error: ").to_owned(),
    }
}

fn too_long() -> String {
    format!("the result is longer than {MAX_OUTPUT} bytes")
}

struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_OUTPUT {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// `{{ name }}` by the rules of Argo CD's fasttemplate: what is no parameter stays as it is.
fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((tag, after)) = after.split_once("}}") else { break };
        pieces.push(Piece::Text(before.into()));
        pieces.push(Piece::Parameter(tag.trim().into(), format!("{{{{{tag}}}}}").into()));
        rest = after;
    }
    pieces.push(Piece::Text(rest.into()));
    pieces
}

/// Name under which the template's own text is kept; a `define` of this name is refused.
const MAIN: &str = "\n";

fn go(text: &str, missing: MissingKey) -> Result<Template, String> {
    if text.len() > MAX_TEMPLATE {
        return Err(format!("the template is longer than {MAX_TEMPLATE} bytes"));
    }
    if let Some(problem) = blocks::problem(text) {
        return Err(problem);
    }
    let parsed = Parser::new(text, "{{", "}}").and_then(Parser::parse);
    let (main, defines) = parsed.map_err(|error| error.to_string().trim_start_matches("template: ").to_owned())?;
    let mut trees: BTreeMap<String, ListNode> = BTreeMap::from([(MAIN.to_owned(), main)]);
    for define in defines {
        if trees.insert(define.name.to_string(), define.body).is_some() {
            return Err(format!("template \"{}\" is defined twice", define.name));
        }
    }
    let mut costs = BTreeMap::new();
    cost(MAIN, &trees, &mut costs)?;
    let mut template = Template::new("").missing_key(missing).max_range_iters(MAX_ITERATIONS).funcs(functions::all());
    for (name, mut tree) in trees {
        rewrite_list(&mut tree);
        template = template.add_parse_tree(&name, tree);
    }
    Ok(template)
}

/// Upper bound of the nodes that one call visits, loops counted once; `None` in `costs` marks a call under way.
fn cost(
    name: &str,
    trees: &BTreeMap<String, ListNode>,
    costs: &mut BTreeMap<String, Option<u64>>,
) -> Result<u64, String> {
    match costs.get(name) {
        Some(Some(cost)) => return Ok(*cost),
        Some(None) => return Err(format!("template \"{name}\" calls itself; that is not supported")),
        None => {}
    }
    costs.insert(name.into(), None);
    let total = match trees.get(name) {
        Some(tree) => list_cost(tree, trees, costs)?,
        // An undefined template is an error of the run.
        None => 1,
    };
    if total > MAX_CALLS {
        return Err(format!("the template does more than {MAX_CALLS} steps"));
    }
    costs.insert(name.into(), Some(total));
    Ok(total)
}

fn list_cost(
    list: &ListNode,
    trees: &BTreeMap<String, ListNode>,
    costs: &mut BTreeMap<String, Option<u64>>,
) -> Result<u64, String> {
    let mut total = 1u64;
    for node in &list.nodes {
        let more = match node {
            Node::If(branch) | Node::Range(branch) | Node::With(branch) => {
                let otherwise = branch.else_body.as_ref().map_or(Ok(0), |body| list_cost(body, trees, costs))?;
                list_cost(&branch.body, trees, costs)?.saturating_add(otherwise)
            }
            Node::Template(call) => cost(call.name.as_str(), trees, costs)?,
            Node::List(list) => list_cost(list, trees, costs)?,
            Node::Text(_) | Node::Action(_) | Node::Define(_) | Node::Break(_) | Node::Continue(_) => 1,
        };
        total = total.saturating_add(more);
    }
    Ok(total)
}

fn rewrite_list(list: &mut ListNode) {
    for node in &mut list.nodes {
        match node {
            Node::Action(action) => {
                rewrite_pipe(&mut action.pipe);
                if action.pipe.decl.is_empty() {
                    let show = Expr::Identifier(action.pos, functions::SHOW.into());
                    action.pipe.commands.push(CommandNode { pos: action.pos, args: vec![show] });
                }
            }
            Node::If(branch) | Node::Range(branch) | Node::With(branch) => {
                rewrite_pipe(&mut branch.pipe);
                rewrite_list(&mut branch.body);
                branch.else_body.iter_mut().for_each(rewrite_list);
            }
            Node::Template(call) => call.pipe.iter_mut().for_each(rewrite_pipe),
            Node::List(list) => rewrite_list(list),
            Node::Text(_) | Node::Define(_) | Node::Break(_) | Node::Continue(_) => {}
        }
    }
}

/// Hands `$` to `index` as a hidden first argument: only the whole data tells which maps are maps of strings.
fn rewrite_pipe(pipe: &mut PipeNode) {
    for command in &mut pipe.commands {
        command.args.iter_mut().for_each(rewrite_expression);
        let function = match command.args.first() {
            Some(Expr::Chain(_, inner, _)) => inner,
            Some(expression) => expression,
            None => continue,
        };
        if let Expr::Identifier(pos, name) = function
            && name == "index"
        {
            let root = Expr::Variable(*pos, "$".into(), Vec::new());
            command.args.insert(1, root);
        }
    }
}

fn rewrite_expression(expression: &mut Expr) {
    match expression {
        Expr::Pipe(_, pipe) => rewrite_pipe(pipe),
        Expr::Chain(_, inner, _) => rewrite_expression(inner),
        _ => {}
    }
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
