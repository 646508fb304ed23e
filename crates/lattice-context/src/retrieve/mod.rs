//! Which files a request is about, found without a model and the same on every machine.

pub mod files;
pub mod history;
pub mod imports;
pub mod passage;
pub mod rank;
pub mod request;
pub mod terms;
