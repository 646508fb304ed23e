//! `sync`: brings the repository up to date with its remote.

use std::collections::BTreeSet;

use clap::Args;
use lattice_engine::{Outcome, RestackFirst, SyncOptions};
use lattice_model::name::BranchName;

use crate::app::{App, Interaction};
use crate::cli::Preview;
use crate::commands::change::mode;
use crate::commands::hosted;
use crate::error::Failure;
use crate::output::Reply;
use crate::output::documents::KeptDocument;
use crate::prompt;

/// Fetch, move the trunk forward, find what landed, and restack the rest
///
/// What landed is found by its content, however it was merged. Nothing is deleted that is not in the trunk.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Leave branches where they are
    #[arg(long)]
    no_restack: bool,
    /// Delete landed branches without asking
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    preview: Preview,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let restack = if arguments.no_restack { RestackFirst::No } else { RestackFirst::Yes };
    let choose = |landed: &[BranchName]| match (arguments.force, app.interaction) {
        (true, _) => landed.iter().cloned().collect(),
        (false, Interaction::Allowed) => landed.iter().filter(|branch| asked(branch)).cloned().collect(),
        (false, Interaction::Never) => BTreeSet::new(),
    };
    let options = SyncOptions { restack, hooks: app.hooks };
    let synced = app.engine()?.sync(&mode(app, arguments.preview), options, choose)?;
    let pulls: Vec<_> = synced.pulls.values().collect();
    let mut text = String::new();
    let mut last = None;
    let mut kept = Vec::new();
    for outcome in synced.outcomes {
        if let Outcome::Done { plan, .. } | Outcome::Nothing { plan } = &outcome {
            kept.extend(KeptDocument::all(plan));
        }
        let fetched = matches!(&outcome, Outcome::Done { plan, refs, .. } if refs.is_empty() && !plan.is_empty());
        let reply = hosted::reply("sync", outcome, pulls.clone(), &synced.landed)?;
        if !fetched {
            text.push_str(&reply.text);
        }
        last = Some(reply);
    }
    let reply = last.ok_or_else(|| Failure::new("nothing", "nothing was done"))?;
    let mut reply = reply.with_field("kept", serde_json::to_value(kept).unwrap_or_default());
    reply.notes.clear();
    if arguments.preview.dry_run {
        return Ok(reply.text(text).note("this was a dry run: nothing was fetched or changed"));
    }
    for branch in &synced.landed {
        reply = reply.note(format!("{branch} has landed and is still here; lattice sync --force deletes it"));
    }
    if text.is_empty() {
        text.push_str("up to date\n");
    }
    Ok(reply.text(text).story())
}

fn asked(branch: &BranchName) -> bool {
    prompt::agree(&format!("{branch} has landed. Delete it?"))
}
