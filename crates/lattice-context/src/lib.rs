//! The right code within a token budget: gather, score, compress, render.

pub mod budget;
pub mod builders;
pub mod bundle;
mod bytes;
pub mod chunk;
pub mod compress;
pub mod deliver;
pub mod expand;
pub mod gather;
pub mod git;
pub mod index;
pub mod language;
mod listing;
pub mod log;
pub mod map;
pub mod measure;
pub mod pack;
mod parallel;
pub mod prioritize;
pub mod prompt;
pub mod retrieve;
pub mod secrets;
pub mod session;
pub mod task;
pub mod text;
pub mod tokens;
pub mod workspace;

/// Runs a gatherer's future to its end on this thread; blocking work goes to a pool beside it.
pub fn drive<F: Future>(future: F) -> F::Output {
    let runtime =
        tokio::runtime::Builder::new_current_thread().build().expect("bug: a runtime without I/O needs nothing");
    runtime.block_on(future)
}
