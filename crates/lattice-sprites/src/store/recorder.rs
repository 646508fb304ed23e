//! Records one session: lines of both sides go in, each batch is one transaction.

use rusqlite::{Transaction, TransactionBehavior, params};
use serde_json::Value;

use super::{SessionKey, SpriteKey, Store, StoreError};
use crate::merge::{Arrival, Identity, Merger, Outcome, Placed, Side};
use crate::outbox::{Cursor, Outbox, Reading};
use crate::protocol::{Event, EventKey, EventType, Finding, Lines, Rule};

/// Something that the supervisor hears of, without what must not be shown.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// A new event, for people to see.
    Seen {
        seq: u64,
        event: Event,
    },
    /// An event that the outbox has: it takes effect.
    Counts {
        seq: u64,
        event: Event,
    },
    Found(Placed),
}

/// A session that is being recorded.
#[derive(Debug)]
pub struct Recorder {
    sprite: SpriteKey,
    session: SessionKey,
    pub merger: Merger,
    stdout: Lines,
    outbox_lines: Lines,
    outbox: Outbox,
}

impl Recorder {
    /// Begins, or goes on after a crash, to record a session.
    pub fn open(
        store: &mut Store,
        sprite: SpriteKey,
        session: SessionKey,
        identity: Identity,
        outbox: &std::path::Path,
    ) -> Result<(Self, Vec<Effect>), StoreError> {
        let next = store.db.query_row(
            "SELECT coalesce(max(seq), 0) + 1 FROM events WHERE sprite = ?1",
            [sprite.0],
            |row| row.get(0),
        )?;
        let mut merger = Merger::new(Some(identity), Side::Outbox, next);
        recall(store, session, &mut merger)?;
        let cursor = store.cursor(sprite)?;
        let (outbox, changed) = Outbox::open(outbox, &cursor)?;
        let outbox_lines = Lines::outbox();
        let mut recorder = Self { sprite, session, merger, stdout: Lines::stdout(), outbox_lines, outbox };
        let mut effects = Vec::new();
        if let Some(why) = changed {
            effects = recorder.start_over(store, why, "")?;
        }
        Ok((recorder, effects))
    }

    /// Stores what came on stdout.
    pub fn stdout(&mut self, store: &mut Store, bytes: &[u8], at: &str) -> Result<Vec<Effect>, StoreError> {
        let mut outcomes = Vec::new();
        let merger = &mut self.merger;
        self.stdout.feed(bytes, |number, line| outcomes.extend(merger.line(Side::Stdout, number, line)));
        self.store(store, outcomes, None, at)
    }

    /// Stores what is new in the outbox.
    pub fn outbox(&mut self, store: &mut Store, at: &str) -> Result<Vec<Effect>, StoreError> {
        let mut effects = Vec::new();
        loop {
            match self.outbox.read()? {
                Reading::Changed(why) => effects.extend(self.start_over(store, why, at)?),
                Reading::More(bytes) if bytes.is_empty() => return Ok(effects),
                Reading::More(bytes) => effects.extend(self.take_outbox(store, &bytes, at)?),
            }
        }
    }

    /// Both sides have ended: takes what is left, and reports what only one of them had.
    pub fn finish(&mut self, store: &mut Store, stdout: Ending, at: &str) -> Result<Vec<Effect>, StoreError> {
        let mut outcomes = Vec::new();
        let merger = &mut self.merger;
        self.stdout.end(|number, line| outcomes.extend(merger.line(Side::Stdout, number, line)));
        let mut effects = self.store(store, outcomes, None, at)?;
        effects.extend(self.outbox(store, at)?);
        if let Some(why) = self.outbox.verify()? {
            effects.extend(self.start_over(store, why, at)?);
            effects.extend(self.outbox(store, at)?);
        }
        let rest = self.outbox.rest()?;
        effects.extend(self.take_outbox(store, &rest, at)?);
        let mut outcomes = Vec::new();
        let merger = &mut self.merger;
        self.outbox_lines.end(|number, line| outcomes.extend(merger.line(Side::Outbox, number, line)));
        outcomes.extend(merger.one_sided().into_iter().filter(|one| stdout.tells(one)).map(Outcome::Finding));
        effects.extend(self.store(store, outcomes, Some(self.outbox.cursor()), at)?);
        Ok(effects)
    }

