//! The right code within a token budget: gather, score, compress, render.

pub mod budget;
pub mod builders;
pub mod chunk;
pub mod compress;
pub mod gather;
pub mod git;
pub mod index;
pub mod language;
pub mod log;
pub mod pack;
pub mod prioritize;
pub mod prompt;
pub mod retrieve;
pub mod secrets;
pub mod session;
pub mod task;
pub mod text;
pub mod tokens;
pub mod workspace;
