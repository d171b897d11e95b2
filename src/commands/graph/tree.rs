//! The picture for a terminal.

use owo_colors::{OwoColorize, Style};

use super::model::{Node, State};
use crate::text::one_line;

pub fn draw(root: &Node, width: usize, unicode: bool) -> String {
    let mut lines = Vec::new();
    add(root, "", "", width, unicode, &mut lines);
    lines.join("\n")
}

fn add(node: &Node, first: &str, rest: &str, width: usize, unicode: bool, lines: &mut Vec<String>) {
    let (mark, style) = match (node.state, unicode) {
        (State::Good, true) => ("✓", Style::new().green()),
        (State::Waiting, true) => ("…", Style::new().yellow()),
        (State::Bad, true) => ("✗", Style::new().red()),
        (State::Good, false) => ("+", Style::new().green()),
        (State::Waiting, false) => (".", Style::new().yellow()),
        (State::Bad, false) => ("x", Style::new().red()),
        (State::Unknown, _) => ("?", Style::new().dimmed()),
    };
    let dim = Style::new().dimmed();
    let room = width.saturating_sub(first.chars().count() + 2).max(20);
    let text = match node.kind {
        "cause" => {
            let code = if node.note.is_empty() { String::new() } else { format!("  [{}]", node.note) };
            let text = root_first(&node.name, room.saturating_sub(code.len()).max(20));
            format!("{}{}", text.style(style), code.style(dim))
        }
        kind => {
            let head = format!("{kind} {}", node.name);
            let note = one_line(&node.note, room.saturating_sub(head.chars().count() + 2));
            let kind = kind.style(dim);
            match note.is_empty() {
                true => format!("{kind} {}", node.name),
                false => format!("{kind} {}  {}", node.name, note.style(style)),
            }
        }
    };
    lines.push(format!("{}{} {text}", first.style(dim), mark.style(style)));
    let (branch, last, line) = if unicode { ("├─ ", "└─ ", "│  ") } else { ("|- ", "`- ", "|  ") };
    for (at, child) in node.children.iter().enumerate() {
        let (mark, under) = if at + 1 == node.children.len() { (last, "   ") } else { (branch, line) };
        add(child, &format!("{rest}{mark}"), &format!("{rest}{under}"), width, unicode, lines);
    }
}

/// A chain of causes that is too long keeps its end, where the root is.
fn root_first(chain: &str, room: usize) -> String {
    let mut rest = chain;
    let mut head = "";
    while head.chars().count() + rest.chars().count() > room {
        let Some((_, after)) = rest.split_once(" <- ") else { break };
        (head, rest) = ("… <- ", after);
    }
    one_line(&format!("{head}{rest}"), room)
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::sample;
    use super::*;

    #[test]
    fn the_tree_fits_a_terminal_of_80_columns() {
        let text = anstream::adapter::strip_str(&draw(&sample(), 80, true)).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn the_tree_has_colours_and_does_without_unicode() {
        insta::assert_snapshot!(draw(&sample(), 80, false));
    }
}
