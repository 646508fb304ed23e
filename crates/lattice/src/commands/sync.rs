//! `sync`: brings the repository up to date with its remote.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use lattice_engine::{Outcome, RestackFirst, SyncOptions};
use lattice_model::command::sync;
use lattice_model::name::BranchName;

use crate::app::{App, Interaction};
use crate::cli::Preview;
use crate::commands::change::mode;
use crate::commands::hosted;
use crate::error::{Code, Failure};
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
    let synced = app.engine()?.sync(&mode(app, arguments.preview), options, choose);
    let pulls = hosted::lowest_first(&synced.pulls);
    let (mut text, mut done) = (String::new(), String::new());
    let mut last = None;
    let mut kept = Vec::new();
    for outcome in synced.outcomes {
        if let Outcome::Done { plan, .. } | Outcome::Nothing { plan } = &outcome {
            kept.extend(KeptDocument::all(plan));
        }
        let fetched = hosted::only_fetched(&outcome);
        let is_done = matches!(outcome, Outcome::Done { .. }) && !fetched;
        let reply = hosted::reply("sync", outcome, pulls.clone(), &synced.landed);
        let reply = reply.map_err(|failure| done_before(failure, &done))?;
        if !fetched {
            text.push_str(&reply.text);
        }
        if is_done {
            done.push_str(&reply.text);
        }
        last = Some(reply);
    }
    synced.end.map_err(|error| done_before(error.into(), &done))?;
    let reply = last.ok_or_else(|| Failure::new("nothing", "nothing was done"))?;
    let stays: BTreeMap<_, _> = kept.iter().map(|kept| (kept.branch.clone(), kept.reason.clone())).collect();
    let theirs: Vec<_> = synced.theirs.iter().map(ToString::to_string).collect();
    let mut reply = reply
        .with_field("kept", serde_json::to_value(kept).unwrap_or_default())
        .with_field("theirs", serde_json::json!(theirs));
    reply.notes.clear();
    if arguments.preview.dry_run {
        return Ok(reply
            .text(text)
            .note("this was a dry run: nothing was fetched, and only that would say what else there is to do"));
    }
    for branch in &synced.landed {
        let way = match stays.get(branch.as_str()).map(String::as_str) {
            Some(sync::ELSEWHERE) => "it is checked out in another worktree",
            Some(sync::NOWHERE_TO_GO) => {
                "it is checked out here, and the trunk elsewhere: git switch --detach, then lattice sync --force"
            }
            Some(_) | None => "lattice sync --force deletes it",
        };
        reply = reply.note(format!("{branch} has landed and is still here; {way}"));
    }
    for branch in &synced.theirs {
        let get = format!("lattice get {} takes them in, unless you have others there", branch.word());
        reply = reply.note(format!("{branch} has commits on the remote that were never here; {get}"));
    }
    if text.is_empty() && synced.theirs.is_empty() {
        text.push_str("up to date\n");
    }
    Ok(reply.text(text).story())
}

/// Each part is an operation of its own: what was done before the one that stopped stays done.
fn done_before(failure: Failure, done: &str) -> Failure {
    if done.is_empty() {
        return failure;
    }
    let failure = failure.after(done);
    match failure.code {
        Code::Paused => failure.hint("lattice undo, after an abort, takes back what was done before"),
        _ => failure.hint("lattice undo takes back what was done before"),
    }
}

fn asked(branch: &BranchName) -> bool {
    prompt::agree(&format!("{branch} has landed. Delete it?"))
}
