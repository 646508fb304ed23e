//! `sprite ingest`: read a recorded session.

use std::path::{Path, PathBuf};

use clap::Args;
use lattice_sprites::ingest::{Transcript, ingest};
use lattice_sprites::merge::{Identity, Placed, Side};

use super::documents::{EventDocument, SpriteIngestDocument, ViolationDocument};
use super::look::event_line;
use crate::error::Failure;
use crate::output::{Reply, printable};

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("sides").required(true).multiple(true).args(["stdout", "outbox"]))]
pub(super) struct Arguments {
    /// What the agent printed
    #[arg(long, value_name = "FILE")]
    stdout: Option<PathBuf>,
    /// The agent's outbox
    #[arg(long, value_name = "FILE")]
    outbox: Option<PathBuf>,
    /// The sprite that it was; events of others are refused
    #[arg(long, requires = "work_item")]
    sprite: Option<String>,
    /// The work item that it had
    #[arg(long, requires = "sprite")]
    work_item: Option<String>,
}

pub(super) fn run(arguments: &Arguments) -> Result<Reply, Failure> {
    let read = |path: &Option<PathBuf>| path.as_deref().map(contents).transpose();
    let (stdout, outbox) = (read(&arguments.stdout)?, read(&arguments.outbox)?);
    let identity = arguments.sprite.clone().zip(arguments.work_item.clone());
    let identity = identity.map(|(sprite_id, work_item_id)| Identity { sprite_id, work_item_id });
    let recording = ingest(Transcript { stdout: stdout.as_deref(), outbox: outbox.as_deref() }, identity);
    let mut text = String::new();
    let mut events = Vec::new();
    for recorded in recording.events {
        let source = recorded.side.map_or("both", Side::as_str).to_owned();
        let envelope = serde_json::from_str(&recorded.masked).unwrap_or_default();
        let event = EventDocument { seq: recorded.seq, source, envelope };
        text.push_str(&event_line(&event));
        events.push(event);
    }
    let violations: Vec<_> = recording.findings.into_iter().map(document).collect();
    for violation in &violations {
        let place = match (&violation.source, violation.line, violation.seq) {
            (Some(side), Some(line), _) => format!(" ({side}, line {line})"),
            (_, None, Some(seq)) => format!(" (event {seq})"),
            (Some(_) | None, ..) => String::new(),
        };
        text.push_str(&format!("{} {}: {}{place}\n", violation.weight, violation.rule, printable(&violation.detail)));
    }
    Ok(Reply::new(SpriteIngestDocument { events, violations }, text))
}

fn document(placed: Placed) -> ViolationDocument {
    ViolationDocument {
        rule: placed.finding.rule.as_str().to_owned(),
        weight: placed.finding.rule.weight().as_str().to_owned(),
        detail: placed.finding.detail,
        seq: placed.seq,
        source: placed.side.map(|side| side.as_str().to_owned()),
        line: placed.line,
    }
}

fn contents(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::new("io", format!("{} cannot be read: {error}", path.display())))
}
