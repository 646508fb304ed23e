//! One line at the end of a terminal that is written again and again, and is gone in the end.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Style, printable};
use crate::app::{App, Format, Noise};

/// The line, where there is a terminal to show it on.
#[derive(Debug)]
pub(crate) struct StatusLine {
    columns: usize,
    style: Style,
}

/// Whether the line stands there now. Remarks come from several places and threads, and each makes room for itself.
static SHOWN: AtomicBool = AtomicBool::new(false);

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

/// Goes back to the beginning of the line and empties it.
const CLEAR: &str = "\r\u{1b}[2K";

impl StatusLine {
    /// `None` for whoever wants to hear little, or is no person.
    pub(crate) fn new(app: &App) -> Option<Self> {
        let stderr = std::io::stderr();
        if app.format == Format::Json || app.noise == Noise::Quiet || !stderr.is_terminal() {
            return None;
        }
        let columns = rustix::termios::tcgetwinsize(&stderr).map_or(0, |size| usize::from(size.ws_col));
        Some(Self { columns: if columns == 0 { USUAL } else { columns }, style: app.style })
    }

    pub(crate) fn show(&self, status: &Status) {
        SHOWN.store(true, Ordering::Relaxed);
        write(&format!("{CLEAR}{}", status.line(self.columns, self.style)));
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        make_room();
    }
}

/// Removes the line if it stands there.
pub(super) fn make_room() {
    if SHOWN.swap(false, Ordering::Relaxed) {
        write(CLEAR);
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
        let style = Style { colour: false, ascii: true };
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
