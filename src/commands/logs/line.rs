//! One line of a log, and how it looks.

use owo_colors::{OwoColorize, Style};
use serde::Serialize;

use crate::text::printable;
use crate::ui::Ui;

#[derive(Debug, Clone, Serialize)]
pub struct Line {
    pub time: Option<jiff::Timestamp>,
    pub namespace: String,
    pub pod: String,
    pub container: String,
    #[serde(skip)]
    pub prefix: String,
    #[serde(rename = "line")]
    pub text: String,
}

/// Gives each container a colour, in the order in which they speak.
pub struct Printer<'a> {
    ui: &'a Ui,
    seen: Vec<String>,
    width: usize,
}

impl<'a> Printer<'a> {
    pub fn new(ui: &'a Ui) -> Printer<'a> {
        Printer { ui, seen: Vec::new(), width: 0 }
    }

    pub fn print(&mut self, line: &Line) {
        if self.ui.is_json() {
            self.ui.json_line(line);
        } else {
            let text = self.styled(line);
            self.ui.data_line(&text);
        }
    }

    pub fn say(&self, text: &str) {
        self.ui.say(text);
    }

    pub fn warn(&self, text: &str) {
        self.ui.warn(text);
    }

    fn styled(&mut self, line: &Line) -> String {
        let at = self.seen.iter().position(|seen| *seen == line.prefix).unwrap_or_else(|| {
            self.seen.push(line.prefix.clone());
            self.width = self.width.max(line.prefix.chars().count());
            self.seen.len() - 1
        });
        let plain = Style::new();
        let colours = [
            plain.cyan(),
            plain.yellow(),
            plain.green(),
            plain.magenta(),
            plain.blue(),
            plain.bright_red(),
            plain.bright_cyan(),
            plain.bright_green(),
        ];
        let prefix = format!("{:<width$}", line.prefix, width = self.width);
        format!("{}  {}", prefix.style(colours[at % colours.len()]), printable(&line.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::Format;

    #[test]
    fn each_container_has_its_colour_and_no_line_steers_the_terminal() {
        let ui = Ui::new(Format::Text, false);
        let mut printer = Printer::new(&ui);
        let line = |prefix: &str, text: &str| Line {
            time: None,
            namespace: String::new(),
            pod: String::new(),
            container: String::new(),
            prefix: prefix.into(),
            text: text.into(),
        };
        let lines = [line("web-1", "\u{1b}]0;owned\u{7}hello \u{1b}[2J"), line("db", "one"), line("web-1", "again")];
        let shown: Vec<String> = lines.iter().map(|line| printer.styled(line)).collect();
        assert_eq!(
            shown,
            ["\u{1b}[36mweb-1\u{1b}[0m  hello ", "\u{1b}[33mdb   \u{1b}[0m  one", "\u{1b}[36mweb-1\u{1b}[0m  again"]
        );
    }
}
