//! The picture for Graphviz.

use std::fmt::Write;

use super::model::{Node, State, numbered};

pub fn draw(root: &Node) -> String {
    let mut out = String::from(
        "digraph environment {\n  rankdir=LR;\n  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n",
    );
    for (number, parent, node) in numbered(root) {
        let text: Vec<String> =
            node.lines().iter().map(|line| line.replace('\\', r"\\").replace('"', "\\\"")).collect();
        let (fill, line) = colours(node.state);
        // Writing to a text cannot fail.
        let _ = writeln!(out, "  n{number} [label=\"{}\", fillcolor=\"{fill}\", color=\"{line}\"];", text.join(r"\n"));
        if let Some(parent) = parent {
            let _ = writeln!(out, "  n{parent} -> n{number};");
        }
    }
    out.push('}');
    out
}

/// Fill and outline of a box.
pub fn colours(state: State) -> (&'static str, &'static str) {
    match state {
        State::Good => ("#e6f4ea", "#188038"),
        State::Waiting => ("#fef7e0", "#b06000"),
        State::Bad => ("#fce8e6", "#c5221f"),
        State::Unknown => ("#f1f3f4", "#5f6368"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_cannot_break_out() {
        insta::assert_snapshot!(draw(&super::super::model::tests::sample()));
    }
}
