//! Runs the program on a pseudo-terminal with scripted answers, for prompts.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::cli::Lattice;
use crate::guard::Guarded;
use crate::output::Output;

/// A run on a terminal and the answers it will get.
#[derive(Clone, Debug)]
#[must_use]
pub struct Terminal {
    lattice: Lattice,
    answers: Vec<(String, String)>,
    columns: u16,
}

impl Terminal {
    pub(crate) fn new(lattice: Lattice) -> Self {
        Self { lattice: lattice.env("TERM", "xterm-256color"), answers: Vec::new(), columns: 120 }
    }

    /// How wide the terminal is.
    pub fn columns(mut self, columns: u16) -> Self {
        self.columns = columns;
        self
    }

    /// Types `keys` once `prompt` has appeared after the previous answer; Enter is `\r`, Ctrl-C `\x03`.
    pub fn answer(mut self, prompt: &str, keys: &str) -> Self {
        self.answers.push((prompt.to_owned(), keys.to_owned()));
        self
    }

    /// Runs to the end; what appeared on the terminal is in `stdout`, without escape sequences.
    #[track_caller]
    pub fn run(self) -> Output {
        let mut session = Session::start(&self.lattice, self.columns);
        for (prompt, keys) in &self.answers {
            session.await_text(prompt);
            session.master.write_all(keys.as_bytes()).expect("the terminal takes input");
        }
        while session.read_more() {}
        let status = session.guarded.wait();
        let shown = plain(&session.seen);
        let status = status.unwrap_or_else(|| panic!("{} took too long:\n{shown}", session.described));
        Output::new(self.lattice.repo().clone(), status.code(), status.signal(), shown, String::new())
    }
}

/// The terminal while the program runs on it.
struct Session {
    guarded: Guarded,
    master: File,
    chunks: Receiver<Vec<u8>>,
    seen: Vec<u8>,
    /// Where, in the plain text, that begins which no answer has been given to.
    unanswered: usize,
    described: String,
}

impl Session {
    #[track_caller]
    fn start(lattice: &Lattice, columns: u16) -> Self {
        let (master, slave) = open_terminal(columns);
        // setsid makes the terminal the controlling one, so that Ctrl-C and /dev/tty work; then it becomes the program.
        let mut command = lattice.command(Some(&["setsid", "--ctty"]));
        let share = || Stdio::from(slave.try_clone().expect("a descriptor can be copied"));
        command.stdin(share()).stdout(share()).stderr(share());
        let child = command.spawn().unwrap_or_else(|error| panic!("setsid does not start: {error}"));
        Self {
            guarded: Guarded::new(child, lattice.time()),
            chunks: read_all(master.try_clone().expect("a descriptor can be copied")),
            master,
            seen: Vec::new(),
            unanswered: 0,
            described: lattice.described(),
        }
    }

    #[track_caller]
    fn await_text(&mut self, prompt: &str) {
        loop {
            let shown = plain(&self.seen);
            if let Some(place) = shown[self.unanswered..].find(prompt) {
                self.unanswered += place + prompt.len();
                return;
            }
            let more = self.read_more();
            assert!(more, "{} ended without {prompt:?}:\n{shown}", self.described);
        }
    }

    /// Waits for more output; false when the program has closed the terminal.
    #[track_caller]
    fn read_more(&mut self) -> bool {
        match self.chunks.recv_timeout(self.guarded.remaining()) {
            Ok(chunk) => {
                self.seen.extend(chunk);
                true
            }
            Err(RecvTimeoutError::Disconnected) => false,
            Err(RecvTimeoutError::Timeout) => panic!("{} waits:\n{}", self.described, plain(&self.seen)),
        }
    }
}

fn open_terminal(columns: u16) -> (File, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).expect("the system has pseudo-terminals");
    grantpt(&master).expect("the terminal is ours");
    unlockpt(&master).expect("the terminal is ours");
    let size = Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).expect("a terminal has a size");
    let slave = ioctl_tiocgptpeer(&master, flags).expect("the terminal is unlocked");
    (File::from(master), slave)
}

fn read_all(mut master: File) -> Receiver<Vec<u8>> {
    let (sender, chunks) = channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        // Linux answers with an error, not with an end, when the last user of the terminal is gone.
        while let Ok(count @ 1..) = master.read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    chunks
}

/// The text of terminal output: no escape sequences, no carriage returns.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' => {}
            '\x1b' if characters.next_if_eq(&'[').is_some() => {
                // The final byte of a control sequence is a letter or one of a few signs.
                characters.by_ref().find(|c| ('@'..='~').contains(c));
            }
            '\x1b' => {
                characters.next();
            }
            other => plain.push(other),
        }
    }
    plain
}
