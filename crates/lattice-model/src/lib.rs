//! Pure model of stacks: names, ids, graph, snapshot, gate, plans and doctor. No I/O.

pub mod branch;
pub mod capability;
pub mod command;
pub mod doctor;
pub mod event;
pub mod explain;
pub mod gate;
pub mod graph;
pub mod history;
pub mod host;
pub mod id;
pub mod issue;
pub mod name;
pub mod overview;
pub mod plan;
pub mod remote;
pub mod settings;
pub mod similar;
pub mod snapshot;
pub mod time;
