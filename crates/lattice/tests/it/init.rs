//! Tests of init.
