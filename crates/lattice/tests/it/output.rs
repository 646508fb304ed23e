//! Tests of output.
