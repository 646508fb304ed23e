//! The commands: for each its request, what it requires, and its planner.

pub mod absorb;
pub mod config;
pub mod create;
pub mod delete;
pub mod fold;
pub mod freeze;
pub mod get;
mod host_stack;
pub mod init;
pub mod link;
pub mod merge;
pub mod modify;
pub mod navigate;
pub mod rename;
pub mod reorder;
pub mod reparent;
pub mod restack;
mod rewrite;
mod scope;
pub mod sprite;
pub mod squash;
pub mod submit;
pub mod sync;
pub mod track;
pub mod undo;

pub use rewrite::{draft_of, reparented};
pub use scope::check_new_name;
pub(crate) use scope::frozen;

use crate::capability::Capability;
use crate::gate::Command;

/// A command as the registry lists it: its name and what it requires.
pub type Registered = (&'static str, &'static [Capability]);

/// Every command that changes the repository, by the name that users type. What `run` does in the repository, and
/// fetching, are operations of their own that pass the same gate.
pub const REGISTRY: &[Registered] = &[
    (init::Init::NAME, init::Init::REQUIRES),
    (init::Reset::NAME, init::Reset::REQUIRES),
    (track::Track::NAME, track::Track::REQUIRES),
    (track::Untrack::NAME, track::Untrack::REQUIRES),
    (create::Create::NAME, create::Create::REQUIRES),
    (modify::Modify::NAME, modify::Modify::REQUIRES),
    (restack::Restack::NAME, restack::Restack::REQUIRES),
    (reparent::Move::NAME, reparent::Move::REQUIRES),
    (absorb::Absorb::NAME, absorb::Absorb::REQUIRES),
    (reorder::Reorder::NAME, reorder::Reorder::REQUIRES),
    (squash::Split::NAME, squash::Split::REQUIRES),
    (squash::Squash::NAME, squash::Squash::REQUIRES),
    (fold::Fold::NAME, fold::Fold::REQUIRES),
    (delete::Pop::NAME, delete::Pop::REQUIRES),
    (delete::Delete::NAME, delete::Delete::REQUIRES),
    (rename::Rename::NAME, rename::Rename::REQUIRES),
    (squash::Revert::NAME, squash::Revert::REQUIRES),
    (freeze::Freeze::NAME, freeze::Freeze::REQUIRES),
    (freeze::Unfreeze::NAME, freeze::Unfreeze::REQUIRES),
    (navigate::Navigate::NAME, navigate::Navigate::REQUIRES),
    (config::SetTrunk::NAME, config::SetTrunk::REQUIRES),
    (config::WriteSettings::NAME, config::WriteSettings::REQUIRES),
    (undo::Undo::NAME, undo::Undo::REQUIRES),
    (submit::Submit::NAME, submit::Submit::REQUIRES),
    (sync::Sync::NAME, sync::Sync::REQUIRES),
    (get::Get::NAME, get::Get::REQUIRES),
    (merge::Merge::NAME, merge::Merge::REQUIRES),
    (link::Unlink::NAME, link::Unlink::REQUIRES),
];

#[cfg(test)]
mod tests;
