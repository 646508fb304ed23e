//! The right code within a token budget: gather, score, compress, render.

pub mod budget;
pub mod chunk;
pub mod index;
pub mod compress;
pub mod language;
pub mod retrieve;
pub mod task;
pub mod text;
pub mod tokens;
pub mod workspace;
