//! The protocol between an agent and Lattice: events, their form, and the rules across them.

mod envelope;
mod inputs;
mod kind;
mod lines;
mod payload;
mod rules;
mod secret;
mod shape;
mod strict;
mod violation;

#[cfg(test)]
mod tests;

pub use envelope::{Event, EventKey, read_event};
pub use inputs::{InputType, InputTypeError, check_inputs};
pub use kind::EventType;
pub use lines::{Line, Lines};
pub use payload::{ACTIONS, ActionRequest, KnownAction, Waiting, known_action};
pub use rules::{Happening, Rules};
pub use secret::{MASK, Secrets};
pub use shape::ADJUSTMENTS;
pub use violation::{Finding, Rule, Weight};

/// What an event line on stdout begins with.
pub const PREFIX: &[u8] = b"LATTICE_EVENT ";

/// The version that every event names.
pub const VERSION: &str = "v1";

/// The longest line that is read as an event; the specification's own examples have 200 bytes.
pub const LONGEST_LINE: usize = 16 * 1024 * 1024;
