//! One line at the end of a terminal that is written again and again, and is gone in the end.

use std::io::{IsTerminal as _, Write as _};
use std::os::fd::AsFd;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::termios::LocalModes;

use super::{Style, printable};
use crate::app::{App, Format, Noise};

/// The line, where there is a terminal to show it on.
#[derive(Debug)]
pub(crate) struct StatusLine {
    columns: usize,
    style: Style,
}

/// What stands there now. Remarks come from several places and threads, and each makes room for itself.
static TERMINAL: Mutex<Terminal> = Mutex::new(Terminal { shows_line: false, is_asking: false });

struct Terminal {
    shows_line: bool,
    /// A person is being asked something, or edits: nothing else is written meanwhile.
    is_asking: bool,
}

fn terminal() -> MutexGuard<'static, Terminal> {
    TERMINAL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How far something is, in words and as a bar.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) phase: String,
    pub(crate) percent: Option<u8>,
    pub(crate) said: String,
}

/// Columns of a terminal that does not tell.
const USUAL: usize = 80;
/// Columns of the bar.
const BAR: usize = 20;

/// Nobody wonders about what takes less.
const LONG: Duration = Duration::from_millis(700);

/// Goes back to the beginning of the line and empties it.
const CLEAR: &str = "\r\u{1b}[2K";

impl StatusLine {
    /// `None` for whoever wants to hear little, or is no person.
    pub(crate) fn new(app: &App) -> Option<Self> {
        let stderr = std::io::stderr();
        if app.format == Format::Json || app.noise == Noise::Quiet || !stderr.is_terminal() {
            return None;
        }
        Some(Self { columns: columns(stderr).unwrap_or(USUAL), style: app.style })
    }

    pub(crate) fn show(&self, status: &Status) {
        let mut terminal = terminal();
        if !terminal.is_asking {
            terminal.shows_line = true;
            write(&format!("{CLEAR}{}", status.line(self.columns, self.style)));
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        make_room();
    }
}

/// How wide a terminal is, if this is one and it tells.
pub(crate) fn columns(terminal: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Whether what is typed does not appear on the terminal.
fn is_hidden() -> bool {
    rustix::termios::tcgetattr(std::io::stderr()).is_ok_and(|modes| !modes.local_modes.contains(LocalModes::ECHO))
}

/// Removes the line if it stands there.
pub(super) fn make_room() {
    let mut terminal = terminal();
    if std::mem::take(&mut terminal.shows_line) {
        write(CLEAR);
    }
}

/// As long as there is one, the terminal is left to the person who uses it.
pub(crate) struct Asking(());

impl Asking {
    pub(crate) fn begin() -> Self {
        terminal().is_asking = true;
        make_room();
        Self(())
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        terminal().is_asking = false;
    }
}

/// Shows a bar while many files are read, where there is a terminal to show it on.
pub(crate) fn reading(app: &App) -> Option<fn(usize, usize)> {
    static LINE: OnceLock<StatusLine> = OnceLock::new();
    let line = StatusLine::new(app)?;
    let _ = LINE.set(line);
    Some(|done, total| {
        let percent = u8::try_from(done * 100 / total.max(1)).ok();
        let status = Status { phase: "reading files".to_owned(), percent, said: format!("{done} of {total}") };
        LINE.get().into_iter().for_each(|line| line.show(&status));
    })
}

/// Says what is waited for if it takes long. It is a line of its own that stays, and nothing while a password is typed:
/// programs that Git starts, such as ssh and hooks, write to the same terminal.
#[derive(Debug)]
pub(crate) struct Waiting {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Waiting {
    pub(crate) fn begin(app: &App, what: &str) -> Option<Self> {
        StatusLine::new(app)?;
        let remark = format!("{what}\n");
        let (end, ended) = channel();
        let thread = std::thread::spawn(move || {
            if ended.recv_timeout(LONG) == Err(RecvTimeoutError::Timeout) && !is_hidden() && !terminal().is_asking {
                write(&remark);
            }
        });
        Some(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.end.take();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Status {
    /// Everything in one line that is shorter than the terminal is wide, so that none begins a second.
    pub(crate) fn line(&self, columns: usize, style: Style) -> String {
        let (full, empty) = if style.ascii { ('#', '-') } else { ('█', '░') };
        let bar = self.percent.map(|percent| {
            let done = usize::from(percent) * BAR / 100;
            let bar: String = (0..BAR).map(|at| if at < done { full } else { empty }).collect();
            format!("{bar} {percent:>3}%")
        });
        let said = self.said.lines().next().unwrap_or_default();
        let parts = [Some(self.phase.as_str()), bar.as_deref(), Some(said)];
        let parts: Vec<_> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        printable(&parts.join("  ")).replace('\t', " ").chars().take(columns.saturating_sub(1)).collect()
    }
}

fn write(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::{Status, Style};

    #[test]
    fn a_status_fits_its_terminal_and_obeys_nothing_that_an_agent_says() {
        let style = Style { colour: false, ascii: true, columns: None };
        let status = |phase: &str, percent, said: &str| Status { phase: phase.into(), percent, said: said.into() };
        for (status, columns, line) in [
            (status("", None, ""), 80, ""),
            (status("test", None, "running"), 80, "test  running"),
            (status("test", Some(0), ""), 80, "test  --------------------   0%"),
            (status("test", Some(55), "half\nand more"), 80, "test  ###########---------  55%  half"),
            (status("", Some(100), "done"), 80, "#################### 100%  done"),
            (status("implement", Some(50), "much to say"), 12, "implement  "),
            (status("\u{1b}[2J", None, "a\tb"), 80, "\\u{1b}[2J  a b"),
        ] {
            assert_eq!(status.line(columns, style), line, "{status:?}");
        }
    }
}
