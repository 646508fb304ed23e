//! Tests of power.
