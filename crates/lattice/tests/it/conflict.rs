//! Tests of conflict.