    fn take_outbox(&mut self, store: &mut Store, bytes: &[u8], at: &str) -> Result<Vec<Effect>, StoreError> {
        let mut outcomes = Vec::new();
        let merger = &mut self.merger;
        self.outbox_lines.feed(bytes, |number, line| outcomes.extend(merger.line(Side::Outbox, number, line)));
        self.store(store, outcomes, Some(self.outbox.cursor()), at)
    }

    /// The outbox is not what it was: reports it, and reads it from its start without counting anything twice.
    fn start_over(&mut self, store: &mut Store, why: &str, at: &str) -> Result<Vec<Effect>, StoreError> {
        self.merger.read_outbox_again(store.outbox_keys(self.sprite)?);
        self.outbox_lines = Lines::outbox();
        let finding = Finding::new(Rule::OutboxTampered, why);
        let placed = Placed { finding, seq: None, side: Some(Side::Outbox), line: None };
        self.store(store, vec![Outcome::Finding(placed)], Some(Cursor::default()), at)
    }

    fn store(
        &mut self,
        store: &mut Store,
        outcomes: Vec<Outcome>,
        cursor: Option<Cursor>,
        at: &str,
    ) -> Result<Vec<Effect>, StoreError> {
        if outcomes.is_empty() && cursor.is_none() {
            return Ok(Vec::new());
        }
        let batch = store.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut effects = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            match outcome {
                Outcome::New(new) => {
                    insert_event(&batch, self.sprite, self.session, &new)?;
                    let (seq, event) = (new.seq, new.event);
                    if new.side == Side::Outbox {
                        register(&batch, self.sprite, (seq, &event), at)?;
                        effects.push(Effect::Counts { seq, event: event.clone() });
                    }
                    effects.push(Effect::Seen { seq, event });
                }
                Outcome::Confirmed { seq, event, side } => {
                    batch
                        .prepare_cached("INSERT INTO confirmations (sprite, seq) VALUES (?1, ?2)")?
                        .execute(params![self.sprite.0, seq])?;
                    // The event is known already; what is new may be that the outbox has it.
                    if side == Side::Outbox {
                        register(&batch, self.sprite, (seq, &event), at)?;
                        effects.push(Effect::Counts { seq, event });
                    }
                }
                Outcome::Known => {}
                Outcome::Finding(placed) => {
                    insert_finding(&batch, self.sprite, Some(self.session), &placed, at)?;
                    effects.push(Effect::Found(placed));
                }
            }
        }
        if let Some(cursor) = cursor {
            batch.execute(
                "INSERT INTO cursors (sprite, bytes, lines, digest) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (sprite) \
                 DO UPDATE SET bytes = excluded.bytes, lines = excluded.lines, digest = excluded.digest",
                params![self.sprite.0, cursor.offset, cursor.lines, cursor.digest],
            )?;
        }
        batch.commit()?;
        Ok(effects)
    }
}

/// Takes note of what an event asks for, now that the outbox has it.
fn register(batch: &Transaction<'_>, sprite: SpriteKey, counts: (u64, &Event), at: &str) -> Result<(), StoreError> {
    super::actions::register(batch, sprite, counts, at)?;
    super::proposals::register(batch, sprite, counts)
}

/// How stdout ended, which decides whether something missing there is the agent's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    ReadToItsEnd,
    CutOff,
}

impl Ending {
    fn tells(self, one: &Placed) -> bool {
        match self {
            Self::ReadToItsEnd => true,
            Self::CutOff => one.side == Some(Side::Stdout),
        }
    }
}

impl Store {
    /// Records a finding that no line of the agent shows.
    pub fn add_finding(&mut self, sprite: SpriteKey, finding: Finding, at: &str) -> Result<(), StoreError> {
        let batch = self.db.transaction()?;
        insert_finding(&batch, sprite, None, &Placed { finding, seq: None, side: None, line: None }, at)?;
        Ok(batch.commit()?)
    }

