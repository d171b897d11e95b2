//! The only code that prints, prompts or spins.
//!
//! Data goes to stdout, everything else to stderr. Without a terminal there is no spinner and no
//! prompt; colours follow the terminal, `NO_COLOR` and `CLICOLOR`.

#![allow(clippy::print_stdout, clippy::print_stderr)] // this is where printing lives

pub mod ask;
pub mod screen;

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use owo_colors::{OwoColorize, Style};
use serde::Serialize;

use crate::engine::{Events, Outcome, StepId};
use crate::error::{Error, Result};
use crate::ports::environment;
use crate::text::{one_line, printable};

/// Width of the column with the steps' names.
const ID_WIDTH: usize = 13;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Text,
    Json,
}

pub struct Ui {
    format: Format,
    terminal: bool,
    unicode: bool,
    verbose: bool,
    bars: MultiProgress,
    running: Mutex<BTreeMap<StepId, ProgressBar>>,
    titles: Mutex<BTreeMap<StepId, String>>,
    said: Mutex<BTreeMap<StepId, String>>,
}

impl Ui {
    pub fn new(format: Format, verbose: bool) -> Ui {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| environment::var(name)).unwrap_or_default();
        let dumb = environment::var("TERM").is_some_and(|term| term == "dumb");
        Ui {
            format,
            terminal: std::io::stderr().is_terminal() && !dumb,
            unicode: locale.to_lowercase().replace('-', "").contains("utf8"),
            verbose,
            bars: MultiProgress::new(),
            running: Mutex::default(),
            titles: Mutex::default(),
            said: Mutex::default(),
        }
    }

    /// Whether marks and lines can be drawn with more than ASCII.
    pub fn is_unicode(&self) -> bool {
        self.unicode
    }

    /// Whether there is a whole terminal to draw on and to read keys from.
    pub fn is_screen(&self) -> bool {
        self.terminal && std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
    }

    /// Columns that data has: the terminal's, or what `COLUMNS` says, or 80.
    pub fn width(&self) -> usize {
        let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| usize::from(size.ws_col));
        let told = || environment::var("COLUMNS").and_then(|columns| columns.parse().ok());
        size.filter(|columns| *columns > 0).or_else(told).unwrap_or(80).min(400)
    }

    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Data for people, on stdout.
    pub fn data(&self, text: &str) {
        // A reader that closed the pipe (`| head`) is no error of ours.
        let _ = writeln!(anstream::stdout(), "{}", text.trim_end());
    }

    /// Data for programs, on stdout.
    pub fn json(&self, value: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string_pretty(value)?;
        let _ = writeln!(anstream::stdout(), "{text}");
        Ok(())
    }

    /// One line of data as it is.
    pub fn data_line(&self, text: &str) {
        let _ = writeln!(anstream::stdout(), "{text}");
    }

    /// One document on a line of its own, for programs that read while we write.
    pub fn json_line(&self, value: &impl Serialize) {
        match serde_json::to_string(value) {
            Ok(text) => self.data_line(&text),
            Err(error) => self.warn(&error.to_string()),
        }
    }

    /// A line for people, on stderr.
    pub fn say(&self, line: &str) {
        self.bars.suspend(|| {
            let _ = writeln!(anstream::stderr(), "{line}");
        });
    }

    pub fn warn(&self, message: &str) {
        self.say(&format!("{} {}", self.paint("warning:", Style::new().yellow().bold()), printable(message)));
    }

    /// An error whole: message, causes, the failed program's words, and the ways out.
    pub fn error(&self, error: &Error) {
        self.stop_spinners();
        self.say(&format!("{} {}", self.paint("error:", Style::new().red().bold()), printable(error.message())));
        for cause in error.causes() {
            self.say(&format!("  caused by: {}", printable(cause)));
        }
        for line in error.detail_text().unwrap_or_default().lines() {
            self.say(&format!("  {} {}", self.bar(), self.paint(&printable(line), Style::new().dimmed())));
        }
        for hint in error.hints() {
            self.hint(hint);
        }
    }

    /// A way on.
    pub fn hint(&self, hint: &str) {
        self.say(&format!("{} {}", self.paint("hint:", Style::new().cyan().bold()), printable(hint)));
    }

    /// Asks; without a terminal that is an error which names the flag that answers.
    pub fn confirm(&self, question: &str, flag: &str) -> Result<bool> {
        if !self.terminal || !std::io::stdin().is_terminal() {
            return Err(Error::usage(format!("{question} There is no terminal to ask on"))
                .hint(format!("answer with the flag: {flag}")));
        }
        Ok(dialoguer::Confirm::new().with_prompt(question).default(false).interact()?)
    }

    /// Names the steps of the walk that follows.
    pub fn expect(&self, titles: impl IntoIterator<Item = (StepId, String)>) {
        *lock(&self.titles) = titles.into_iter().collect();
    }

    /// Coloured if stderr is to be coloured.
    pub fn paint(&self, text: &str, style: Style) -> String {
        match anstream::AutoStream::choice(&std::io::stderr()) {
            anstream::ColorChoice::Never => text.to_owned(),
            _ => text.style(style).to_string(),
        }
    }

    /// Coloured if stdout is to be coloured.
    pub fn paint_data(&self, text: &str, style: Style) -> String {
        match anstream::AutoStream::choice(&std::io::stdout()) {
            anstream::ColorChoice::Never => text.to_owned(),
            _ => text.style(style).to_string(),
        }
    }

    pub fn tick(&self) -> String {
        self.paint(if self.unicode { "✓" } else { "ok" }, Style::new().green().bold())
    }

    pub fn cross(&self) -> String {
        self.paint(if self.unicode { "✗" } else { "x " }, Style::new().red().bold())
    }

    fn bar(&self) -> &'static str {
        if self.unicode { "│" } else { "|" }
    }

    fn title(&self, id: StepId) -> String {
        lock(&self.titles).get(id).cloned().unwrap_or_default()
    }

    fn line(&self, mark: &str, id: StepId, text: &str, took: Duration) {
        let time = self.paint(&format!("{:>6.1} s", took.as_secs_f64()), Style::new().dimmed());
        if !self.terminal {
            return self.say(&format!("{mark} {id:<ID_WIDTH$} {time}  {}", one_line(text, 400)));
        }
        let room = terminal_width().saturating_sub(ID_WIDTH + 14).max(10);
        self.say(&format!("{mark} {id:<ID_WIDTH$} {time}  {}", one_line(text, room)));
    }

    fn stop_spinners(&self) {
        for (_, bar) in std::mem::take(&mut *lock(&self.running)) {
            bar.finish_and_clear();
        }
    }
}

