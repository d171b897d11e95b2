//! The whole terminal for a while: raw keys, an alternate screen, and everything as it was afterwards.

use std::io::{Stdout, Write, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::terminal::{self, Clear, ClearType};
use crossterm::{cursor, queue};
use owo_colors::{OwoColorize, Style};
use tokio::sync::mpsc;

use crate::error::Result;

/// How often the thread that reads keys looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// What a person does at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    Quit,
    /// Lines to scroll; up if negative.
    Scroll(isize),
    Resized,
}

pub struct Screen {
    out: Stdout,
    inputs: mpsc::Receiver<Input>,
    ended: Arc<AtomicBool>,
}

impl Screen {
    pub fn open() -> Result<Screen> {
        terminal::enable_raw_mode()?;
        let (sender, inputs) = mpsc::channel(16);
        let ended = Arc::new(AtomicBool::new(false));
        // From here on, what was changed is put back when this is dropped.
        let mut screen = Screen { out: stdout(), inputs, ended: Arc::clone(&ended) };
        queue!(screen.out, terminal::EnterAlternateScreen, cursor::Hide)?;
        screen.out.flush()?;
        std::thread::spawn(move || listen(&ended, &sender));
        Ok(screen)
    }

    /// Columns and rows.
    pub fn size() -> (usize, usize) {
        let (columns, rows) = terminal::size().unwrap_or((80, 24));
        (usize::from(columns).max(20), usize::from(rows).max(5))
    }

    /// The next thing that a person does; quits when the terminal is gone.
    pub async fn next(&mut self) -> Input {
        self.inputs.recv().await.unwrap_or(Input::Quit)
    }

    /// Shows these lines and nothing else. They must fit.
    pub fn draw(&mut self, lines: &[(String, Style)]) -> Result<()> {
        queue!(self.out, terminal::BeginSynchronizedUpdate)?;
        let colours = anstream::AutoStream::choice(&self.out) != anstream::ColorChoice::Never;
        for (row, (text, style)) in lines.iter().enumerate() {
            queue!(self.out, cursor::MoveTo(0, u16::try_from(row).unwrap_or(u16::MAX)))?;
            match colours {
                true => write!(self.out, "{}", text.style(*style))?,
                false => write!(self.out, "{text}")?,
            }
            queue!(self.out, Clear(ClearType::UntilNewLine))?;
        }
        if lines.len() < Screen::size().1 {
            queue!(self.out, cursor::MoveToNextLine(1), Clear(ClearType::FromCursorDown))?;
        }
        queue!(self.out, terminal::EndSynchronizedUpdate)?;
        Ok(self.out.flush()?)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // A terminal that is gone needs no restoring.
        let _ = queue!(self.out, cursor::Show, terminal::LeaveAlternateScreen);
        let _ = self.out.flush();
        let _ = terminal::disable_raw_mode();
    }
}

fn listen(ended: &AtomicBool, to: &mpsc::Sender<Input>) {
    while !ended.load(Ordering::Relaxed) {
        let input = match event::poll(LOOK) {
            Ok(false) => continue,
            Ok(true) => event::read().ok().map(|event| input_of(&event)),
            Err(_) => None,
        };
        // Without a terminal to read from, the receiver sees the channel closed and quits.
        let Some(input) = input else { return };
        if input.is_some_and(|input| to.blocking_send(input).is_err()) {
            return;
        }
    }
}

fn input_of(event: &Event) -> Option<Input> {
    match event {
        Event::Resize(..) => Some(Input::Resized),
        Event::Key(key) if key.kind != KeyEventKind::Release => match key.code {
            KeyCode::Char('c' | 'd') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Input::Quit),
            KeyCode::Char('q') | KeyCode::Esc => Some(Input::Quit),
            KeyCode::Up | KeyCode::Char('k') => Some(Input::Scroll(-1)),
            KeyCode::Down | KeyCode::Char('j') => Some(Input::Scroll(1)),
            KeyCode::PageUp => Some(Input::Scroll(-10)),
            KeyCode::PageDown | KeyCode::Char(' ') => Some(Input::Scroll(10)),
            KeyCode::Home => Some(Input::Scroll(isize::MIN)),
            KeyCode::End => Some(Input::Scroll(isize::MAX)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyEvent;

    use super::*;

    #[test]
    fn q_and_ctrl_c_quit_and_c_alone_does_not() {
        let key = |code, modifiers| input_of(&Event::Key(KeyEvent::new(code, modifiers)));
        assert_eq!(key(KeyCode::Char('q'), KeyModifiers::NONE), Some(Input::Quit));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Input::Quit));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::NONE), None);
        assert_eq!(key(KeyCode::Down, KeyModifiers::NONE), Some(Input::Scroll(1)));
    }
}
