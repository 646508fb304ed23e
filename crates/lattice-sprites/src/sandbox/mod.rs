//! The sandbox: namespaces, an own root, Landlock and seccomp around one command.
//!
//! A launcher is started for each sandbox. It is this program again, with one thread, since a process with
//! more cannot enter a user namespace. What it is to do comes through a socket and never through its
//! arguments, which the agent could read.

mod bare;
mod canary;
mod confine;
mod door;
mod family;
mod filter;
mod freeze;
mod group;
mod handle;
mod init;
mod launcher;
mod relocate;
mod rename;
mod root;
mod spec;
mod sys;

pub(crate) use family::below;
pub use handle::{Reports, Sandbox, SandboxError, Started};
pub use launcher::main as launcher_main;
pub use spec::{Bind, Door, Isolation, Layer, Limits, Order, Probe, Report, Spec, Stage, Transport, Tree};
pub(crate) use sys::child_signals;

/// The first argument of the program when it is started as a launcher.
pub const LAUNCHER: &str = "__sandbox";

/// The uid and gid that everything has inside.
pub const INSIDE_ID: u32 = 1000;

/// Whom a sandbox of root belongs to on the host: no account has this number, so no file of the host is its own.
pub const ID_FOR_ROOT: u32 = 64_813;
