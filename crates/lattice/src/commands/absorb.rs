//! `absorb`: gives staged hunks to the commits they belong to.

use std::cell::RefCell;

use clap::Args;
use lattice_engine::{Engine, WorkingCopyNeed};
use lattice_model::command::absorb::{Absorb, home};
use lattice_model::gate::Refusal;
use lattice_model::snapshot::Snapshot;

use crate::app::App;
use crate::cli::Preview;
use crate::commands::change::change;
use crate::error::Failure;
use crate::output::{Reply, printable};

/// Give each staged hunk to the commit of the stack that last touched its lines
///
/// What has no home stays staged and is listed: new files, lines from below the stack, and hunks whose
/// lines come from several commits.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    preview: Preview,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let left = RefCell::new(Vec::new());
    let build = |engine: &Engine, snapshot: &Snapshot| {
        let hunks = engine
            .staged_hunks(snapshot)
            .map_err(|error| Refusal::new("git-failed", format!("what is staged cannot be read: {error}")))?;
        if let Some(current) = snapshot.head.branch() {
            let homeless = hunks.iter().filter_map(|hunk| Some((hunk.place(), home(snapshot, current, hunk).err()?)));
            *left.borrow_mut() = homeless.collect();
        }
        Ok(Absorb { hunks, hooks: app.hooks })
    };
    let reply = change(app, ("absorb", arguments.preview), WorkingCopyNeed::Yes, build)?;
    let left = left.into_inner();
    Ok(left
        .into_iter()
        .fold(reply, |reply, (place, reason)| reply.note(format!("{} stays staged: {reason}", printable(&place)))))
}