impl Events for Ui {
    fn started(&self, id: StepId) {
        if self.verbose && !self.terminal {
            self.say(&format!("… {id:<ID_WIDTH$} {}", self.title(id)));
        }
        if self.terminal {
            let frames = if self.unicode { "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ " } else { "|/-\\ " };
            let template = format!("{{spinner:.cyan}} {id:<ID_WIDTH$} {{wide_msg}} {{elapsed:.dim}}");
            let style = ProgressStyle::with_template(&template)
                .unwrap_or_else(|_| ProgressStyle::default_spinner())
                .tick_chars(frames);
            let bar = self.bars.add(ProgressBar::new_spinner().with_style(style).with_message(self.title(id)));
            bar.enable_steady_tick(Duration::from_millis(120));
            lock(&self.running).insert(id, bar);
        }
    }

    fn detail(&self, id: StepId, text: &str) {
        let text = one_line(text, 160);
        if lock(&self.said).insert(id, text.clone()).as_ref() == Some(&text) {
            return;
        }
        match lock(&self.running).get(id) {
            Some(bar) => bar.set_message(text),
            None if self.verbose => self.say(&format!("… {id:<ID_WIDTH$} {text}")),
            None => {}
        }
    }

    fn finished(&self, id: StepId, outcome: &Outcome, took: Duration) {
        if let Some(bar) = lock(&self.running).remove(id) {
            bar.finish_and_clear();
        }
        let title = self.title(id);
        let text = match outcome {
            Outcome::Applied => title,
            // What needs no work is worth a line only to those who ask for more.
            Outcome::Ready | Outcome::UndoneWith(_) if !self.verbose => return,
            Outcome::Ready => format!("is as it should be: {title}"),
            Outcome::Foreign => format!("not ours, left alone: {title}"),
            Outcome::Undone => format!("removed: {title}"),
            Outcome::UndoneWith(outer) => format!("removed with the {outer}: {title}"),
        };
        self.line(&self.tick(), id, &text, took);
    }

    fn failed(&self, id: StepId, error: &Error, took: Duration) {
        if let Some(bar) = lock(&self.running).remove(id) {
            bar.finish_and_clear();
        }
        self.line(&self.cross(), id, error.message(), took);
    }
}

fn terminal_width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    size.map_or(80, |size| usize::from(size.ws_col)).clamp(40, 160)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
