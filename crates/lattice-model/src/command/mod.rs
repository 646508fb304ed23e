//! The commands: for each its request, what it requires, and its planner.

pub mod config;
pub mod create;
pub mod freeze;
pub mod init;
pub mod modify;
pub mod navigate;
pub mod reparent;
pub mod restack;
mod rewrite;
mod scope;
pub mod track;
pub mod undo;

pub use rewrite::{draft_of, reparented};
pub use scope::check_new_name;
pub(crate) use scope::frozen;

use crate::capability::Capability;
use crate::gate::Command;

/// A command as the registry lists it: its name and what it requires.
pub type Registered = (&'static str, &'static [Capability]);

/// Every command that changes the repository.
pub const REGISTRY: &[Registered] = &[
    (init::Init::NAME, init::Init::REQUIRES),
    (init::Reset::NAME, init::Reset::REQUIRES),
    (track::Track::NAME, track::Track::REQUIRES),
    (track::Untrack::NAME, track::Untrack::REQUIRES),
    (create::Create::NAME, create::Create::REQUIRES),
    (modify::Modify::NAME, modify::Modify::REQUIRES),
    (restack::Restack::NAME, restack::Restack::REQUIRES),
    (reparent::Move::NAME, reparent::Move::REQUIRES),
    (freeze::Freeze::NAME, freeze::Freeze::REQUIRES),
    (freeze::Unfreeze::NAME, freeze::Unfreeze::REQUIRES),
    (navigate::Navigate::NAME, navigate::Navigate::REQUIRES),
    (config::SetTrunk::NAME, config::SetTrunk::REQUIRES),
    (config::WriteSettings::NAME, config::WriteSettings::REQUIRES),
    (undo::Undo::NAME, undo::Undo::REQUIRES),
];

#[cfg(test)]
mod tests;
