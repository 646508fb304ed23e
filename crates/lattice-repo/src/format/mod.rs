//! Versioned documents on disk and their conversion to model types.

pub(crate) mod config;
pub(crate) mod event;
pub(crate) mod journal;
pub(crate) mod metadata;
pub(crate) mod op_state;
pub(crate) mod sealed;

pub use config::{ConfigEditError, edit_setting, list_settings, read_setting, unset_setting, user_settings};
