//! The right code within a token budget: gather, score, compress, render.

pub mod budget;
pub mod chunk;
pub mod compress;
pub mod language;
pub mod task;
pub mod tokens;
