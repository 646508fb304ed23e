//! Tests of lifecycle.
