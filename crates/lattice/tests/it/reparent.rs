//! Tests of reparent.
