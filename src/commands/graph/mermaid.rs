//! The picture as Mermaid, which GitHub and GitLab draw in Markdown.

use std::fmt::Write;

use super::model::{Node, State, numbered};

pub fn draw(root: &Node) -> String {
    let mut out = String::from("flowchart LR\n");
    for (number, parent, node) in numbered(root) {
        let text: Vec<String> = node.lines().iter().map(|line| escaped(line)).collect();
        let class = match node.state {
            State::Good => "good",
            State::Waiting => "waiting",
            State::Bad => "bad",
            State::Unknown => "unknown",
        };
        // Writing to a text cannot fail.
        let _ = writeln!(out, "  n{number}[\"{}\"]:::{class}", text.join("<br/>"));
        if let Some(parent) = parent {
            let _ = writeln!(out, "  n{parent} --> n{number}");
        }
    }
    out.push_str("  classDef good fill:#e6f4ea,stroke:#188038,color:#000\n");
    out.push_str("  classDef waiting fill:#fef7e0,stroke:#b06000,color:#000\n");
    out.push_str("  classDef bad fill:#fce8e6,stroke:#c5221f,color:#000\n");
    out.push_str("  classDef unknown fill:#f1f3f4,stroke:#5f6368,color:#000");
    out
}

/// Mermaid reads markup in labels; its entities have no ampersand.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '#' | '"' | '&' | '<' | '>' | '`' | '\\' | '[' | ']' | '{' | '}' => {
                let _ = write!(out, "#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_cannot_break_out() {
        insta::assert_snapshot!(draw(&super::super::model::tests::sample()));
    }
}
