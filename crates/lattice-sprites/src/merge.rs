//! Makes one history of what came on stdout and in the outbox: nothing lost, nothing doubled.

use std::collections::{HashMap, VecDeque};

use crate::protocol::{Event, EventKey, Finding, Happening, Line, Rule, Rules, Secrets, read_event};

/// The two ways an event takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    Stdout,
    Outbox,
}

/// Whose events are taken; the channel says who speaks, not the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub sprite_id: String,
    pub work_item_id: String,
}

/// What a line turned out to be.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// An event that was not known.
    New(Arrival),
    /// The other side had it already; it is complete now.
    Confirmed {
        seq: u64,
        event: Event,
        /// The side that had it second.
        side: Side,
    },
    /// It was known from this side: the file was read again.
    Known,
    Finding(Placed),
}

/// A new event with its place in the history.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    pub seq: u64,
    pub side: Side,
    pub key: EventKey,
    /// As it may be stored and shown.
    pub event: Event,
    /// The line as it may be stored.
    pub masked: String,
}

/// A finding with the place it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    pub finding: Finding,
    pub seq: Option<u64>,
    pub side: Option<Side>,
    pub line: Option<u64>,
}

/// The merge of one session.
#[derive(Debug)]
pub struct Merger {
    identity: Option<Identity>,
    /// The side whose order the rules go by.
    authority: Side,
    next_seq: u64,
    /// Events that one side has and the other has not yet, oldest first.
    unmatched: HashMap<(Side, EventKey), VecDeque<u64>>,
    /// Lines that are known from this side and come again because the file was replaced.
    credits: HashMap<EventKey, u64>,
    pub rules: Rules,
    pub secrets: Secrets,
}

impl Merger {
    /// A session whose first event gets the number `next_seq`.
    pub fn new(identity: Option<Identity>, authority: Side, next_seq: u64) -> Self {
        Self {
            identity,
            authority,
            next_seq,
            unmatched: HashMap::new(),
            credits: HashMap::new(),
            rules: Rules::default(),
            secrets: Secrets::default(),
        }
    }

    /// Recalls an event that only `side` has so far.
    pub fn recall(&mut self, side: Side, key: EventKey, seq: u64) {
        self.unmatched.entry((side, key)).or_default().push_back(seq);
    }

    /// The outbox will be read from its start again; these lines of it are known.
    pub fn read_outbox_again(&mut self, known: impl IntoIterator<Item = EventKey>) {
        self.credits.clear();
        for key in known {
            *self.credits.entry(key).or_default() += 1;
        }
    }

    /// Takes one line.
    pub fn line(&mut self, side: Side, number: u64, line: Line<'_>) -> Vec<Outcome> {
        let place = |finding| Placed { finding, seq: None, side: Some(side), line: Some(number) };
        let bytes = match line {
            Line::Event(bytes) => bytes,
            Line::TooLong { bytes } => {
                let finding = Finding::new(Rule::LineTooLong, format!("the line has {bytes} bytes"));
                return vec![Outcome::Finding(place(finding))];
            }
        };
        match read_event(bytes) {
            Err(findings) => findings.into_iter().map(|finding| Outcome::Finding(place(finding))).collect(),
            Ok((event, remarks)) => {
                let mut outcomes: Vec<_> =
                    remarks.into_iter().map(|finding| Outcome::Finding(place(finding))).collect();
                match self.foreign(&event) {
                    Some(finding) => outcomes.push(Outcome::Finding(place(finding))),
                    None => self.event(side, number, event, &mut outcomes),
                }
                outcomes
            }
        }
    }

    /// What only one side has, now that both were read to their ends.
    pub fn one_sided(&self) -> Vec<Placed> {
        let mut lonely: Vec<_> =
            self.unmatched.iter().flat_map(|((side, _), seqs)| seqs.iter().map(|s| (*s, *side))).collect();
        lonely.sort_unstable();
        let finding = |(seq, side): (u64, Side)| Placed {
            finding: Finding::new(Rule::OneSided, format!("the event is missing {}", side.other().place())),
            seq: Some(seq),
            side: Some(side),
            line: None,
        };
        lonely.into_iter().map(finding).collect()
    }

    fn foreign(&self, event: &Event) -> Option<Finding> {
        let identity = self.identity.as_ref()?;
        let wrong = [
            ("sprite_id", &event.sprite_id, &identity.sprite_id),
            ("work_item_id", &event.work_item_id, &identity.work_item_id),
        ];
        let (key, found, expected) = wrong.into_iter().find(|(_, found, expected)| found != expected)?;
        Some(Finding::new(Rule::WrongIdentity, format!("`{key}` is `{found}`; this sprite has `{expected}`")))
    }

    fn event(&mut self, side: Side, number: u64, event: Event, outcomes: &mut Vec<Outcome>) {
        let line = event.to_line();
        let key = EventKey::of(&line);
        if side == Side::Outbox
            && let Some(credit) = self.credits.get_mut(&key).filter(|credit| **credit > 0)
        {
            *credit -= 1;
            return outcomes.push(Outcome::Known);
        }
        let waiting = self.unmatched.get_mut(&(side.other(), key)).and_then(VecDeque::pop_front);
        let seq = waiting.unwrap_or(self.next_seq);
        let findings = if side == self.authority { self.rules.observe(Happening::Event(&event)) } else { Vec::new() };
        let masked = self.secrets.mask(&line).into_owned();
        let event =
            if masked == line { event } else { read_event(masked.as_bytes()).map_or(event, |(event, _)| event) };
        if waiting.is_some() {
            outcomes.push(Outcome::Confirmed { seq, event, side });
        } else {
            self.next_seq += 1;
            self.recall(side, key, seq);
            if masked != line {
                let finding = Finding::new(Rule::SecretShown, "something like a token stood in an event");
                outcomes.push(Outcome::Finding(Placed {
                    finding,
                    seq: Some(seq),
                    side: Some(side),
                    line: Some(number),
                }));
            }
            outcomes.push(Outcome::New(Arrival { seq, side, key, event, masked }));
        }
        let place = |finding| Placed { finding, seq: Some(seq), side: Some(side), line: Some(number) };
        outcomes.extend(findings.into_iter().map(|finding| Outcome::Finding(place(finding))));
    }
}

impl Side {
    pub fn other(self) -> Self {
        match self {
            Self::Stdout => Self::Outbox,
            Self::Outbox => Self::Stdout,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Outbox => "outbox",
        }
    }

    fn place(self) -> &'static str {
        match self {
            Self::Stdout => "on stdout",
            Self::Outbox => "in the outbox",
        }
    }
}
