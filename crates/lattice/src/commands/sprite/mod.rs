//! `sprite`: look at sprites and manage them.

mod documents;
mod ingest;
mod look;

use clap::{Args, Subcommand};
use lattice_sprites::store::{Store, StoreError};

use crate::app::App;
use crate::error::Failure;
use crate::output::Reply;

pub(crate) use documents::{
    SpriteArtifactsDocument, SpriteEventsDocument, SpriteIngestDocument, SpriteListDocument, SpriteShowDocument,
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
        /// Go on until the sprite is over, and print events as they come
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
    /// Read a recorded session; print events and violations
    Ingest(ingest::Arguments),
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    match &arguments.command {
        SpriteCommand::List => look::list(app),
        SpriteCommand::Show { id, follow: false } => look::show(app, id),
        SpriteCommand::Show { id, follow: true } | SpriteCommand::Events { id, follow: true } => look::follow(app, id),
        SpriteCommand::Events { id, follow: false } => look::events(app, id),
        SpriteCommand::Artifacts { id } => look::artifacts(app, id),
        SpriteCommand::Ingest(arguments) => ingest::run(arguments),
    }
}

pub(crate) use look::event_line;

/// An event that was not read from the store.
pub(crate) fn document(seq: u64, source: &str, envelope: serde_json::Value) -> documents::EventDocument {
    documents::EventDocument { seq, source: source.to_owned(), envelope }
}

/// The store of the repository, to look.
fn store(app: &App) -> Result<Option<Store>, Failure> {
    let engine = app.engine()?;
    Ok(Store::look(&lattice_sprites::store_path(&engine.repository().common_dir))?)
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        match error {
            StoreError::NoSuchSprite(_) => Self::new("no-such-sprite", text).hint("lattice sprite list"),
            StoreError::NameTaken(_) => Self::new("name-taken", text).hint("choose another: --name ID"),
            StoreError::TooNew { .. } => Self::new("store-too-new", text).hint("install a newer lattice"),
            StoreError::Database(source) => Self::new("store", format!("{text}: {source}")),
            StoreError::Outbox(source) => Self::new("store", format!("{text}: {source}")),
            StoreError::Damaged(_) => Self::new("store", text),
        }
    }
}
