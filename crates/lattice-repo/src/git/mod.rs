//! Runs git with a fixed environment and turns its output into values. Private to this crate.

pub(crate) mod commits;
pub(crate) mod discover;
pub(crate) mod display;
pub(crate) mod error;
pub(crate) mod files;
pub(crate) mod history;
pub(crate) mod hooks;
pub(crate) mod listing;
pub(crate) mod manners;
pub(crate) mod objects;
pub(crate) mod pack;
pub(crate) mod picker;
pub(crate) mod process;
pub(crate) mod quarantine;
pub(crate) mod refs;
pub(crate) mod remains;
pub(crate) mod remote;
pub(crate) mod rewrite;
mod staged;
pub(crate) mod transaction;
mod watched;
pub(crate) mod worktree;

pub(crate) use error::GitError;
pub(crate) use process::Git;
