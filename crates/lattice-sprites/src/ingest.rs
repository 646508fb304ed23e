//! Reads a recorded session: the events of both sides as one history, and what was against the protocol.

use std::collections::BTreeMap;

use crate::merge::{Identity, Merger, Outcome, Placed, Side};
use crate::protocol::{Event, Happening, Lines};

/// A recorded session, understood.
#[derive(Debug)]
pub struct Recording {
    pub events: Vec<RecordedEvent>,
    pub findings: Vec<Placed>,
}

#[derive(Debug)]
pub struct RecordedEvent {
    pub seq: u64,
    /// The side that had it; `None` for both.
    pub side: Option<Side>,
    pub event: Event,
    /// The line as it may be shown.
    pub masked: String,
}

/// What was recorded.
#[derive(Debug, Clone, Copy)]
pub struct Transcript<'a> {
    pub stdout: Option<&'a [u8]>,
    pub outbox: Option<&'a [u8]>,
}

/// Reads a transcript. A line of stdout that is the id of a checkpoint says that one was made, as
/// `lattice checkpoint` prints it.
pub fn ingest(transcript: Transcript<'_>, identity: Option<Identity>) -> Recording {
    let authority = if transcript.stdout.is_some() { Side::Stdout } else { Side::Outbox };
    let mut reader =
        Reader { merger: Merger::new(identity, authority, 1), events: BTreeMap::new(), findings: Vec::new() };
    if let Some(stdout) = transcript.stdout {
        let mut lines = Lines::stdout();
        for line in stdout.split_inclusive(|byte| *byte == b'\n') {
            if let Some(id) = checkpoint_line(line) {
                reader.merger.rules.observe(Happening::Checkpoint(id));
            }
            lines.feed(line, |number, line| reader.take(Side::Stdout, number, line));
        }
        lines.end(|number, line| reader.take(Side::Stdout, number, line));
    }
    if let Some(outbox) = transcript.outbox {
        let mut lines = Lines::outbox();
        lines.feed(outbox, |number, line| reader.take(Side::Outbox, number, line));
        lines.end(|number, line| reader.take(Side::Outbox, number, line));
    }
    if transcript.stdout.is_some() && transcript.outbox.is_some() {
        let one_sided = reader.merger.one_sided();
        reader.findings.extend(one_sided);
    }
    Recording { events: reader.events.into_values().collect(), findings: reader.findings }
}

struct Reader {
    merger: Merger,
    events: BTreeMap<u64, RecordedEvent>,
    findings: Vec<Placed>,
}

impl Reader {
    fn take(&mut self, side: Side, number: u64, line: crate::protocol::Line<'_>) {
        for outcome in self.merger.line(side, number, line) {
            match outcome {
                Outcome::New(new) => {
                    let recorded =
                        RecordedEvent { seq: new.seq, side: Some(side), event: new.event, masked: new.masked };
                    self.events.insert(new.seq, recorded);
                }
                Outcome::Confirmed { seq, .. } => {
                    if let Some(recorded) = self.events.get_mut(&seq) {
                        recorded.side = None;
                    }
                }
                Outcome::Known => {}
                Outcome::Finding(placed) => self.findings.push(placed),
            }
        }
    }
}

fn checkpoint_line(line: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(line.trim_ascii_end()).ok()?;
    let rest = text.strip_prefix("chk_")?;
    (!rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())).then_some(text)
}
