//! Questions to a person: each with a default, and with the flag that answers it where nobody can be asked.

use std::io::{ErrorKind, IsTerminal};
use std::sync::atomic::{AtomicU32, Ordering};

use dialoguer::console::Term;
use dialoguer::{Confirm, Input, MultiSelect, Select};

use super::Ui;
use crate::error::{Error, Result};

/// One person, or with `--yes` nobody: then the defaults are the answers.
pub struct Asking<'a> {
    ui: &'a Ui,
    yes: bool,
    asked: AtomicU32,
}

impl<'a> Asking<'a> {
    /// Refuses to begin where there is neither a terminal nor `--yes`.
    pub fn new(ui: &'a Ui, yes: bool) -> Result<Asking<'a>> {
        let is_terminal = ui.terminal && std::io::stdin().is_terminal();
        if !yes && !is_terminal {
            return Err(Error::usage("there is no terminal to ask on")
                .hint("take all defaults: --yes; each answer has a flag, see --help"));
        }
        Ok(Asking { ui, yes, asked: AtomicU32::new(0) })
    }

    /// Whether there is a person.
    pub fn is_answered(&self) -> bool {
        !self.yes
    }

    /// How many questions were put.
    pub fn asked(&self) -> u32 {
        self.asked.load(Ordering::Relaxed)
    }

    /// A line of text that can be used.
    pub fn text(&self, question: &str, default: &str, check: impl Fn(&str) -> Result<(), String>) -> Result<String> {
        if self.yes {
            return check(default).map(|()| default.to_owned()).map_err(Error::usage);
        }
        let input = Input::<String>::new().with_prompt(question).validate_with(|text: &String| check(text.trim()));
        let input = if default.is_empty() { input } else { input.default(default.to_owned()) };
        self.answer(input.interact_text()).map(|text| text.trim().to_owned())
    }

    /// One of several, by number.
    pub fn one(&self, question: &str, choices: &[String], default: usize) -> Result<usize> {
        if self.yes {
            return Ok(default);
        }
        self.answer(Select::new().with_prompt(question).items(choices).default(default).interact())
    }

    /// Any of several, by number. Whoever asks says what came of it: the whole list would fill the screen.
    pub fn any(&self, question: &str, choices: &[String], chosen: &[bool]) -> Result<Vec<usize>> {
        if self.yes {
            return Ok((0..choices.len()).filter(|at| chosen[*at]).collect());
        }
        self.answer(MultiSelect::new().with_prompt(question).items(choices).defaults(chosen).report(false).interact())
    }

    pub fn yes_or_no(&self, question: &str, default: bool) -> Result<bool> {
        if self.yes {
            return Ok(default);
        }
        self.answer(Confirm::new().with_prompt(question).default(default).interact())
    }

    /// Ctrl-C at a question is no failure, and must not leave the terminal without a cursor.
    fn answer<T>(&self, answer: dialoguer::Result<T>) -> Result<T> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        answer.map_err(|dialoguer::Error::IO(error)| {
            let _ = Term::stderr().show_cursor();
            self.ui.say("");
            match error.kind() {
                ErrorKind::Interrupted => Error::interrupted(),
                _ => Error::from(error).context("cannot ask"),
            }
        })
    }
}
