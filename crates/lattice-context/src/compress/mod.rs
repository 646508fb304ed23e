//! Fits context into a budget.

pub mod outline;