    fn cursor(&self, sprite: SpriteKey) -> Result<Cursor, StoreError> {
        let mut statement = self.db.prepare("SELECT bytes, lines, digest FROM cursors WHERE sprite = ?1")?;
        let mut rows = statement
            .query_map([sprite.0], |row| Ok(Cursor { offset: row.get(0)?, lines: row.get(1)?, digest: row.get(2)? }))?;
        Ok(rows.next().transpose()?.unwrap_or_default())
    }

    /// The events that the outbox has had, as often as it had them.
    fn outbox_keys(&self, sprite: SpriteKey) -> Result<Vec<EventKey>, StoreError> {
        let mut statement = self.db.prepare(
            "SELECT e.key FROM events e WHERE e.sprite = ?1 AND (e.side = 'outbox' OR EXISTS \
             (SELECT 1 FROM confirmations c WHERE c.sprite = e.sprite AND c.seq = e.seq))",
        )?;
        let rows = statement.query_map([sprite.0], |row| row.get::<_, [u8; 16]>(0).map(EventKey))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// Brings back what a reader that was killed knew of the session.
fn recall(store: &Store, session: SessionKey, merger: &mut Merger) -> Result<(), StoreError> {
    let mut statement = store.db.prepare(
        "SELECT e.side, e.key, e.seq FROM events e WHERE e.session = ?1 AND NOT EXISTS \
         (SELECT 1 FROM confirmations c WHERE c.sprite = e.sprite AND c.seq = e.seq) ORDER BY e.seq",
    )?;
    let mut rows = statement.query([session.0])?;
    while let Some(row) = rows.next()? {
        let side =
            if row.get_ref(0)?.as_str().is_ok_and(|side| side == "stdout") { Side::Stdout } else { Side::Outbox };
        merger.recall(side, EventKey(row.get(1)?), row.get(2)?);
    }
    Ok(())
}

fn insert_event(
    batch: &Transaction<'_>,
    sprite: SpriteKey,
    session: SessionKey,
    new: &Arrival,
) -> Result<(), StoreError> {
    let kind = new.event.kind;
    batch
        .prepare_cached(
            "INSERT INTO events (sprite, session, seq, kind, side, key, json) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![sprite.0, session.0, new.seq, kind.as_str(), new.side.as_str(), new.key.0, new.masked])?;
    match kind {
        EventType::Artifact => insert_artifact(batch, sprite, new),
        EventType::PhaseStarted => {
            let phase = new.event.text("phase");
            batch.execute("UPDATE sprites SET phase = ?2 WHERE id = ?1", params![sprite.0, phase])?;
            Ok(())
        }
        EventType::Info
        | EventType::PhaseFinished
        | EventType::ActionRequest
        | EventType::Waiting
        | EventType::Completed
        | EventType::Error
        | EventType::EnvironmentProposal => Ok(()),
    }
}

fn insert_artifact(batch: &Transaction<'_>, sprite: SpriteKey, new: &Arrival) -> Result<(), StoreError> {
    // What is stored twice is masked twice.
    let masked: Value = serde_json::from_str(&new.masked).unwrap_or_default();
    let payload = &masked["payload"];
    let text = |name: &str| match &payload[name] {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let metadata = payload.get("metadata").map(Value::to_string);
    batch.execute(
        "INSERT INTO artifacts (sprite, seq, kind, ref, url, metadata) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![sprite.0, new.seq, text("kind"), text("ref"), text("url"), metadata],
    )?;
    Ok(())
}

fn insert_finding(
    batch: &Transaction<'_>,
    sprite: SpriteKey,
    session: Option<SessionKey>,
    placed: &Placed,
    at: &str,
) -> Result<(), StoreError> {
    let Finding { rule, detail } = &placed.finding;
    batch
        .prepare_cached(
            "INSERT INTO violations (sprite, session, seq, side, line, rule, weight, detail, at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            sprite.0,
            session.map(|session| session.0),
            placed.seq,
            placed.side.map(Side::as_str),
            placed.line,
            rule.as_str(),
            rule.weight().as_str(),
            crate::protocol::Secrets::default().mask(detail),
            at
        ])?;
    Ok(())
}
