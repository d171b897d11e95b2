//! A terminal of 80 columns with a program in it, and a person who reads and types.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

pub const ENTER: &str = "\r";
pub const DOWN: &str = "\x1b[B";

pub struct Terminal {
    child: Child,
    keys: File,
    shown: Arc<Mutex<String>>,
    /// Up to where it was read.
    read: usize,
    limit: Duration,
    pub asked: u32,
}

impl Terminal {
    /// Nothing that is waited for takes longer than the limit.
    pub fn start(mut command: Command, limit: Duration) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap();
        let path = std::ffi::OsStr::from_bytes(path.as_bytes());
        let other = OpenOptions::new().read(true).write(true).open(path).unwrap();
        tcsetwinsize(&other, Winsize { ws_row: 40, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let end = || Stdio::from(other.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm").env("NO_COLOR", "1");
        let child = command.spawn().unwrap();
        // What the command holds of the terminal would keep it open after the program's end.
        drop(command);
        drop(other);
        let keys = File::from(master);
        let (mut from, shown) = (keys.try_clone().unwrap(), Arc::new(Mutex::new(String::new())));
        let screen = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = from.read(&mut bytes) {
                screen.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
        });
        Terminal { child, keys, shown, read: 0, limit, asked: 0 }
    }

    /// All that was shown.
    pub fn shown(&self) -> String {
        self.shown.lock().unwrap().clone()
    }

    /// Waits for words after those that were waited for before.
    #[track_caller]
    pub fn sees(&mut self, words: &str) {
        let deadline = Instant::now() + self.limit;
        loop {
            let shown = self.shown();
            if let Some(at) = shown[self.read..].find(words) {
                self.read += at + words.len();
                return;
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "no {words:?} ({ended:?}):\n{shown}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// A question, and its answer.
    #[track_caller]
    pub fn answers(&mut self, question: &str, keys: &str) {
        self.sees(question);
        // It is read when the question is whole and the terminal is set for it.
        std::thread::sleep(Duration::from_millis(150));
        self.types(keys);
        self.asked += 1;
    }

    /// The exit code.
    #[track_caller]
    pub fn ends(&mut self) -> Option<i32> {
        let deadline = Instant::now() + self.limit;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                // What it said last may still be under way.
                std::thread::sleep(Duration::from_millis(100));
                return status.code();
            }
            assert!(Instant::now() < deadline, "it does not end:\n{}", self.shown());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
