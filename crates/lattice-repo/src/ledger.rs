//! The ledger: appends events and reads them. Evidence, never authority.

use std::collections::{BTreeMap, BTreeSet};

use lattice_model::event::{Category, Detail, Event, Origin, RefChange};
use lattice_model::id::{Fingerprint, Oid, OpId};
use lattice_model::name::RefName;
use lattice_model::plan::Expected;
use lattice_model::snapshot::{LedgerReading, Snapshot};
use lattice_model::time::Timestamp;

use crate::Repo;
use crate::format;
use crate::git::GitError;
use crate::git::transaction::{RefEdit, Target};

pub(crate) const LEDGER: &str = "refs/lattice/event-log";

/// How often a divergence may be reported anew before the oldest report is forgotten.
const OBSERVED_LIMIT: usize = 16;

/// How often others may be faster before evidence is given up.
const EVIDENCE_ATTEMPTS: usize = 5;

/// How many records are looked through for a branch that is gone.
const LOOK_BACK: usize = 1000;

/// An event with the commit that holds it; `Err` says why a record cannot be read.
pub type LedgerEntry = (Oid, Result<Event, String>);

/// What a new event carries that the chain does not determine.
#[derive(Clone)]
pub(crate) struct NewEvent {
    pub(crate) category: Category,
    pub(crate) op: OpId,
    pub(crate) command: String,
    pub(crate) origin: Origin,
    pub(crate) at: Timestamp,
    pub(crate) refs: Vec<RefChange>,
    pub(crate) before: Fingerprint,
    pub(crate) after: Option<Fingerprint>,
    pub(crate) plan: Option<lattice_model::id::ContentDigest>,
    pub(crate) detail: Detail,
}

pub(crate) fn ledger_ref() -> RefName {
    RefName::new(LEDGER).expect("a constant name")
}

impl NewEvent {
    /// An event that was made for another place in the chain.
    pub(crate) fn again(event: &Event) -> Self {
        Self {
            category: event.category,
            op: event.op.clone(),
            command: event.command.clone(),
            origin: event.origin.clone(),
            at: event.at.clone(),
            refs: event.refs.clone(),
            before: event.before.clone(),
            after: event.after.clone(),
            plan: event.plan.clone(),
            detail: event.detail.clone(),
        }
    }

    /// The event as it follows the newest one.
    pub(crate) fn following(self, last: Option<&Event>) -> Event {
        let mut committed = last.and_then(|last| last.committed.clone());
        let mut observed = last.map(|last| last.observed.clone()).unwrap_or_default();
        match self.category {
            Category::Committed | Category::DoctorApplied => {
                committed = self.after.clone();
                observed.clear();
            }
            Category::DivergenceObserved => {
                observed.extend(self.after.clone());
                if observed.len() > OBSERVED_LIMIT {
                    observed.remove(0);
                }
            }
            Category::IntentRecorded | Category::Aborted | Category::DoctorProposed => {}
        }
        Event {
            seq: last.map_or(1, |last| last.seq + 1),
            category: self.category,
            op: self.op,
            command: self.command,
            origin: self.origin,
            at: self.at,
            refs: self.refs,
            before: self.before,
            after: self.after,
            committed,
            observed,
            plan: self.plan,
            detail: self.detail,
        }
    }
}

/// What the ref of the ledger points to, whatever that is.
pub(crate) fn tip_of(reading: &LedgerReading) -> Option<Oid> {
    match reading {
        LedgerReading::Absent => None,
        LedgerReading::Tip { commit, .. } | LedgerReading::Damaged { commit, .. } => Some(*commit),
    }
}

/// What a new record stands on.
pub(crate) fn below_next(reading: &LedgerReading) -> Option<Oid> {
    match reading {
        LedgerReading::Absent => None,
        LedgerReading::Tip { commit, .. } => Some(*commit),
        LedgerReading::Damaged { below, .. } => *below,
    }
}

/// The newest event of a reading.
pub(crate) fn last_event(reading: &LedgerReading) -> Option<&Event> {
    match reading {
        LedgerReading::Tip { event, .. } => Some(event),
        LedgerReading::Absent | LedgerReading::Damaged { .. } => None,
    }
}

impl Repo {
    /// Records that the repository was changed outside of Lattice, once per state. Needs no lock.
    pub fn record_divergence(
        &self,
        snapshot: &Snapshot,
        command: &str,
        op: OpId,
        now: &Timestamp,
    ) -> Result<(), GitError> {
        let Some(divergence) = &snapshot.divergence else { return Ok(()) };
        // Whoever was faster saw the same, or has settled it with an operation.
        let due = |tip: &LedgerReading| match tip {
            LedgerReading::Tip { event, .. } => {
                event.committed.as_ref() == Some(&divergence.prior) && !event.observed.contains(&divergence.current)
            }
            LedgerReading::Absent | LedgerReading::Damaged { .. } => false,
        };
        self.append_while(
            due,
            &snapshot.ledger,
            NewEvent {
                category: Category::DivergenceObserved,
                op,
                command: command.to_owned(),
                origin: Origin::User,
                at: now.clone(),
                refs: divergence.changes.clone(),
                before: divergence.prior.clone(),
                after: Some(divergence.current.clone()),
                plan: None,
                detail: Detail::default(),
            },
        )
    }

