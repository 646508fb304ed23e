//! Tests of info.
