//! Tests of modify.