    /// Records which fixes doctor offered, unless the newest event says so already.
    pub fn record_proposal(
        &self,
        snapshot: &Snapshot,
        detail: Detail,
        op: OpId,
        now: &Timestamp,
    ) -> Result<(), GitError> {
        let repeats = |last: &Event| last.category == Category::DoctorProposed && last.detail == detail;
        let due = |tip: &LedgerReading| match tip {
            LedgerReading::Absent => true,
            LedgerReading::Tip { event, .. } => !repeats(event),
            // A record on top of a damaged one would hide the damage.
            LedgerReading::Damaged { .. } => false,
        };
        self.append_while(
            due,
            &snapshot.ledger,
            NewEvent {
                category: Category::DoctorProposed,
                op,
                command: "doctor".to_owned(),
                origin: Origin::Doctor,
                at: now.clone(),
                refs: Vec::new(),
                before: snapshot.fingerprint.clone(),
                after: None,
                plan: None,
                detail: detail.clone(),
            },
        )
    }

    /// Appends one event after whatever others append meanwhile, as long as it is `due` there.
    pub(crate) fn append_while(
        &self,
        due: impl Fn(&LedgerReading) -> bool,
        tip: &LedgerReading,
        event: NewEvent,
    ) -> Result<(), GitError> {
        let mut tip = tip.clone();
        let mut unmoved = 0;
        for attempt in 1.. {
            if !due(&tip) {
                return Ok(());
            }
            let Err(error) = self.append(&tip, event.clone()) else { return Ok(()) };
            let now = self.ledger_tip()?;
            // Who holds the lock for long may still be about to write; who never does is no rival.
            unmoved = if tip_of(&now) == tip_of(&tip) { unmoved + 1 } else { 0 };
            if unmoved > 1 || attempt == EVIDENCE_ATTEMPTS || error.is_of_the_disk() {
                return Err(error);
            }
            tip = now;
        }
        Ok(())
    }

    /// Appends one event to the tip that was read.
    pub(crate) fn append(&self, tip: &LedgerReading, event: NewEvent) -> Result<(), GitError> {
        self.append_with_tree(tip, None, event)
    }

    /// As `append`, with a tree of its own instead of that of the event before.
    pub(crate) fn append_with_tree(
        &self,
        tip: &LedgerReading,
        tree: Option<Oid>,
        event: NewEvent,
    ) -> Result<(), GitError> {
        let event = event.following(last_event(tip));
        let (parent, inherited) = match tip {
            LedgerReading::Absent => (None, None),
            LedgerReading::Tip { commit, tree, .. } => (Some(*commit), Some(*tree)),
            LedgerReading::Damaged { below, .. } => (*below, None),
        };
        let tree = match tree.or(inherited) {
            Some(tree) => tree,
            None => self.git.empty_tree()?,
        };
        let who = format!("Lattice <lattice@localhost> {} +0000", event.at.unix_seconds());
        let parents = parent.map(|parent| format!("parent {parent}\n")).unwrap_or_default();
        let message = format::event::render(&event);
        let content = format!("tree {tree}\n{parents}author {who}\ncommitter {who}\n\n{message}");
        let commit = self.git.write_commit(content.into_bytes())?;
        let expected = Expected::from_option(tip_of(tip));
        let edit = RefEdit { name: ledger_ref(), expected, to: Target::Set(commit) };
        self.git.update_refs(&[edit], "lattice: evidence", &self.paths)
    }

    /// The tip as it is now.
    pub(crate) fn ledger_tip(&self) -> Result<LedgerReading, GitError> {
        let listing = self.git.list_refs(&[LEDGER])?;
        self.read_ledger_tip(listing.refs.first().map(|listed| listed.oid))
    }

    /// The events, newest first, at most `limit` of them.
    pub fn events(&self, limit: Option<usize>) -> Result<Vec<LedgerEntry>, GitError> {
        let listing = self.git.list_refs(&[LEDGER])?;
        let Some(tip) = listing.refs.first().map(|listed| listed.oid) else { return Ok(Vec::new()) };
        match self.git.messages(tip, limit) {
            Ok(records) if !records.is_empty() => {
                Ok(records.into_iter().map(|record| entry(record.commit, record.parents, &record.message)).collect())
            }
            // Git has nothing to say of what is no commit, and fails where an object is missing.
            Ok(_) | Err(_) => self.events_one_by_one(tip, limit),
        }
    }

    /// Where the ledger last saw these branches, with the record that says it.
    pub(crate) fn last_seen(
        &self,
        tip: Oid,
        mut wanted: BTreeSet<RefName>,
    ) -> Result<BTreeMap<RefName, (Oid, Oid)>, GitError> {
        let mut seen = BTreeMap::new();
        for (commit, event) in self.events_one_by_one(tip, Some(LOOK_BACK))? {
            // What was only intended may never have been.
            let happened = |event: &Event| matches!(event.category, Category::Committed | Category::DivergenceObserved);
            for change in event.ok().filter(happened).map(|event| event.refs).unwrap_or_default() {
                let value = change.new.or(change.old);
                if let Some(value) = value.filter(|_| wanted.remove(&change.name)) {
                    seen.insert(change.name, (commit, value));
                }
            }
        }
        Ok(seen)
    }

    /// The events down to the first record that is not there, and a word on that one.
    fn events_one_by_one(&self, tip: Oid, limit: Option<usize>) -> Result<Vec<LedgerEntry>, GitError> {
        let mut entries = Vec::new();
        let mut next = Some(tip);
        while let Some(commit) = next.filter(|_| limit.is_none_or(|limit| entries.len() < limit)) {
            match self.read_record(commit)? {
                Ok(raw) => {
                    entries.push(entry(commit, raw.parents.len(), &raw.message));
                    next = raw.parents.first().copied();
                }
                Err(reason) => {
                    entries.push((commit, Err(reason.to_owned())));
                    next = None;
                }
            }
        }
        Ok(entries)
    }
}

fn entry(commit: Oid, parents: usize, message: &[u8]) -> LedgerEntry {
    let event = match parents {
        0 | 1 => format::event::parse(message).map_err(|error| error.to_string()),
        _ => Err("it is a merge".to_owned()),
    };
    (commit, event)
}
