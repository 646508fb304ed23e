//! `sprite`: look at sprites and manage them.

mod documents;
mod ingest;
mod look;
mod manage;
pub(crate) mod resume;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use lattice_sprites::run::{recover, supervisor};
use lattice_sprites::store::{SpriteState, Store, StoreError};

use crate::app::App;
use crate::error::Failure;
use crate::output::Reply;

pub(crate) use documents::{
    SpriteArtifactsDocument, SpriteDiffDocument, SpriteEventsDocument, SpriteGcDocument, SpriteIngestDocument,
    SpriteListDocument, SpriteLogsDocument, SpriteManageDocument, SpriteShowDocument,
};

/// Look at sprites and manage them
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: SpriteCommand,
}

#[derive(Debug, Subcommand)]
enum SpriteCommand {
    /// List all sprites of this repository
    List,
    /// Show one sprite: state, phase, checkpoints, what was against the protocol
    Show {
        /// The sprite
        id: String,
        /// Print events as they come until the sprite is over, and then show it
        #[arg(long)]
        follow: bool,
    },
    /// Print the events of a sprite
    Events {
        /// The sprite
        id: String,
        /// Go on until the sprite is over; with --json, one object per line
        #[arg(long)]
        follow: bool,
    },
    /// List what a sprite declared to have made
    Artifacts {
        /// The sprite
        id: String,
    },
    /// Print what the agent printed
    Logs {
        /// The sprite
        id: String,
    },
    /// List files that the sprite changed, since its base or since a checkpoint
    Diff {
        /// The sprite
        id: String,
        /// The checkpoint to compare with
        #[arg(long, value_name = "CHK")]
        since: Option<String>,
    },
    /// Freeze the files of a running sprite and print the id of the checkpoint
    Checkpoint {
        /// The sprite
        id: String,
    },
    /// Put the files of a sprite that does not run back to a checkpoint
    Restore {
        /// The sprite
        id: String,
        /// The checkpoint
        checkpoint: String,
    },
    /// End a running sprite; its commits are landed
    Stop {
        /// The sprite
        id: String,
    },
    /// Remove the files of a sprite that does not run; its events stay
    Destroy {
        /// The sprite
        id: String,
        /// Also if it has work that is on no branch of yours; says what that is
        #[arg(long)]
        force: bool,
    },
    /// Remove files that no sprite needs: of sprites that are over and landed, and of checkouts without sprites
    Gc {
        #[command(flatten)]
        preview: crate::cli::Preview,
    },
    /// Start a sprite that was made with `run --detach`
    #[command(hide = true)]
    Begin {
        /// The sprite
        id: String,
    },
    /// Inside a sprite: say whether the answer in resume.json was processed before
    ResumeCheck,
    /// Read a recorded session; print events and violations
    Ingest(ingest::Arguments),
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    match &arguments.command {
        SpriteCommand::List => look::list(app),
        SpriteCommand::Show { id, follow: false } => look::show(app, id),
        SpriteCommand::Show { id, follow: true } => look::show_followed(app, id),
        SpriteCommand::Events { id, follow: true } => look::follow(app, id),
        SpriteCommand::Events { id, follow: false } => look::events(app, id),
        SpriteCommand::Artifacts { id } => look::artifacts(app, id),
        SpriteCommand::Logs { id } => look::logs(app, id),
        SpriteCommand::Diff { id, since } => look::diff(app, id, since.as_deref()),
        SpriteCommand::Checkpoint { id } => manage::checkpoint(app, id),
        SpriteCommand::Restore { id, checkpoint } => manage::restore(app, id, checkpoint),
        SpriteCommand::Stop { id } => manage::stop(app, id),
        SpriteCommand::Destroy { id, force } => {
            manage::destroy(app, id, if *force { Unlanded::Drop } else { Unlanded::Refuse })
        }
        SpriteCommand::Gc { preview } => manage::gc(app, *preview),
        SpriteCommand::Begin { id } => super::run::run_begin(app, id),
        SpriteCommand::ResumeCheck => resume::check(app),
        SpriteCommand::Ingest(arguments) => ingest::run(arguments),
    }
}

pub(crate) use look::{event_line, interrupted};
pub(crate) use manage::place;

/// An event that was not read from the store.
pub(crate) fn document(seq: u64, source: &str, envelope: serde_json::Value) -> documents::EventDocument {
    documents::EventDocument { seq, source: source.to_owned(), envelope }
}

/// What happens to work that is on no branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unlanded {
    Refuse,
    Drop,
}

/// Where the session record of a checkpoint is, by the id of either, and its own id.
pub(crate) fn session_of(app: &App, id: &str) -> Result<Option<(PathBuf, String)>, Failure> {
    let mark = id.strip_prefix("chk_").or_else(|| id.strip_prefix("session_"));
    let (Some(mark), Ok(_)) = (mark, app.engine()) else { return Ok(None) };
    let Some(store) = store(app)? else { return Ok(None) };
    let checkpoint = format!("chk_{mark}");
    let Some(name) = store.sprite_of_checkpoint(&checkpoint)? else { return Ok(None) };
    let folder = place(app, &store.sprite(&name)?)?.sessions();
    Ok(Some((folder, lattice_sprites::run::session_id(&checkpoint))))
}

/// The store of the repository, to look. A sprite whose supervisor is gone is found here.
pub(crate) fn store(app: &App) -> Result<Option<Store>, Failure> {
    let engine = app.engine()?;
    let common = &engine.repository().common_dir;
    let Some(mut store) = Store::look(&lattice_sprites::store_path(common))? else { return Ok(None) };
    for sprite in store.sprites()? {
        if sprite.state == SpriteState::Running && supervisor(&sprite).is_none() {
            let place = super::run::place(app, &sprite)?;
            recover(&place, &sprite, &mut store, app.now.as_str())?;
            store.set_state(sprite.key, SpriteState::Interrupted, Some("its supervisor is gone"), app.now.as_str())?;
        }
    }
    Ok(Some(store))
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        match error {
            StoreError::NoSuchSprite { .. } => Self::new("no-such-sprite", text).hint("lattice sprite list"),
            StoreError::NoSuchAction(_) => Self::new("no-such-action", text).hint("lattice approvals"),
            StoreError::NoSuchProposal(_) => Self::new("no-such-proposal", text).hint("lattice proposals"),
            StoreError::NameTaken(_) => Self::new("name-taken", text).hint("choose another: --name ID"),
            StoreError::TooNew { .. } => Self::new("store-too-new", text).hint("install a newer lattice"),
            StoreError::Database(source) => Self::new("store", format!("{text}: {source}")),
            StoreError::Outbox(source) => Self::new("store", format!("{text}: {source}")),
            StoreError::Damaged(_) => Self::new("store", text),
        }
    }
}
