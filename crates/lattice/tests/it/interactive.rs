//! Tests of interactive.
