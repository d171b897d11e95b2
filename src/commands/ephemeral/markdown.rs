//! Text from anywhere as Markdown that shows it as it is: no link, no mention, no markup, no second line.

use crate::redact::Redactor;
use crate::text::one_line;

/// A cell or a sentence longer than this is read in the log.
const LONGEST: usize = 300;

/// Every ASCII sign that could mean something becomes a character reference, which Markdown takes for nothing but itself.
pub fn text(text: &str) -> String {
    escaped(&one_line(&Redactor::default().text(text), LONGEST))
}

pub fn code(words: &str) -> String {
    format!("<code>{}</code>", text(words))
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '-' | ',' => out.push(c),
            c if c.is_ascii_punctuation() => out.push_str(&format!("&#{};", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let header: Vec<String> = header.iter().map(|&cell| cell.to_owned()).collect();
    let mut out = line(&header);
    out.push_str(&format!("|{}\n", "---|".repeat(header.len())));
    out.extend(rows.into_iter().map(|row| line(&row)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_cluster_says_is_taken_for_markup() {
        let said = "a|b <img src=x> [x](https://e.example) @team `c` **d**\n# e \u{1b}[31mred";
        let shown = text(said);
        assert!(!shown.contains(['|', '<', '[', '@', '`', '*', '\n', ':', '\u{1b}']), "{shown}");
        // References aside, no sign is left.
        let left: String = regex::Regex::new("&#[0-9]+;").unwrap().replace_all(&shown, "").into();
        assert!(!left.contains(['#', '&', ';', '.', '/']), "{left}");
        assert_eq!(code("a-b"), "<code>a-b</code>");
        assert!(text("token: ghp_0123456789abcdef0123").ends_with("&#42;&#42;&#42;"));
    }

    #[test]
    fn a_table_has_a_line_a_row() {
        assert_eq!(table(&["A", "B"], [vec!["1".into(), "2".into()]]), "| A | B |\n|---|---|\n| 1 | 2 |\n");
    }
}
