//! `create`: a new branch on the current one.

use std::cell::Cell;

use clap::Args;
use lattice_engine::WorkingCopyNeed;
use lattice_model::command::create::{Create, Pending, PlaceInStack, name_from_message, pending};
use lattice_model::name::BranchName;
use lattice_model::plan::StageMode;
use lattice_model::snapshot::Snapshot;

use crate::app::{App, Interaction};
use crate::cli::Preview;
use crate::commands::branch;
use crate::commands::change::{change, previews};
use crate::error::Failure;
use crate::output::Reply;
use crate::prompt;

/// Create a branch on the current one, with what is staged as its first commit
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The name; without it, one is made from the message
    #[arg(value_parser = branch)]
    name: Option<BranchName>,
    /// The message of the commit
    #[arg(short, long)]
    message: Option<String>,
    #[command(flatten)]
    stage: Staging,
    /// Put it between the current branch and those that stand on it
    #[arg(long)]
    insert: bool,
    #[command(flatten)]
    preview: Preview,
}

/// What to stage first.
#[derive(Debug, Clone, Copy, Args)]
#[group(multiple = false)]
pub(crate) struct Staging {
    /// Stage all changes, new files included
    #[arg(short, long)]
    all: bool,
    /// Stage changes of tracked files
    #[arg(short, long)]
    update: bool,
    /// Pick hunks to stage on the terminal
    #[arg(short, long)]
    patch: bool,
}

impl Staging {
    pub(crate) fn mode(self, app: &App) -> Result<Option<StageMode>, Failure> {
        match self {
            Self { all: true, .. } => Ok(Some(StageMode::All)),
            Self { update: true, .. } => Ok(Some(StageMode::Tracked)),
            Self { patch: true, .. } if app.interaction == Interaction::Never => {
                Err(Failure::usage("--patch needs a terminal").hint("stage with git add, or use --all or --update"))
            }
            Self { patch: true, .. } => Ok(Some(StageMode::Patch)),
            Self { .. } => Ok(None),
        }
    }
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let stage = arguments.stage.mode(app)?;
    let mut message = arguments.message.clone();
    if message.is_none() && !previews(app, arguments.preview) {
        message = ask(app, stage)?;
    }
    if message.as_deref().is_some_and(|message| message.trim().is_empty()) {
        return Err(Failure::usage("the message is empty"));
    }
    if arguments.name.is_none() && message.is_none() {
        return Err(Failure::usage("a name is needed").hint("lattice create <name>, or -m <message> to make one from"));
    }
    let place = if arguments.insert { PlaceInStack::Between } else { PlaceInStack::OnTop };
    let is_empty = Cell::new(false);
    let build = |_: &_, snapshot: &Snapshot| {
        is_empty.set(pending(snapshot, stage) == Pending::Nothing);
        let name = match (&arguments.name, &message) {
            (Some(name), _) => name.clone(),
            (None, message) => {
                let date = &app.now.as_str()[..10];
                name_from_message(message.as_deref().unwrap_or_default(), &snapshot.settings.branch_template, date)?
            }
        };
        Ok(Create { name, message: message.clone(), stage, place, hooks: app.hooks })
    };
    let reply = change(app, ("create", arguments.preview), WorkingCopyNeed::Yes, build)?;
    let expected = arguments.message.is_some() || stage.is_some();
    Ok(if is_empty.get() && expected {
        reply.note("nothing is staged, so the branch has no commit yet")
    } else {
        reply
    })
}

/// Opens an editor for the message where one is needed and a person is there.
fn ask(app: &App, stage: Option<StageMode>) -> Result<Option<String>, Failure> {
    if app.interaction == Interaction::Never {
        return Ok(None);
    }
    let engine = app.engine()?;
    let snapshot = engine.observe("create", WorkingCopyNeed::Yes)?.snapshot;
    if pending(&snapshot, stage) == Pending::Nothing {
        return Ok(None);
    }
    let file = engine.draft("COMMIT_EDITMSG");
    prompt::edit(app, &file, "\n# The message of the new branch's first commit.\n").map(Some)
}
