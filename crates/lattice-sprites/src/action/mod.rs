//! Actions for agents: read strictly, decided by policy or a person, carried out once, answered.

mod decide;
mod perform;
mod request;
mod source;

#[cfg(test)]
mod tests;

pub use decide::{Decision, decide};
pub use perform::{Hands, Retry, carry_out};
pub use request::{Action, read_action, work_item_number};
pub use source::{HostValues, credential};
