//! The picture as SVG. What is drawn is a tree, so its layout needs no more than a row for each leaf
//! and a column for each depth; a parent stands in the middle of its children.

use std::fmt::Write;

use super::dot::colours;
use super::model::{Node, numbered};

/// Of the letters, which have one width; in pixels, as is all here.
const LETTER: usize = 8;
const LINE: usize = 17;
const BOX: usize = 44;
const GAP: usize = 14;
const BETWEEN: usize = 40;
const MARGIN: usize = 20;

struct Placed<'a> {
    node: &'a Node,
    parent: Option<usize>,
    depth: usize,
    /// The middle of the box.
    y: usize,
}

pub fn draw(root: &Node) -> String {
    let placed = place(root);
    let deepest = placed.iter().map(|one| one.depth).max().unwrap_or(0);
    let widths: Vec<usize> = (0..=deepest)
        .map(|depth| {
            let lines = placed.iter().filter(|one| one.depth == depth).flat_map(|one| one.node.lines());
            lines.map(|line| line.chars().count()).max().unwrap_or(0) * LETTER + 2 * GAP
        })
        .collect();
    let left = |depth: usize| MARGIN + widths[..depth].iter().map(|width| width + BETWEEN).sum::<usize>();
    let width = left(deepest) + widths[deepest] + MARGIN;
    let height = placed.iter().map(|one| one.y).max().unwrap_or(0) + BOX / 2 + MARGIN;

    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"13\">\n\
         <title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        escaped(&root.lines().join(": "))
    );
    // Writing to a text cannot fail.
    for one in &placed {
        let Some(parent) = one.parent.map(|parent| &placed[parent]) else { continue };
        let (from, to) = (left(parent.depth) + widths[parent.depth], left(one.depth));
        let middle = to - BETWEEN / 2;
        let _ = writeln!(
            out,
            "<path d=\"M{from} {} H{middle} V{} H{to}\" fill=\"none\" stroke=\"#9aa0a6\"/>",
            parent.y, one.y
        );
    }
    for one in &placed {
        let (fill, line) = colours(one.node.state);
        let (x, y) = (left(one.depth), one.y - BOX / 2);
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{BOX}\" rx=\"6\" fill=\"{fill}\" stroke=\"{line}\"/>",
            widths[one.depth]
        );
        let lines = one.node.lines();
        let top = one.y + 5 - (lines.len() - 1) * LINE / 2;
        for (at, text) in lines.iter().enumerate() {
            let weight = if at == 0 { " font-weight=\"bold\"" } else { "" };
            let _ = writeln!(out, "<text x=\"{}\" y=\"{}\"{weight}>{}</text>", x + GAP, top + at * LINE, escaped(text));
        }
    }
    out.push_str("</svg>");
    out
}

fn place(root: &Node) -> Vec<Placed<'_>> {
    let mut placed: Vec<Placed> = Vec::new();
    let mut rows = 0;
    for (_, parent, node) in numbered(root) {
        let depth = parent.map_or(0, |parent| placed[parent].depth + 1);
        let y = MARGIN + BOX / 2 + rows * (BOX + GAP);
        rows += usize::from(node.children.is_empty());
        placed.push(Placed { node, parent, depth, y });
    }
    // Children come after their parents, so backwards each parent finds its children placed.
    for at in (0..placed.len()).rev() {
        let ys = placed[at + 1..].iter().filter(|one| one.parent == Some(at)).map(|one| one.y);
        if let (Some(first), Some(last)) = (ys.clone().min(), ys.max()) {
            placed[at].y = (first + last) / 2;
        }
    }
    placed
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::sample;
    use super::*;

    #[test]
    fn labels_cannot_break_out() {
        insta::assert_snapshot!(draw(&sample()));
    }

    #[test]
    fn no_two_boxes_of_a_column_overlap() {
        let root = sample();
        let placed = place(&root);
        for (at, one) in placed.iter().enumerate() {
            for other in &placed[at + 1..] {
                assert!(
                    one.depth != other.depth || one.y.abs_diff(other.y) >= BOX,
                    "{} {}",
                    one.node.name,
                    other.node.name
                );
            }
        }
    }
}
