//! Tests of hostile inputs and faults; the numbers are those of the table of hostile cases.

mod damage;
mod documents;
mod environment;
mod names;
