//! `context session`: save a session, and go on from it in another process.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use lattice_context::session::{ContextCheckpoint, SessionError, SessionRecord, SessionState};
use lattice_context::tokens::Tokenizer;
use lattice_context::workspace::Workspace;
use serde_json::json;

use super::{ResultDocument, bare, read_json, workspace};
use crate::app::App;
use crate::commands::sprite;
use crate::error::Failure;
use crate::output::{Reply, printable};

/// Save, restore and list session records
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where the records are; the repository's own folder if absent
    #[arg(long, global = true, value_name = "DIR")]
    storage_dir: Option<PathBuf>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Store a state
    Save {
        id: String,
        /// JSON with task_type, user_request, context, artifacts; `-` reads stdin
        #[arg(long, default_value = "-", value_name = "FILE")]
        from: PathBuf,
        /// The state of the session, such as running or completed
        #[arg(long)]
        state: Option<String>,
    },
    /// Print a record as JSON
    Restore {
        /// The id of a session, or of a sprite's checkpoint
        id: String,
    },
    /// List the ids
    List,
    /// Print a record in short
    Show { id: String },
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let workspace = workspace(app, Tokenizer::Estimate)?;
    let sessions = ContextCheckpoint::new(storage(app, &workspace, arguments.storage_dir.as_ref()));
    match &arguments.action {
        Action::Save { id, from, state } => {
            let mut saved: SessionState = read_json(app, from)?;
            if let Some(state) = state {
                saved.state.clone_from(state);
            }
            let record = sessions.save(id, saved, app.now.clone()).map_err(failure)?;
            let text = format!("saved session {}\n", record.session_id);
            Ok(Reply::named("context-session", ResultDocument { result: json!(record) }, text).story())
        }
        Action::Restore { id } => Ok(bare(app, "context-session", &stored(app, &sessions, id)?)),
        Action::List => {
            let ids = sessions.list();
            let text: String = ids.iter().map(|id| format!("{id}\n")).collect();
            Ok(Reply::named("context-session", ResultDocument { result: json!(ids) }, text))
        }
        Action::Show { id } => {
            let record = stored(app, &sessions, id)?;
            let summary = &record.context_summary;
            let text = format!(
                "{}\n  saved    {}\n  task     {}\n  state    {}\n  request  {}\n  context  {} chunks, {} tokens ({:.1}%)\n  turns    {}\n",
                record.session_id,
                record.timestamp,
                record.task_type,
                printable(&record.state),
                printable(&record.user_request),
                summary.chunks_included,
                summary.tokens_used,
                summary.utilization * 100.0,
                record.conversation_history.len()
            );
            Ok(Reply::named("context-session", ResultDocument { result: json!(record) }, text))
        }
    }
}

/// A record by its id, or by the id of a sprite's checkpoint that it belongs to.
fn stored(app: &App, sessions: &ContextCheckpoint, id: &str) -> Result<SessionRecord, Failure> {
    match sessions.restore(id) {
        Err(unknown @ SessionError::Unknown { .. }) => match sprite::session_of(app, id)? {
            Some((folder, id)) => ContextCheckpoint::new(folder).restore(&id).map_err(failure),
            None => Err(failure(unknown)),
        },
        found => found.map_err(failure),
    }
}

/// Where records are kept: as told, else beside the repository's own state, else in the user's cache.
pub(super) fn storage(app: &App, workspace: &Workspace, told: Option<&PathBuf>) -> PathBuf {
    match (told, workspace.reader(), workspace.cache_dir()) {
        (Some(folder), _, _) => app.directory.join(folder),
        (None, Some(reader), _) => reader.sessions_dir(),
        (None, None, Some(cache)) => cache.join("sessions"),
        (None, None, None) => workspace.root().join(".lattice").join("sessions"),
    }
}

pub(super) fn failure(error: SessionError) -> Failure {
    let text = error.to_string();
    match error {
        SessionError::Id(_) => Failure::new("invalid-session-id", text),
        SessionError::Unknown { .. } => Failure::new("no-such-session", text).hint("lattice context session list"),
        SessionError::Damaged { source, .. } => Failure::new("damaged-session", format!("{text}: {source}"))
            .hint("move the file away and save the session again"),
        SessionError::Read { source, .. } => Failure::new("unreadable", format!("{text}: {source}")),
        SessionError::Write { source, .. } => Failure::new("io", format!("{text}: {source}")),
    }
}
