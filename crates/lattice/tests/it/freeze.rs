//! Tests of freeze.
